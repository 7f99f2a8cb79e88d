"""Spans of a tick, from the world to the question to a model, told to a real collector's interface."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from ethnos import traces

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc  # noqa: E402

from ethnos.run import create  # noqa: E402
from tests.operations.test_health import Kept, live  # noqa: E402
from tests.tiny import orchard  # noqa: E402


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans as a collector does."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.came = threading.Event()

    def Export(self, request: Any, context: Any) -> Any:
        self.spans += [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
        self.came.set()
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    server, found = grpc.server(ThreadPoolExecutor(2)), Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(found, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv(traces.ENDPOINT, f"http://127.0.0.1:{port}")
    traces._tracer.cache_clear()
    yield found
    traces._tracer.cache_clear()
    server.stop(None)


def test_a_tick_and_its_decisions_are_one_trace(collector: Collector, runs: object) -> None:
    asyncio.run(live(create(orchard(), "traced"), Kept()))
    traces.flush()
    ticks = {s.span_id: s for s in collector.spans if s.name == "tick"}
    decisions = [s for s in collector.spans if s.name == "decide"]
    assert len(ticks) == 30
    assert len(decisions) > 100
    assert all(s.parent_span_id in ticks for s in decisions)
    assert all(s.trace_id == ticks[s.parent_span_id].trace_id for s in decisions)
    numbers = {a.key: a.value.int_value for a in decisions[0].attributes}
    parent = {a.key: a.value.int_value for a in ticks[decisions[0].parent_span_id].attributes}
    assert numbers["tick"] == parent["tick"]


def test_without_a_collector_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(traces.ENDPOINT, raising=False)
    traces._tracer.cache_clear()
    with traces.span("tick", tick=1):
        traces.note(tick=2)
        assert traces.here() == ""

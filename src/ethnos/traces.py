"""Traces of a tick through world, actor, pool and engine, by OpenTelemetry; nothing where that is not asked for.

They are on where `OTEL_EXPORTER_OTLP_ENDPOINT` is set and the extra `traces` is installed. What connects the spans of
different processes is the W3C `traceparent` text, which travels with observations and requests.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def wanted() -> bool:
    """Whether anybody is to be told."""
    return bool(os.environ.get(ENDPOINT)) and find_spec("opentelemetry") is not None


@contextmanager
def span(name: str, parent: str = "", **attributes: str | int | float) -> Iterator[None]:
    """A span around what happens inside; `parent` is a `traceparent` from elsewhere."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(name, context=_context(parent), attributes=attributes):
        yield


def note(**attributes: str | int | float) -> None:
    """Add to the span under way."""
    if _tracer() is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(attributes)


def flush() -> None:
    """Send what has not been sent yet; a process does so by itself when it ends in order."""
    if (tracer := _tracer()) is not None:
        tracer.span_processor.force_flush()


def here() -> str:
    """The `traceparent` of the span under way; empty where there are no traces."""
    if _tracer() is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def _context(parent: str) -> Any:
    if not parent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent})


@cache
def _tracer() -> Any:
    """The tracer of this process, made when first asked for; None where nobody is to be told."""
    if not wanted():
        return None
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "ethnos", "service.version": version("ethnos")})
    provider = TracerProvider(resource=about)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1000))
    return provider.get_tracer("ethnos")


__all__ = ["flush", "here", "note", "span", "wanted"]

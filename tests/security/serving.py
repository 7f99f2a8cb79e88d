"""A paused society that can be talked to, and what a stranger would say to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from ethnos.control import Control
from ethnos.record.directory import RunDirectory
from ethnos.rights import Right, metadata, token_for
from ethnos.run import create
from ethnos.wire.v1 import control_pb2 as control
from ethnos.wire.v1 import control_pb2_grpc
from tests.repeat.serving import TOKEN, served
from tests.tiny import orchard


@contextmanager
def paused(ticks: int = 1_000_000) -> Iterator[RunDirectory]:
    """A society that ends when the block does."""
    run = create(orchard(ticks), "watched")
    with served(run):
        with Control(run) as opened:
            opened.call("Pause")
        yield run
        with Control(run) as opened:
            opened.call("Stop", reason="seen enough")


def address_of(run: RunDirectory) -> str:
    return str(json.loads(run.contact.read_bytes())["address"])


def code_of(channel: grpc.Channel, method: str = "Watch", token: str = "", timeout: float = 10.0) -> grpc.StatusCode:
    """What a call comes to: OK, or why not."""
    request = getattr(control, f"{method}Request")()
    try:
        with channel:
            answer = getattr(control_pb2_grpc.ControlStub(channel), method)(
                request, metadata=metadata(token), timeout=timeout
            )
            if method == "Watch":
                next(iter(answer))
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def token(right: Right) -> str:
    return token_for(TOKEN, right)


def files(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Authority, certificate and key in a folder of certificates."""
    return (folder / "ca.pem").read_bytes(), (folder / "cert.pem").read_bytes(), (folder / "key.pem").read_bytes()

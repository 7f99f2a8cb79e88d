"""Steering a running society: its control service, found by the address and token in its directory."""

import json
from types import TracebackType
from typing import Any

import grpc

from ethnos.errors import ClusterError, Refused
from ethnos.record.directory import RunDirectory
from ethnos.wire.v1 import control_pb2 as wire
from ethnos.wire.v1 import control_pb2_grpc

TIMEOUT_S = 30.0


class Control:
    """A connection to the control service of a run. Use as a context manager.

    Raises ClusterError if the run is not running, or cannot be reached from here.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        address, token = contact(run)
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._channel = grpc.insecure_channel(address)
        self._stub = control_pb2_grpc.ControlStub(self._channel)

    def __enter__(self) -> "Control":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    def call(self, name: str, **request: Any) -> Any:
        """One call, such as `call("Step", ticks=3)`. Raises Refused with the service's reason, ClusterError."""
        message = getattr(wire, f"{name}Request")(**request)
        try:
            return getattr(self._stub, name)(message, metadata=self._metadata, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
            if code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                raise Refused(details) from None
            raise ClusterError(f"run {self._run.name} cannot be reached: {details or code.name.lower()}") from None


def contact(run: RunDirectory) -> tuple[str, str]:
    """Address and token of a running society's service. Raises ClusterError if it is not running."""
    try:
        contact = json.loads(run.contact.read_bytes())
        return str(contact["address"]), str(contact["token"])
    except FileNotFoundError:
        raise ClusterError(f"run {run.name} is not running: it is {run.state()}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{run.contact} cannot be read: {error}") from None


__all__ = ["Control", "contact"]

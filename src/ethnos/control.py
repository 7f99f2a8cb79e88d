"""Steering a running society: its control service, found by the address and token in a contact file."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc

from ethnos.errors import ClusterError, Refused
from ethnos.record.directory import RunDirectory
from ethnos.rights import Right, metadata, token_for
from ethnos.transport import channel
from ethnos.wire.v1 import control_pb2 as wire
from ethnos.wire.v1 import control_pb2_grpc

TIMEOUT_S = 30.0
_REFUSALS = {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Control:
    """A connection to the control service of a run, or to the one that a contact file tells of. A context manager.

    Raises ClusterError if the run is not running, or cannot be reached from here.
    """

    def __init__(self, run: RunDirectory | Path, right: Right = "administer") -> None:
        """`right` is what will be asked for; a contact file that somebody else was given has a right of its own."""
        self.name = run.name if isinstance(run, RunDirectory) else run.stem
        address, token = contact_of(run)
        self._metadata = metadata(token_for(token, right))
        self._channel = channel(address)
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
            if code in _REFUSALS:
                raise Refused(details) from None
            raise ClusterError(f"run {self.name} cannot be reached: {details or code.name.lower()}") from None


def contact_of(run: RunDirectory | Path) -> tuple[str, str]:
    """Address and token of a run's service. Raises ClusterError."""
    file = run.contact if isinstance(run, RunDirectory) else run
    try:
        contact = json.loads(file.read_bytes())
        return str(contact["address"]), str(contact["token"])
    except FileNotFoundError:
        state = f": it is {run.state()}" if isinstance(run, RunDirectory) else ""
        raise ClusterError(f"run {run.name} is not running{state}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{file} cannot be read: {type(error).__name__}") from None


__all__ = ["Control", "contact_of"]

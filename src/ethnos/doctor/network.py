"""Ports and certificates."""

import socket
from collections.abc import Iterator

from ethnos.doctor.finding import Finding, ok, problem
from ethnos.society import Society


def ports(society: Society | None) -> Iterator[Finding]:
    """Whether something can listen here, and whether ports that were chosen are free."""
    failed = cannot_listen("127.0.0.1", 0)
    if failed:
        yield problem(
            "ports",
            f"nothing can listen on 127.0.0.1: {failed}",
            "world and agents cannot talk to each other",
            "bring the loopback interface up: ip link set lo up",
        )
        return
    taken = [(name, host, port, why) for name, host, port in _chosen(society) if (why := cannot_listen(host, port))]
    for name, host, port, why in taken:
        yield problem(
            "ports",
            f"{host}:{port}, wanted by engine {name}, cannot be had: {why}",
            "the engine does not start, and with it no run",
            "choose another port, or 0 for one that is free; `ss -ltnp` shows who has it",
        )
    if not taken:
        yield ok("ports", "127.0.0.1 can be listened on")


def cannot_listen(host: str, port: int) -> str:
    """Why nothing can listen there; empty if something can."""
    try:
        with socket.create_server((host, port)):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _chosen(society: Society | None) -> Iterator[tuple[str, str, int]]:
    for name, specs in (society.models if society else {}).items():
        for spec in specs:
            if spec.kind == "sglang" and spec.managed is not None and spec.managed.port:
                yield spec.name or name, spec.managed.host, spec.managed.port

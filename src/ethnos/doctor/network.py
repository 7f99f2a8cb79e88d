"""Ports and certificates."""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ethnos.doctor.finding import Finding, notice, ok, problem
from ethnos.errors import ClusterError
from ethnos.society import Society
from ethnos.transport import FOLDER, certificates, folder

SOON_DAYS = 14


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


def tls() -> Iterator[Finding]:
    """Whether the certificates can be read by us alone, and will last."""
    where = folder()
    if where is None:
        if os.environ.get("RAY_ADDRESS"):
            yield notice(
                "tls",
                f"${FOLDER} is not set",
                "world and agents talk in the clear between nodes; whoever reads along has the run's tokens",
                "ethnos certificates DIR, and ETHNOS_TLS_DIR=DIR/node on all nodes: SECURITY.md",
            )
        return
    try:
        mine = certificates()
        assert mine is not None
        yield from _lasting(where, mine.cert)
    except ClusterError as error:
        yield problem("tls", str(error), "no run starts", "ethnos certificates DIR makes them")


def _lasting(where: Path, cert: bytes) -> Iterator[Finding]:
    if (where / "key.pem").stat().st_mode & 0o077:
        yield problem(
            "tls",
            f"{where / 'key.pem'} can be read by others",
            "whoever has it can pass for this node",
            f"chmod 600 {where / 'key.pem'}, and make new certificates if it may have been read",
        )
    try:
        from ethnos.certificates import expiry
    except ModuleNotFoundError:
        yield notice(
            "tls", "cryptography is not installed", "nobody sees certificates end", "pip install 'ethnos[tls]'"
        )
        return
    end = expiry(cert)
    days = (end - datetime.now(UTC)).days
    if days < 0:
        yield problem("tls", f"the certificate ended {end:%Y-%m-%d}", "everybody is refused", "ethnos certificates DIR")
    elif days < SOON_DAYS:
        yield notice("tls", f"the certificate ends in {days} days", "after that, who reconnects is refused", "renew it")
    else:
        yield ok("tls", f"certificates until {end:%Y-%m-%d}")

"""All checks, one after the other. One that cannot be made says so; it never keeps the others from being made."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ethnos.doctor import cluster, engines, machine, network
from ethnos.doctor.finding import Finding, problem
from ethnos.doctor.need import Need, need_of
from ethnos.record.directory import runs_folder
from ethnos.society import Society


def examine(society: Society | None = None, folder: Path | None = None) -> list[Finding]:
    """Look at this machine and the cluster at $RAY_ADDRESS; with a society also at what it will need.

    Nothing is left behind: a file in the runs folder and some listening sockets exist for a moment, and a cluster
    gets one short task per node.
    """
    need = need_of(society)
    place = folder or runs_folder()
    checks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("versions", lambda: machine.versions(society)),
        ("disk", lambda: machine.disk(place, need)),
        ("clock", lambda: machine.clock(place)),
        ("files", lambda: machine.open_files(need)),
        ("memory", lambda: machine.memory(need)),
        ("temporary", machine.temporary),
        ("ports", lambda: network.ports(society)),
        ("tls", network.tls),
        ("ray", lambda: cluster.ray(need)),
        ("secrets", lambda: engines.secrets(society)),
        ("engines", lambda: engines.health(society)),
    ]
    return [finding for name, check in checks for finding in _made(name, check)]


def _made(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:  # noqa: BLE001 - a machine can be ill in ways that no check foresees: that is a finding
        yield problem(
            name,
            f"this could not be looked at: {type(error).__name__}: {error}",
            "what is behind it is likely to hit a run, too",
            "mend what the error speaks of and look again",
        )


__all__ = ["Need", "examine"]

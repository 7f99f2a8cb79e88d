"""What a check found, what will come of it, and what to do."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "notice", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about the machine. A problem will make a run fail; a notice may, or will make it slow."""

    check: str
    """What was looked at: ray, nodes, gpus, ports, disk, clock, files, memory, engines, versions, secrets, tls."""
    level: Level
    found: str
    consequence: str = ""
    """What will go wrong; empty if nothing."""
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def notice(check: str, found: str, consequence: str, remedy: str) -> Finding:
    return Finding(check, "notice", found, consequence, remedy)


def problem(check: str, found: str, consequence: str, remedy: str) -> Finding:
    return Finding(check, "problem", found, consequence, remedy)

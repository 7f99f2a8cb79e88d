"""Runs at a glance, many at a time: from their table of ticks alone."""

from dataclasses import dataclass
from typing import Any

import yaml

from ethnos.analytics.sparkline import shorten
from ethnos.analytics.summary import MAX_SOCIETY_BYTES
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import picture, stream

CURVE = 60
RECENT = 50
"""Ticks over which speed is taken."""


@dataclass(frozen=True)
class Glance:
    """A run at a glance."""

    name: str
    state: str
    scenario: str
    tick: int
    """The last committed tick; -1 before the first."""
    ticks: int
    population: int
    curve: list[float]
    """Population over time."""
    steps_per_s: float | None
    """Decisions over the time spent in the last ticks; None before the first."""
    rejected: int
    late: int
    failed: int
    created: str
    reason: str
    parent: str
    """The run it branched off, with the tick; empty for others."""


def glance(run: RunDirectory) -> Glance:
    """A run at a glance, also while it runs. Raises RunError if it cannot be read."""
    manifest = run.manifest()
    names = ("population", "decisions", "elapsed", "rejected", "late", "failed")
    found: dict[str, list[Any]] = {n: [] for n in names}
    for batch in stream(picture(run), "ticks", names):
        for name in names:
            found[name] += batch[name].to_pylist()
    curve = found["population"]
    spent = sum(v or 0 for v in found["elapsed"][-RECENT:]) / 1000
    parent = manifest.parent
    return Glance(
        name=run.name,
        state=run.state(),
        scenario=manifest.scenario,
        tick=len(curve) - 1,
        ticks=manifest.ticks,
        population=curve[-1] if curve else 0,
        curve=shorten(curve, CURVE),
        steps_per_s=sum(found["decisions"][-RECENT:]) / spent if spent else None,
        **{n: sum(found[n]) for n in ("rejected", "late", "failed")},
        created=manifest.created.astimezone().strftime("%Y-%m-%d %H:%M"),
        reason=manifest.reason,
        parent=f"{parent.name} at tick {parent.tick}" if parent else "",
    )


def thinks(run: RunDirectory) -> bool:
    """Whether its society names language models. Read as plain data."""
    try:
        with run.society.open("rb") as file:
            return bool(yaml.safe_load(file.read(MAX_SOCIETY_BYTES)).get("models"))
    except (OSError, yaml.YAMLError, AttributeError, ValueError, RecursionError):
        return False

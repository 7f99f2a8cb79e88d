"""What happened in a run, in a few figures: one query each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import yaml
from duckdb import DuckDBPyConnection

from ethnos.analytics.sparkline import shorten
from ethnos.analytics.thinking import Thinking, thinking
from ethnos.errors import RecordDamaged
from ethnos.record.directory import RunDirectory, State
from ethnos.record.reader import connect, picture, stream

CURVE_POINTS = 120
"""Points of a population curve; a longer run is averaged over equal stretches of ticks."""

MAX_SOCIETY_BYTES = 1_000_000


@dataclass(frozen=True)
class Outline:
    """A run at a glance."""

    name: str
    state: State
    scenario: str
    tick: int
    """The last committed tick; -1 before the first."""
    ticks: int
    """How many were asked for."""
    created: datetime
    population: int
    """Agents alive."""
    curve: list[float]
    """Agents alive over time: see `CURVE_POINTS`."""


@dataclass(frozen=True)
class Cohort:
    """A group of founders, as asked for."""

    cohort: str
    count: int
    mind: str


@dataclass(frozen=True)
class Summary(Outline):
    """A run in figures."""

    seed: int
    reason: str
    """Why it ended; empty while it runs."""
    cohorts: list[Cohort]
    peak: int
    """Most agents alive at the end of any tick."""
    founders: int
    births: int
    """Agents born to others or taken in, founders not counted."""
    deaths: dict[str, int]
    """By cause, the most frequent first."""
    artifacts: int
    """Made by anybody, those that are gone included."""
    messages: int
    events: int
    decisions: int
    rejected: int
    late: int
    failed: int
    seconds: float
    """Time spent in its ticks."""
    thinking: Thinking | None
    """What models did; None if none was asked."""
    digest: str


def outline(run: RunDirectory) -> Outline:
    """A run at a glance. Raises RunError if it cannot be read."""
    batches = stream(picture(run), "ticks", ["population"])
    return Outline(**_outline(run, [n for batch in batches for n in batch["population"].to_pylist()]))


def summarise(run: RunDirectory) -> Summary:
    """A run in figures, also while it runs. Raises RunError if it cannot be read."""
    manifest = run.manifest()
    with connect(run) as con:
        try:
            return Summary(
                **_outline(run, population_by_tick(con)),
                seed=manifest.seed,
                reason=manifest.reason,
                cohorts=cohorts(run),
                founders=founders(con),
                births=births(con),
                deaths=deaths(con),
                artifacts=artifacts(con),
                messages=messages(con),
                **totals(con),
                thinking=thinking(con),
                digest=digest(con),
            )
        except duckdb.Error as error:
            raise RecordDamaged(f"{run.name}: {str(error).strip()}") from None


def _outline(run: RunDirectory, population: list[int]) -> dict[str, Any]:
    manifest = run.manifest()
    return {
        "name": run.name,
        "state": run.state(),
        "scenario": manifest.scenario,
        "tick": len(population) - 1,
        "ticks": manifest.ticks,
        "created": manifest.created,
        "population": population[-1] if population else 0,
        "curve": shorten(population, CURVE_POINTS),
    }


def cohorts(run: RunDirectory) -> list[Cohort]:
    """The founders that were asked for. Read as plain data: no code of a run's scenario is loaded."""
    try:
        with run.society.open("rb") as file:
            asked = yaml.safe_load(file.read(MAX_SOCIETY_BYTES))
        return [Cohort(str(c["cohort"]), int(c["count"]), _mind(c["mind"])) for c in asked["population"]]
    except (OSError, yaml.YAMLError, ValueError, TypeError, KeyError, RecursionError):
        raise RecordDamaged(f"{run.society} is not what a run keeps of its society") from None


def _mind(mind: Any) -> str:
    """What to call a mind: its own name, its model's, or its kind."""
    return str(mind.get("name") or mind.get("model") or mind.get("kind")) if isinstance(mind, dict) else str(mind)


def population_by_tick(con: DuckDBPyConnection) -> list[int]:
    """Agents alive at the end of each tick from 0."""
    return [n for (n,) in con.execute("SELECT population FROM ticks ORDER BY tick").fetchall()]


def founders(con: DuckDBPyConnection) -> int:
    """Agents that were there from the beginning."""
    return int(_row(con, "SELECT count(*) FROM events WHERE kind = 'born' AND tick = 0")[0])


def births(con: DuckDBPyConnection) -> int:
    """Agents that came later."""
    return int(_row(con, "SELECT count(*) FROM events WHERE kind = 'born' AND tick > 0")[0])


def deaths(con: DuckDBPyConnection) -> dict[str, int]:
    """Deaths by cause, the most frequent first."""
    sql = "SELECT text, count(*) AS n FROM events WHERE kind = 'died' GROUP BY text ORDER BY n DESC, text"
    return {str(cause): n for cause, n in con.execute(sql).fetchall()}


def artifacts(con: DuckDBPyConnection) -> int:
    """Artifacts ever made."""
    return int(_row(con, "SELECT count(*) FROM events WHERE kind = 'artifact_created'")[0])


def messages(con: DuckDBPyConnection) -> int:
    """Things said."""
    return int(_row(con, "SELECT count(*) FROM events WHERE kind = 'said'")[0])


def totals(con: DuckDBPyConnection) -> dict[str, Any]:
    """Sums over all ticks."""
    names = ("peak", "events", "decisions", "rejected", "late", "failed", "seconds")
    values = _row(
        con,
        """
        SELECT max(population), sum(events), sum(decisions), sum(rejected), sum(late), sum(failed),
               sum(elapsed) / 1000.0 FROM ticks
        """,
    )
    return {n: float(v or 0) if n == "seconds" else int(v or 0) for n, v in zip(names, values, strict=True)}


def digest(con: DuckDBPyConnection) -> str:
    """The digest up to the last committed tick; empty before the first."""
    return str(_row(con, "SELECT coalesce(arg_max(digest, tick), '') FROM ticks")[0])


def _row(con: DuckDBPyConnection, sql: str) -> Any:
    return con.execute(sql).fetchone()

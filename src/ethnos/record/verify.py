"""Checking a record against itself: its digest, its numbering, its counts, and what must be conserved.

Nothing is taken from the code of a scenario: all of it follows from the files, in bounded memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.errors import EthnosError, RecordDamaged, RunError
from ethnos.record import digest
from ethnos.record.directory import Manifest, Parent, RunDirectory
from ethnos.record.reader import Rows, connect, picture, stream
from ethnos.record.schema import EVENTS

TOLERANCE = 1e-9
"""How far a conserved quantity may be off in a tick, relative to what there is of it, at least 1."""

LEDGER = """
WITH moved AS (
    SELECT e.tick, f.quantity, sum(f.sign * CASE f.field
               WHEN 'agent_id' THEN e.agent_id WHEN 'target_id' THEN e.target_id
               WHEN 'artifact_id' THEN e.artifact_id WHEN 'x' THEN e.x WHEN 'y' THEN e.y
               WHEN 'amount' THEN e.amount
               ELSE CAST(CAST(e.data AS JSON) ->> f.field AS DOUBLE) END) AS change
    FROM events e JOIN flows f ON e.kind = f.kind GROUP BY ALL
), held AS (
    SELECT t.tick, q.quantity, CAST(CAST(t.stocks AS JSON) AS MAP(VARCHAR, DOUBLE))[q.quantity] AS stock
    FROM ticks t CROSS JOIN (SELECT DISTINCT quantity FROM flows) q
), ledger AS (
    SELECT tick, quantity, greatest(1, abs(stock)) AS scale,
           stock - lag(stock, 1, 0.0) OVER by_tick - coalesce(change, 0) AS residual
    FROM held LEFT JOIN moved USING (tick, quantity)
    WINDOW by_tick AS (PARTITION BY quantity ORDER BY tick)
)
SELECT max(abs(residual)), min(tick) FILTER (wrong), arg_min(quantity, tick) FILTER (wrong),
       arg_min(residual, tick) FILTER (wrong)
FROM (SELECT *, NOT coalesce(abs(residual) <= $tolerance * scale, false) AS wrong FROM ledger)
"""
"""The largest residual, and the first tick whose stock is not the last one's plus what its events say."""

DECISIONS = """
SELECT min(tick) FROM ticks FULL JOIN (
    SELECT tick, count(*) AS decisions, count(*) FILTER (outcome = 'rejected') AS rejected,
           count(*) FILTER (outcome = 'late') AS late, count(*) FILTER (outcome = 'failed') AS failed
    FROM decisions GROUP BY tick
) d USING (tick)
WHERE (ticks.decisions, ticks.rejected, ticks.late, ticks.failed) IS DISTINCT FROM
      (coalesce(d.decisions, 0), coalesce(d.rejected, 0), coalesce(d.late, 0), coalesce(d.failed, 0))
"""
"""The first tick whose decisions are not as many as it says."""

POPULATION = """
SELECT min(tick) FILTER (counted IS DISTINCT FROM population) FROM (
    SELECT tick, population, sum(coalesce(change, 0)) OVER (ORDER BY tick) AS counted
    FROM ticks LEFT JOIN (
        SELECT tick, sum(CASE kind WHEN 'born' THEN 1 ELSE -1 END) AS change
        FROM events WHERE kind IN ('born', 'died') GROUP BY tick
    ) USING (tick)
)
"""
"""The first tick at whose end not as many live as were born and have not died."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """What became of checking one run."""

    run: str
    digest: str
    """As recomputed from its events."""
    ticks: int
    """The last tick that was found; -1: none."""
    events: int
    ledger_residual: float | None
    """The largest difference between a stock and what events account for; None: it could not be computed."""
    checks: list[Check]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def verify(run: RunDirectory) -> Verification:
    """Recompute what a run says of itself. Raises RunError only if it cannot be read as a run at all."""
    manifest = run.manifest()
    chain = _Chain(parent=manifest.parent)
    chain.guard(lambda: chain.follow(run))
    chain.compare(manifest)
    residual, others = _by_sql(run, manifest)
    checks = [*chain.checks(), _society(run), *others]
    return Verification(run.name, chain.digest, chain.tick, chain.seq, residual, checks)


def _society(run: RunDirectory) -> Check:
    """Whether the society is still the one that the record is of."""
    try:
        run.check_unaltered()
    except (RunError, OSError) as error:
        return Check("society", False, str(error))
    return Check("society", True, "society.yaml is as it was when the run was made")


@dataclass
class _Chain:
    """Goes through a record tick by tick; keeps the first fault of each kind."""

    tick: int = -1
    seq: int = 0
    digest: str = digest.START
    faults: dict[str, str] = field(default_factory=dict)
    parent: Parent | None = None

    def guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except EthnosError as error:
            self.faults["record"] = str(error)

    def follow(self, run: RunDirectory) -> None:
        seen = picture(run)
        events = Rows(stream(seen, "events"), EVENTS)
        for batch in stream(seen, "ticks"):
            columns = (batch[name].to_pylist() for name in ("tick", "first_seq", "events", "digest"))
            for tick, first, count, said in zip(*columns, strict=True):
                self._one(tick, first, events.take(count), said)
        if events.left():
            self._fault("seq", f"there are events after tick {self.tick}, the last one")

    def _one(self, tick: int, first: int, rows: pa.RecordBatch, said: str) -> None:
        if tick != self.tick + 1:
            self._fault("ticks", f"tick {self.tick} is followed by tick {tick}")
        if first != self.seq or not _dense(rows, tick, self.seq):
            self._fault("seq", f"the events of tick {tick} are not numbered on from {self.seq}")
        self.tick, self.seq = tick, self.seq + rows.num_rows
        self.digest = digest.extend(self.digest, rows)
        if self.digest != said:
            self._fault("digest", f"tick {tick} says {said:.16}..., its events say {self.digest:.16}...")

        if (
            self.parent
            and tick == self.parent.tick
            and (self.digest, self.seq) != (self.parent.digest, self.parent.seq)
        ):
            self._fault("parent", f"{self.parent.name} is not what it was when this branch was made, in tick {tick}")

    def compare(self, manifest: Manifest) -> None:
        """Hold the end against what the manifest says, if the run has ended."""
        if manifest.state == "running" and not manifest.digest:
            return
        if (manifest.digest, manifest.tick) != (self.digest, self.tick):
            self._fault(
                "manifest",
                f"it says tick {manifest.tick}, {manifest.digest:.16}...; "
                f"the events say tick {self.tick}, {self.digest:.16}...",
            )

    def _fault(self, name: str, detail: str) -> None:
        self.faults.setdefault(name, detail)

    def checks(self) -> list[Check]:
        fine = {
            "record": "every part can be read",
            "ticks": f"0 to {self.tick}, none missing" if self.tick >= 0 else "there are none yet",
            "seq": f"{self.seq} events, numbered without gap",
            "digest": "each tick's digest follows from its events",
            "manifest": "says the same as the record",
        }
        if self.parent:
            fine["parent"] = f"up to tick {self.parent.tick} this is {self.parent.name}"
        return [Check(n, n not in self.faults, self.faults.get(n, text)) for n, text in fine.items()]


def _dense(rows: pa.RecordBatch, tick: int, seq: int) -> bool:
    ticks, numbers = (rows[c].to_numpy(zero_copy_only=False) for c in ("tick", "seq"))
    return bool((ticks == tick).all() and (numbers == np.arange(seq, seq + len(numbers))).all())


def _by_sql(run: RunDirectory, manifest: Manifest) -> tuple[float | None, list[Check]]:
    """The ledger's residual, and the checks that are queries."""
    try:
        with connect(run) as con:
            residual, ledger = _ledger(con, manifest)
            return residual, [
                ledger,
                _none_wrong(con, "decisions", DECISIONS, "as many as each tick says, with the same outcomes"),
                _none_wrong(con, "population", POPULATION, "births and deaths add up to it in each tick"),
            ]
    except (duckdb.Error, EthnosError) as error:
        return None, [Check("ledger", False, str(error).strip())]


def _ledger(con: DuckDBPyConnection, manifest: Manifest) -> tuple[float | None, Check]:
    flows = list(_flows(manifest))
    if not flows:
        return 0.0, Check("ledger", True, "this world has nothing that is conserved")
    con.from_arrow(pa.Table.from_pylist(flows)).create_view("flows")
    worst, tick, quantity, residual = _one_row(con, LEDGER, {"tolerance": TOLERANCE})
    if tick is None:
        names = ", ".join(manifest.conserved)
        return worst or 0.0, Check("ledger", True, f"{names}: every change is accounted for by events")
    how = "is not on the record" if residual is None else f"changed by {residual:g} for no reason on record"
    return worst, Check("ledger", False, f"tick {tick}: {quantity} {how}")


def _flows(manifest: Manifest) -> Iterable[dict[str, str | int]]:
    for quantity, flows in manifest.conserved.items():
        for flow in flows:
            kind = manifest.kinds.get(flow.kind)
            if kind is None or flow.field not in {c.name for c in kind.columns}:
                raise RecordDamaged(f"{quantity} flows by {flow.kind}.{flow.field}, which is not declared")
            yield {"quantity": quantity, "kind": flow.kind, "field": flow.field, "sign": flow.sign}


def _none_wrong(con: DuckDBPyConnection, name: str, sql: str, fine: str) -> Check:
    (tick,) = _one_row(con, sql, {})
    return Check(name, tick is None, fine if tick is None else f"tick {tick} does not add up")


def _one_row(con: DuckDBPyConnection, sql: str, values: dict[str, float]) -> tuple[Any, ...]:
    row = con.execute(sql, values).fetchone()
    assert row is not None
    return row

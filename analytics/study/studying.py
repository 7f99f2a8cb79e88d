"""A study of a run: window by window, so that a longer run costs only what is new, and nothing is said twice."""

import fcntl
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection

from ethnos.analytics import network
from ethnos.analytics.asking import Row, row
from ethnos.analytics.study import findings, report, scripted, texts
from ethnos.analytics.study.annotation import Annotation, Subject, merged
from ethnos.analytics.study.audit import audited
from ethnos.analytics.study.codebook import Codebook
from ethnos.errors import RunBusy
from ethnos.record import studied
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.record.reader import connect

WINDOW = 100
OVERLAP = 20
"""Ticks of the window before that annotations look at, too."""
SMALLEST = 3
"""Agents that make a community."""


class Coder(Protocol):
    """Whoever annotates beside the rules: a model."""

    id: str
    """What its answers depend on: another one codes anew."""

    def code(
        self, con: DuckDBPyConnection, book: Codebook, window: int, first: int, last: int, communities: list[Subject]
    ) -> list[Annotation]:
        """Annotations between two ticks, before any audit."""

    def review(self, con: DuckDBPyConnection, book: Codebook, found: list[Annotation]) -> list[Annotation]:
        """Those that a second look doubts have less confidence."""


@dataclass(frozen=True)
class Studied:
    """What a study did."""

    tick: int
    fresh: int
    """Windows that were coded now."""
    kept: int
    """Windows that had been coded before."""
    accepted: int
    rejected: int
    findings: int


@dataclass(frozen=True)
class Plan:
    """How to study."""

    book: Codebook
    coders: tuple[Coder, ...] = ()
    window: int = WINDOW
    overlap: int = OVERLAP

    @property
    def key(self) -> str:
        """What windows that were coded otherwise do not have."""
        return "|".join(["1", self.book.id, str(self.window), str(self.overlap), *(c.id for c in self.coders)])


def study(run: RunDirectory, plan: Plan) -> Studied:
    """Study a run as of its last committed tick, and write tables and report. Raises RunError, QueryError."""
    with _alone(run), connect(run) as con:
        tick = _tick(con)
        ties = network.edges(con, window=plan.window)
        fresh = [_window(con, run, plan, w, tick, ties) for w in range(tick // plan.window + 1)]
        tables = _tables(con, run, fresh)
        found = findings.found(con, tables)
        tables["findings"] = [f.row() for f in found]
        for name, rows in tables.items():
            studied.write(studied.folder(run) / f"{name}.parquet", name, rows, {"until": str(tick), "key": plan.key})
        told = report.Study(run.name, tick, tables, found)
        for name, text in (("report.html", report.html(con, told)), ("report.md", report.markdown(con, told))):
            write_durably(studied.folder(run) / name, text.encode("utf-8", "replace"))
    accepted = sum(a["accepted"] for a in tables["annotations"])
    return Studied(
        tick, sum(fresh), len(fresh) - sum(fresh), accepted, len(tables["annotations"]) - accepted, len(found)
    )


def follow(run: RunDirectory, plan: Plan, every: float = 2.0) -> Iterator[Studied]:
    """Study a run again and again while it is being written, and once more when it has ended."""
    last = -1
    while True:
        going = run.state() == "running"
        with connect(run) as con:
            now = _tick(con)
        if now > last:
            done = study(run, plan)
            last = done.tick
            yield done
        if not going:
            return
        time.sleep(every)


def _tick(con: DuckDBPyConnection) -> int:
    found = row(con, "SELECT coalesce(max(tick), 0) AS tick FROM ticks")
    return int(found["tick"]) if found else 0


@contextmanager
def _alone(run: RunDirectory) -> Iterator[None]:
    folder = studied.folder(run)
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusy(f"run {run.name} is being studied by another process") from None
        yield


def bound(ties: pa.Table, window: int) -> list[Subject]:
    """The communities of a window: groups of three and more among positive ties, the largest first."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for r in network.communities(ties).to_pylist():
        if r["method"] == "louvain":
            found[r["community"]].append(r["agent"])
    return [Subject("community", i, tuple(g), window) for i, g in sorted(found.items()) if len(g) >= SMALLEST]


def _window(con: DuckDBPyConnection, run: RunDirectory, plan: Plan, window: int, tick: int, ties: pa.Table) -> bool:
    """Code one window unless that is done; whether it was done now."""
    first, last = window * plan.window, min(tick, (window + 1) * plan.window - 1)
    notes = {"until": str(last), "key": plan.key}
    done = studied.notes(_part(run, window, "annotations"))
    if all(done.get(k) == v for k, v in notes.items()):
        return False
    edges = ties.filter(pc.field("window") == window)
    groups = bound(edges, window)
    members: list[Row] = [
        {"window": window, "method": "louvain", "community": s.id, "agent": a} for s in groups for a in s.members
    ]
    begin = max(0, first - plan.overlap)
    found = audited(con, plan.book, scripted.coded(con, plan.book, window, begin, last, groups))
    for coder in plan.coders:
        claims = audited(con, plan.book, coder.code(con, plan.book, window, begin, last, groups))
        found += coder.review(con, plan.book, claims)
    rows = {"edges": edges.to_pylist(), "communities": members, "annotations": [a.row() for a in found]}
    for name, some in rows.items():
        studied.write(_part(run, window, name), name, some, notes)
    return True


def _part(run: RunDirectory, window: int, table: str) -> Any:
    return studied.folder(run) / "windows" / f"{window:06}-{table}.parquet"


def _tables(con: DuckDBPyConnection, run: RunDirectory, windows: Sequence[bool]) -> dict[str, list[Row]]:
    parts: dict[str, list[Row]] = {
        name: [r for w in range(len(windows)) for r in studied.read(_part(run, w, name), name)]
        for name in ("edges", "communities", "annotations")
    }
    raw = [_annotation(r) for r in parts["annotations"]]
    parts["annotations"] = [a.row() for a in merged(raw)]
    parts["agreement"] = agreement(raw)
    parts["lineages"] = texts.lineages(con)
    parts["scores"] = texts.scores(con)
    return parts


def _annotation(r: Row) -> Annotation:
    kept: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in r.items() if k != "annotation"}
    return Annotation(**kept)


def agreement(found: Sequence[Annotation]) -> list[Row]:
    """Krippendorff's alpha (nominal) per code over subjects and windows, where there are two coders or more.

    A unit is a subject in a window that any coder gave any code; a coder who did not give it this one says no.
    """
    coders = sorted({a.coder for a in found})
    if len(coders) < 2:
        return []
    units = sorted({(a.subject, a.subject_id, a.window) for a in found})
    given: defaultdict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for a in found:
        if a.accepted:
            given[a.code].add((a.coder, a.subject, a.subject_id, a.window))
    rows: list[Row] = []
    for code in sorted(given):
        votes = np.array([[float((c, *u) in given[code]) for u in units] for c in coders])
        rows.append({"code": code, "coders": len(coders), "units": len(units), "alpha": alpha(votes)})
    return rows


def alpha(votes: Any) -> float | None:
    """Krippendorff's alpha for nominal data of coders (rows) over units (columns); NaN: not coded.

    1 - observed / expected disagreement, from coincidences (Krippendorff 2011, Computing Krippendorff's
    Alpha-Reliability). None if all say the same: then nothing could disagree.
    """
    values = sorted(set(votes[~np.isnan(votes)].tolist()))
    counts = np.array([(votes == v).sum(axis=0) for v in values])
    counts = counts[:, counts.sum(axis=0) >= 2] if values else counts
    total = counts.sum()
    if len(values) < 2 or not total:
        return None
    coders = counts.sum(axis=0)
    agreeing = (counts * (counts - 1) / (coders - 1)).sum()
    expected = (counts.sum(axis=1) * (counts.sum(axis=1) - 1)).sum() / (total - 1)
    return float(1 - (total - agreeing) / (total - expected)) if total > expected else None


__all__ = ["Coder", "Plan", "Studied", "agreement", "alpha", "follow", "study"]

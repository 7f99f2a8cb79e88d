"""Runs as pages read them: one DuckDB picture of a run for all who look at it, renewed when it has new ticks."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import duckdb
import streamlit as st
from duckdb import DuckDBPyConnection

from ethnos.errors import EthnosError, RecordDamaged
from ethnos.record.directory import RunDirectory, all_runs
from ethnos.record.reader import connect

T = TypeVar("T")

Stamp = tuple[int, int, int]
"""What changes when a run has new ticks: segments of its log and their bytes, its sealed parts."""

KEPT = 6
"""Runs of which a picture is kept."""


def stamp(run: RunDirectory) -> Stamp:
    """Costs a look into two folders, so it may be asked every second."""
    sizes = []
    for segment in run.segments():
        try:
            sizes.append(segment.stat().st_size)
        except FileNotFoundError:
            continue  # sealed at this moment
    return len(sizes), sum(sizes), len(run.parts("ticks"))


@dataclass
class Kept:
    """The last picture of a run."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: Stamp | None = None
    con: DuckDBPyConnection | None = None
    answers: dict[Any, Any] = field(default_factory=dict)
    """What was asked of this picture, by question."""


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _kept(path: str) -> Kept:
    return Kept()


def _current(run: RunDirectory) -> tuple[Kept, DuckDBPyConnection, dict[Any, Any]]:
    """The picture as of now; whoever still reads the last one keeps it until done."""
    kept = _kept(str(run.path.resolve()))
    with kept.lock:
        now = stamp(run)
        if kept.con is None or kept.seen != now:
            kept.con, kept.seen, kept.answers = connect(run), now, {}
            kept.con.execute("SET threads = 2")  # a society may need the other cores
        return kept, kept.con, kept.answers


@contextmanager
def reading(run: RunDirectory) -> Iterator[DuckDBPyConnection]:
    """A connection of one's own to the run as of its last committed tick. Raises RunError."""
    _, con, _ = _current(run)
    with con.cursor() as cursor:
        try:
            yield cursor
        except duckdb.Error as error:
            raise RecordDamaged(f"{run.name}: {str(error).strip()}") from None


def asked(run: RunDirectory, question: Callable[..., T], *arguments: Any) -> T:
    """`question(con, *arguments)`, kept until the run has another tick, for everybody who asks the same."""
    _, con, answers = _current(run)
    key = (question.__module__, question.__qualname__, arguments)
    if key not in answers:
        with con.cursor() as cursor:
            try:
                answers[key] = question(cursor, *arguments)
            except duckdb.Error as error:
                raise RecordDamaged(f"{run.name}: {str(error).strip()}") from None
    found: T = answers[key]
    return found


def names() -> list[str]:
    """The runs there are, those that were written last first."""

    def written(run: RunDirectory) -> float:
        places = [run.wal, run.manifest_path]
        return max((p.stat().st_mtime for p in places if p.exists()), default=0.0)

    return [run.name for run in sorted(all_runs(), key=written, reverse=True)]


def find(name: str) -> RunDirectory | None:
    """One of the runs in the folder; None for anything else, such as a path from an address line."""
    return next((run for run in all_runs() if run.name == name), None)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Says on the page what went wrong, and why, instead of breaking it off."""
    from ethnos.dashboard.words import plain

    try:
        yield
    except EthnosError as error:
        st.error(f"{what} could not be done.", icon=":material/error:")
        st.code(plain(error, 2_000), language=None, wrap_lines=True)


__all__ = ["asked", "find", "names", "reading", "stamp", "told"]

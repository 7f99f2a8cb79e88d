"""What a measure is, and the form that most of them have: rows of events, grouped and summed by DuckDB."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from ethnos.errors import QueryError

Function = Callable[[DuckDBPyConnection, str | None], pa.Table]

MISSING = "this needs the libraries for studies: pip install 'ethnos[study]'"
"""What is said where an optional library is not installed."""


@dataclass(frozen=True)
class Measure:
    """A number, or a table of numbers, that anybody can compute again from the record."""

    name: str
    title: str
    formula: str
    unit: str
    source: str
    """Where it comes from."""
    function: Function
    needs: tuple[str, ...] = ()
    """Kinds of event without which it means nothing in a world."""
    by: tuple[str, ...] = ("tick", "agent", "cohort")
    """By what it can be broken down, beside being taken over the whole run."""


def lacking(con: DuckDBPyConnection, one: Measure) -> tuple[str, ...]:
    """The kinds of event that a measure needs and that this world does not have."""
    found = con.execute("SELECT view_name FROM duckdb_views()").fetchall()
    return tuple(sorted(set(one.needs) - {name for (name,) in found}))


def table(relation: DuckDBPyRelation) -> pa.Table:
    """The rows of a relation."""
    return relation.to_arrow_table()


def derived(relation: DuckDBPyRelation, name: str, sql: str) -> DuckDBPyRelation:
    """A query over a relation, which it knows by this name."""
    found = relation.query(name, sql)
    assert found is not None, "a SELECT has a result"
    return found


def grouped(rows: str, totals: str) -> Function:
    """A measure from rows with `tick` and `agent_id`: these totals of all, or by tick, agent or cohort."""

    def take(con: DuckDBPyConnection, by: str | None) -> pa.Table:
        return group(con, con.sql(rows), totals, by)

    return take


def group(con: DuckDBPyConnection, relation: DuckDBPyRelation, totals: str, by: str | None) -> pa.Table:
    """Totals over all rows, or by tick, agent or cohort, in order."""
    if by is None:
        return table(relation.aggregate(totals))
    if by == "cohort":
        who = con.sql("SELECT agent_id, cohort FROM agents")
        relation = relation.join(who, "agent_id")
    key = {"tick": "tick", "agent": "agent_id", "cohort": "cohort"}[by]
    return table(relation.aggregate(f"{key}, {totals}", key).order(key))


def library(name: str) -> Any:
    """An optional library. Raises QueryError that says how to get it."""
    try:
        return import_module(name)
    except ImportError:
        raise QueryError(f"{name} is not installed: {MISSING}") from None

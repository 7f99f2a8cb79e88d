"""Answers of DuckDB as plain data."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from duckdb import DuckDBPyConnection

Row = dict[str, Any]


def rows(con: DuckDBPyConnection, sql: str, values: Mapping[str, Any] | None = None, most: int = 2**31) -> list[Row]:
    """The rows of a query, at most `most`, each by the names of its columns; sums of whole numbers as int."""
    found = con.execute(sql, dict(values or {}))
    names = [d[0] for d in found.description or ()]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in found.fetchmany(most)]


def row(con: DuckDBPyConnection, sql: str, values: Mapping[str, Any] | None = None) -> Row | None:
    """The first row of a query, if it has any."""
    return next(iter(rows(con, sql, values)), None)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value

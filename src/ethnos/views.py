"""What a world's own pictures show: the rows of the views that its scenario declares."""

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows
from ethnos.errors import SocietyError
from ethnos.record.directory import Manifest
from ethnos.world import scenarios
from ethnos.world.scenario import View

MOST = 5_000
"""Rows that are drawn at most."""


def views_of(manifest: Manifest) -> list[View]:
    """Those of a run's world if it is installed: looking at a run directory imports no code that it names."""
    if manifest.scenario not in scenarios.known():
        return []
    try:
        return list(scenarios.find(manifest.scenario).views)
    except SocietyError:
        return []


def pictured(con: DuckDBPyConnection, view: View, tick: int) -> list[Row]:
    """What a view shows of a tick, at most `MOST` rows. Texts are untrusted."""
    return rows(con, view.sql, {"tick": tick} if "$tick" in view.sql else {}, most=MOST)


__all__ = ["MOST", "pictured", "views_of"]

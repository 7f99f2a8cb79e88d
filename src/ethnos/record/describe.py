"""What can be asked of a run: every table and view, its columns, and what they mean."""

from dataclasses import dataclass

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.errors import RecordDamaged
from ethnos.record.directory import Manifest, RunDirectory
from ethnos.record.health import HEALTH
from ethnos.record.reader import DERIVED, connect
from ethnos.record.schema import EVENTS, TABLES


@dataclass(frozen=True)
class ColumnMeaning:
    """A column as SQL sees it."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class TableMeaning:
    """A table or view as SQL sees it."""

    name: str
    sort: str
    """`table`; `view` for one that is derived; `kind of event` for the view of one."""
    meaning: str
    columns: list[ColumnMeaning]


def tables(run: RunDirectory) -> list[TableMeaning]:
    """All of them: the tables, the derived views, then one view for each kind of event."""
    manifest = run.manifest()
    with connect(run) as con:
        try:
            return [
                *(_describe(con, name, "table", _of_table(name)) for name in TABLES),
                _describe(con, "health", "table", _of_schema(HEALTH)),
                *(_describe(con, name, "view", (v.meaning, v.columns, {})) for name, v in DERIVED.items()),
                *(_describe(con, k, "kind of event", _of_kind(manifest, k)) for k in manifest.kinds),
            ]
        except duckdb.Error as error:
            raise RecordDamaged(f"{run.name}: {str(error).strip()}") from None


Meaning = tuple[str, dict[str, str], dict[str, str]]
"""Of a table: its meaning, its columns' meanings, their units."""


def _of_table(name: str) -> Meaning:
    return _of_schema(TABLES[name])


def _of_schema(schema: pa.Schema) -> Meaning:
    meta = {f.name: f.metadata for f in schema}
    meanings = {n: m[b"meaning"].decode() for n, m in meta.items()}
    units = {n: m.get(b"unit", b"").decode() for n, m in meta.items()}
    return schema.metadata[b"meaning"].decode(), meanings, units


def _of_kind(manifest: Manifest, name: str) -> Meaning:
    kind = manifest.kinds[name]
    _, meanings, units = _of_table("events")
    shared = EVENTS.names[: EVENTS.names.index("agent_id")]
    said = {c.name: c.meaning or (meanings.get(c.name, "") if c.common else "") for c in kind.columns}
    unit = {c.name: c.unit for c in kind.columns}
    return (
        kind.meaning,
        {**{n: meanings[n] for n in shared}, **said},
        {**{n: units[n] for n in shared}, **unit},
    )


def _describe(con: DuckDBPyConnection, name: str, sort: str, meaning: Meaning) -> TableMeaning:
    text, meanings, units = meaning
    view = con.view(name)
    columns = [
        ColumnMeaning(column, str(kind), units.get(column, ""), meanings.get(column, ""))
        for column, kind in zip(view.columns, view.types, strict=True)
    ]
    return TableMeaning(name, sort, text, columns)

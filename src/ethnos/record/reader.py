"""Reading the record: DuckDB views over sealed parts and the log's tail, of a run that may still be going.

A connection is a picture of the run as of its last committed tick when it was opened; open another to see more.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb import ColumnExpression as column
from duckdb import ConstantExpression as constant
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from ethnos.errors import QueryError, RecordDamaged
from ethnos.record.directory import Kind, Manifest, RunDirectory
from ethnos.record.log import read_segment, unpack
from ethnos.record.schema import TABLES

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")

AGENTS = """
SELECT b.run, b.agent_id, b.text AS name, b.data ->> 'cohort' AS cohort, b.target_id AS parent_id,
       CAST(b.data ->> 'generation' AS BIGINT) AS generation, b.tick AS born, d.tick AS died, d.text AS cause,
       b.data -> 'persona' AS persona
FROM record.events b
LEFT JOIN (SELECT * FROM record.events WHERE kind = 'died') d ON d.run = b.run AND d.agent_id = b.agent_id
WHERE b.kind = 'born'
"""
MESSAGES = """
SELECT s.run, s.tick, s.seq, s.agent_id, s.text, coalesce(h.listeners, 0) AS listeners
FROM record.events s
LEFT JOIN (
    SELECT run, CAST(data ->> 'said' AS BIGINT) AS said, count(*) AS listeners
    FROM record.events WHERE kind = 'heard' GROUP BY ALL
) h ON h.run = s.run AND h.said = s.seq
WHERE s.kind = 'said'
"""
ARTIFACTS = """
SELECT c.run, c.artifact_id, c.data ->> 'name' AS name, c.agent_id AS author_id, c.tick AS created,
       o.versions, o.readers, o.gone, c.text
FROM record.events c
JOIN (
    SELECT run, artifact_id,
           count(*) FILTER (kind IN ('artifact_created', 'artifact_modified')) AS versions,
           count(DISTINCT agent_id) FILTER (kind = 'artifact_read') AS readers,
           min(tick) FILTER (kind IN ('artifact_destroyed', 'artifact_expired')) AS gone
    FROM record.events WHERE artifact_id IS NOT NULL GROUP BY ALL
) o ON o.run = c.run AND o.artifact_id = c.artifact_id
WHERE c.kind = 'artifact_created'
"""


@dataclass(frozen=True)
class View:
    """A table derived from `events`, with what its columns mean."""

    sql: str
    meaning: str
    columns: dict[str, str]


DERIVED = {
    "agents": View(
        AGENTS,
        "Every agent that ever lived.",
        {
            "agent_id": "who",
            "name": "its name",
            "cohort": "the group it was born into",
            "parent_id": "its parent; null for founders",
            "generation": "0 for founders, one more than the parent's for others",
            "born": "tick of birth",
            "died": "tick of death; null: alive",
            "cause": "cause of death",
            "persona": "its traits, as JSON",
        },
    ),
    "messages": View(
        MESSAGES,
        "Everything said, and how many heard it (who: view `heard`).",
        {
            "tick": "when",
            "seq": "the `said` event",
            "agent_id": "the speaker",
            "text": "the words: untrusted",
            "listeners": "how many heard it",
        },
    ),
    "artifacts": View(
        ARTIFACTS,
        "Every artifact ever made.",
        {
            "artifact_id": "which",
            "name": "the name its author gave it: untrusted",
            "author_id": "who made it",
            "created": "tick of its first version",
            "versions": "how many versions it has had",
            "readers": "how many agents have read it",
            "gone": "tick in which it ceased to exist; null: it is still there",
            "text": "its first version's text: untrusted",
        },
    ),
}


def connect(*runs: RunDirectory) -> DuckDBPyConnection:
    """A DuckDB connection with the tables and views of one run, or of several with a column `run`.

    Raises RecordDamaged for a directory that is no run.
    """
    con = duckdb.connect()
    con.execute("CREATE SCHEMA record; USE record")
    manifests = [run.manifest() for run in runs]
    pictures = [_tables(con, run) for run in runs]
    for table in TABLES:
        parts = [
            picture[table].select(constant(run.name).alias("run"), duckdb.StarExpression())
            for picture, run in zip(pictures, runs, strict=True)
        ]
        reduce(lambda whole, part: whole.union(part), parts).create_view(table)
    for name, view in DERIVED.items():
        con.execute(f"CREATE VIEW record.{name} AS {view.sql}")
    con.execute("USE main")
    for name in (*TABLES, *DERIVED):
        shown = duckdb.StarExpression(exclude=[] if len(runs) > 1 else ["run"])
        con.view(f"record.{name}").select(shown).create_view(name)
    for name, kind in _kinds(manifests).items():
        _create_kind_view(con, name, kind, several=len(runs) > 1)
    return con


def _tables(con: DuckDBPyConnection, run: RunDirectory) -> dict[str, DuckDBPyRelation]:
    """The tables of one run, cut at the same tick.

    The tail is read before the parts are listed, and `ticks` is listed before `events`, while the writer goes
    the other way round: so nothing that is sealed meanwhile is missed, and what is found twice is dropped.
    """
    batches = [b for path in run.segments() for b in read_segment(path)]
    parts = {table: run.parts(table) for table in ("ticks", "decisions", "events")}
    sealed = max((_last_tick(p) for p in parts["ticks"]), default=-1)
    tail = sorted({t: b for b in batches if (t := b["tick"][0].as_py()) > sealed}.items())
    rows = [batch for _, batch in tail]
    return {table: _table(con, parts[table], unpack(rows, table), sealed) for table in TABLES}


def _table(con: DuckDBPyConnection, parts: list[Path], tail: pa.Table, sealed: int) -> DuckDBPyRelation:
    whole = [str(p) for p in parts if _last_tick(p) <= sealed]
    rest = con.from_arrow(tail)
    if not whole:
        return rest
    read = con.read_parquet(whole)
    return read.union(rest) if tail.num_rows else read


def _last_tick(part: Path) -> int:
    try:
        return int(part.stem.split("-")[1])
    except (IndexError, ValueError):
        raise RecordDamaged(f"{part} is not a part of a record") from None


def _kinds(manifests: Sequence[Manifest]) -> dict[str, Kind]:
    """All kinds of event of these runs. Names are checked here: a run directory may come from a stranger."""
    kinds: dict[str, Kind] = {}
    for manifest in manifests:
        for name, kind in manifest.kinds.items():
            names = [name, *(c.name for c in kind.columns)]
            if not all(_IDENTIFIER.fullmatch(n) for n in names) or name in TABLES or name in DERIVED:
                raise RecordDamaged(f"run {manifest.name} declares a kind of event called {name!r}")
            kinds.setdefault(name, kind)
    return kinds


def _create_kind_view(con: DuckDBPyConnection, name: str, kind: Kind, *, several: bool) -> None:
    """A view of one kind of event with exactly the columns it has, typed."""
    shown = ["run"] if several else []
    shown += ["tick", "seq", "actor_id"]
    selection = [column(c) for c in shown]
    for c in kind.columns:
        value = column(c.name) if c.common else duckdb.FunctionExpression(
            "json_extract" if c.type == "JSON" else "json_extract_string", column("data"), constant(f"$.{c.name}")
        )
        selection.append(value.cast(duckdb.type(c.type)).alias(c.name))
    con.view("events").filter(column("kind") == constant(name)).select(*selection).create_view(name)


def query(con: DuckDBPyConnection, sql: str) -> pa.Table:
    """The result of one query. Raises QueryError with DuckDB's own words."""
    try:
        result = con.sql(sql)
        return pa.table({}) if result is None else result.to_arrow_table()
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from None

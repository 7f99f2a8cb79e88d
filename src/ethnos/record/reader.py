"""Reading the record: DuckDB views over sealed parts and the log's tail, of a run that may still be going.

A connection is a picture of the run as of its last committed tick when it was opened; open another for more.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from duckdb import ColumnExpression as column
from duckdb import ConstantExpression as constant
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from ethnos.errors import QueryError, RecordDamaged
from ethnos.record.directory import Kind, Manifest, RunDirectory, find_all, lineage
from ethnos.record.health import read_health
from ethnos.record.log import read_segment, unpack
from ethnos.record.schema import TABLES
from ethnos.record.studied import STUDIED, studied_table

_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI}
_WRITING = {"copy", "insert", "update", "delete", "merge"}

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
CALLS = """
SELECT run, tick, agent_id, mind, how ->> 'stage' AS stage, how ->> 'model' AS model, how ->> 'engine' AS engine,
       TRY_CAST(how ->> 'tokens' AS BIGINT) AS prompt_tokens, TRY_CAST(how ->> 'cached' AS BIGINT) AS cached_tokens,
       TRY_CAST(how ->> 'completion' AS BIGINT) AS completion_tokens,
       TRY_CAST(how ->> 'latency_ms' AS DOUBLE) AS latency,
       TRY_CAST(how ->> 'calls' AS BIGINT) AS calls, TRY_CAST(how ->> 'attempts' AS BIGINT) AS attempts,
       TRY_CAST(how ->> 'cost' AS DOUBLE) AS cost, how ->> 'reason' AS reason, how ->> 'reply' AS reply,
       how -> 'layers' AS layers, how -> 'errors' AS errors
FROM record.decisions WHERE how IS NOT NULL AND how ->> 'stage' IS NOT NULL
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
    "calls": View(
        CALLS,
        "Every turn that went to a language model: how its decision came about.",
        {
            "tick": "when",
            "agent_id": "who",
            "mind": "which mind",
            "stage": "clean, repaired, reasked (asked once more), gave_up, late or failed",
            "model": "as the engine names it",
            "engine": "which engine answered",
            "prompt_tokens": "tokens of all prompts of the turn",
            "cached_tokens": "those of them that the engine had in its cache",
            "completion_tokens": "tokens of all replies of the turn",
            "latency": "from question to answer, in ms; wall clock",
            "calls": "how often the model was asked: 1, or 2 after a re-ask",
            "attempts": "how often an engine was tried",
            "cost": "by the price table, in its currency",
            "reason": "why, in the model's words: untrusted",
            "reply": "the last reply: untrusted",
            "layers": "what was sent: [name, version, hash] each; texts in `layers`",
            "errors": "what was wrong with replies",
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


@dataclass(frozen=True)
class Picture:
    """What one run's record held at one moment: all of it up to the same tick."""

    parts: dict[str, list[Path]]
    """The sealed parts of each table."""
    tail: list[pa.RecordBatch]
    """The ticks after those, as in the write-ahead log."""
    until: int | None = None
    """The last tick of it that counts; None: all."""
    elders: tuple["Picture", ...] = ()
    """For a branch: what it shares with those it comes from, the eldest first."""

    @property
    def generations(self) -> tuple["Picture", ...]:
        return (*self.elders, self)


def picture(run: RunDirectory) -> Picture:
    """Look at a run that may be being written; at a branch together with the history it shares."""
    *elders, (_, _) = lineage(run)
    return replace(_own(run), elders=tuple(replace(_own(e), until=until) for e, until in elders))


def _own(run: RunDirectory) -> Picture:
    """What is in the run's own directory.

    The tail is read before the parts are listed, and `ticks` is listed before `events`, while the writer goes
    the other way round: so nothing that is sealed meanwhile is missed, and what is found twice is dropped.
    """
    batches = [b for path in run.segments() for b in read_segment(path)]
    parts = {table: run.parts(table) for table in reversed(TABLES)}
    sealed = max((_last_tick(p) for p in parts["ticks"]), default=-1)
    tail = {t: b for b in batches if (t := b["tick"][0].as_py()) > sealed}
    whole = {table: [p for p in paths if _last_tick(p) <= sealed] for table, paths in parts.items()}
    return Picture(whole, [tail[t] for t in sorted(tail)])


def stream(
    seen: Picture, table: str, columns: Sequence[str] = (), after: int = -1, until: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of one table in order, a few at a time; all columns or these; of all ticks, or those after
    `after` and up to `until`. Raises RecordDamaged."""
    names = list(columns) or TABLES[table].names
    wanted = list(dict.fromkeys([*names, "tick"]))
    for one in seen.generations:
        last = min((t for t in (one.until, until) if t is not None), default=None)
        for batch in _stream_own(one, table, wanted, after):
            yield _between(batch, after, last).select(names)


def _stream_own(seen: Picture, table: str, names: list[str], after: int) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([TABLES[table].field(n) for n in names])
    for part in seen.parts[table]:
        if _last_tick(part) <= after:
            continue
        try:
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches(65_536, columns=names):
                    yield batch.select(names).cast(schema)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise RecordDamaged(f"{part}: {error}") from None
    yield from unpack(seen.tail, table).select(names).to_batches()


def _between(batch: pa.RecordBatch, after: int, until: int | None) -> pa.RecordBatch:
    """The rows of these ticks; ticks ascend."""
    if after < 0 and until is None:
        return batch
    ticks = batch["tick"].to_numpy()
    first = int(np.searchsorted(ticks, after, "right"))
    end = len(ticks) if until is None else int(np.searchsorted(ticks, until, "right"))
    return batch.slice(first, max(0, end - first))


class Rows:
    """A stream of batches of one table from which any number of rows can be taken."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self._nothing = pa.RecordBatch.from_pylist([], schema)
        self._batch: pa.RecordBatch | None = None

    def take(self, count: int) -> pa.RecordBatch:
        """The next `count` rows as one batch. Raises RecordDamaged if there are not as many."""
        taken = []
        while count > 0:
            batch = self._batch if self._batch is not None else next(self._batches, None)
            if batch is None:
                raise RecordDamaged("rows are missing: there are fewer than `ticks` counts")
            taken.append(batch.slice(0, count))
            count -= taken[-1].num_rows
            self._batch = batch.slice(taken[-1].num_rows) if not count else None
        return pa.concat_batches(taken) if len(taken) > 1 else taken[0] if taken else self._nothing

    def left(self) -> bool:
        """Whether there are more; none can be taken after that."""
        rest = [self._batch] if self._batch is not None else []
        return any(b.num_rows for b in (*rest, *self._batches))


def open_run(*names: str | Path) -> DuckDBPyConnection:
    """The record of a run, or of several (`exp*` stands for all that match), as a DuckDB connection.

    With several runs every table has a column `run`. Raises RunNotFound, RecordDamaged.
    """
    return connect(*find_all(map(str, names)))


def connect(*runs: RunDirectory, run_column: bool | None = None, through_arrow: bool = False) -> DuckDBPyConnection:
    """A DuckDB connection with the tables and views of one run, or of several with a column `run`.

    `run_column` says whether that column is there, else it depends on the number of runs. `through_arrow` reads
    the sealed parts through Arrow, which is slower, but needs no access of DuckDB's own to files. Raises RecordDamaged
    for a directory that is no run.
    """
    several = len(runs) > 1 if run_column is None else run_column
    kinds = _kinds([run.manifest() for run in runs])
    con = duckdb.connect()
    con.execute("SET parquet_metadata_cache = true")
    try:
        _create_tables(con, runs, through_arrow=through_arrow)
        _create_views(con, kinds, several=several)
        _create_studied(con, runs, kinds, several=several)
    except (duckdb.Error, RuntimeError) as error:  # RuntimeError: a part's column has a name that is no UTF-8
        con.close()
        raise RecordDamaged(f"{', '.join(r.name for r in runs)}: {str(error).strip()}") from None
    return con


def _create_tables(con: DuckDBPyConnection, runs: Sequence[RunDirectory], *, through_arrow: bool) -> None:
    """The tables of all runs, with a column `run`, in the schema `record`."""
    con.execute("CREATE SCHEMA record; USE record")
    pictures = [picture(run) for run in runs]
    for table in TABLES:
        parts = [
            _table(con, seen, table, through_arrow).select(constant(run.name).alias("run"), duckdb.StarExpression())
            for seen, run in zip(pictures, runs, strict=True)
        ]
        reduce(lambda whole, part: whole.union(part), parts).create_view(table)
    health = [
        con.from_arrow(read_health(run)).select(constant(run.name).alias("run"), duckdb.StarExpression())
        for run in runs
    ]
    reduce(lambda whole, part: whole.union(part), health).create_view("health")


def _table(con: DuckDBPyConnection, seen: Picture, table: str, through_arrow: bool) -> DuckDBPyRelation:
    """A table over all generations of a run, each up to where the next one branched off."""
    shared = [
        _own_table(con, one, table, through_arrow).filter(column("tick") <= constant(one.until))
        if one.until is not None
        else _own_table(con, one, table, through_arrow)
        for one in seen.generations
    ]
    return reduce(lambda whole, part: whole.union(part), shared)


def _own_table(con: DuckDBPyConnection, seen: Picture, table: str, through_arrow: bool) -> DuckDBPyRelation:
    tail = con.from_arrow(unpack(seen.tail, table))
    if not seen.parts[table]:
        return tail
    typed = [column(n).cast(t).alias(n) for n, t in zip(tail.columns, tail.types, strict=True)]
    if through_arrow:
        parts = con.from_arrow(pyarrow.dataset.dataset(seen.parts[table], schema=TABLES[table], format="parquet"))
    else:
        parts = con.read_parquet([_literally(part) for part in seen.parts[table]])
    sealed = parts.select(*typed)
    return sealed.union(tail) if seen.tail else sealed


def _literally(path: Path) -> str:
    """The path as DuckDB takes it: it would read `*`, `?` and `[` as patterns."""
    return re.sub(r"[*?\[]", lambda m: f"[{m[0]}]", str(path))


def _create_views(con: DuckDBPyConnection, kinds: Mapping[str, Kind], *, several: bool) -> None:
    for name, view in DERIVED.items():
        con.execute(f"CREATE VIEW record.{name} AS {view.sql}")
    con.execute("USE main")
    for name in (*TABLES, "health", *DERIVED):
        shown = duckdb.StarExpression(exclude=[] if several else ["run"])
        con.view(f"record.{name}").select(shown).create_view(name)
    for name, kind in kinds.items():
        _create_kind_view(con, name, kind, several=several)


def _create_studied(
    con: DuckDBPyConnection, runs: Sequence[RunDirectory], kinds: Mapping[str, Kind], *, several: bool
) -> None:
    """The tables of those runs that have been studied; a kind of event of the same name goes before."""
    for table in STUDIED:
        found = [
            con.from_arrow(rows).select(constant(run.name).alias("run"), duckdb.StarExpression())
            for run in runs
            if table not in kinds and (rows := studied_table(run, table)) is not None
        ]
        if found:
            shown = duckdb.StarExpression(exclude=[] if several else ["run"])
            reduce(lambda whole, part: whole.union(part), found).select(shown).create_view(table)


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
            if not all(_IDENTIFIER.fullmatch(n) for n in names) or name in (*TABLES, "health", *DERIVED):
                raise RecordDamaged(f"run {manifest.name} declares a kind of event called {name!r}")
            kinds.setdefault(name, kind)
    return kinds


def _create_kind_view(con: DuckDBPyConnection, name: str, kind: Kind, *, several: bool) -> None:
    """A view of one kind of event with exactly the columns it has, typed."""
    shown = ["run"] if several else []
    shown += ["tick", "seq", "actor_id"]
    selection = [column(c) for c in shown]
    for c in kind.columns:
        value = (
            column(c.name)
            if c.common
            else duckdb.FunctionExpression(
                "json_extract" if c.type == "JSON" else "json_extract_string",
                column("data"),
                constant(f"$.{c.name}"),
            )
        )
        selection.append(value.cast(duckdb.type(c.type)).alias(c.name))
    con.view("events").filter(column("kind") == constant(name)).select(*selection).create_view(name)


def query(con: DuckDBPyConnection, sql: str) -> pa.Table:
    """The result of one query that only reads. Raises QueryError with DuckDB's own words."""
    return table_of(stream_query(con, sql))


def stream_query(con: DuckDBPyConnection, sql: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Columns and rows of one query that only reads, piece by piece. Raises QueryError, now or later."""
    try:
        _check_reads_only(con, sql)
        result = con.sql(sql)
        if result is None:
            return pa.schema([]), iter(())
        reader = result.to_arrow_reader(16_384)
    except duckdb.Error as error:
        raise QueryError(str(error).strip()) from None
    return reader.schema, _batches(reader)


def table_of(result: tuple[pa.Schema, Iterator[pa.RecordBatch]]) -> pa.Table:
    """All of a streamed result."""
    schema, batches = result
    return pa.Table.from_batches(batches, schema)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise QueryError(str(error).strip()) from None


def _check_reads_only(con: DuckDBPyConnection, sql: str) -> None:
    """Keeps a slip of the pen from writing. It is no sandbox for strangers: SQL can still read any file."""
    statements = con.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"one query, please, not {len(statements)}")
    if statements[0].type not in _READING or (word := _writing_word(sql)):
        what = word if statements[0].type in _READING else statements[0].type.name
        raise QueryError(f"{what.upper()} is not taken here: a record is only read")


def _writing_word(sql: str) -> str:
    """A keyword that writes wherever it stands, also inside a query; empty if there is none."""
    text = sql.encode()
    tokens = duckdb.tokenize(sql)
    ends = [offset for offset, _ in tokens[1:]] + [len(text)]
    keywords = (text[a:b] for (a, t), b in zip(tokens, ends, strict=True) if t == duckdb.token_type.keyword)
    words = (w.strip().decode(errors="replace").lower() for w in keywords)
    return next((w for w in words if w in _WRITING), "")

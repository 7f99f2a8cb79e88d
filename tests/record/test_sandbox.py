"""Strangers' SQL: what real attempts at more than reading a run come to."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethnos.errors import QueryError
from ethnos.record.sandbox import Limits, Sandbox
from tests.tiny import Made, make_run, orchard

HERE = Limits(seconds=5.0, rows=500, answer_bytes=4 << 20, memory_bytes=256 << 20)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_run("orchard", folder=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HERE) as sandbox:
        sandbox.warm()
        yield sandbox


READS = {
    "a table": ("SELECT count(*) AS n FROM events", 1),
    "a view": ("FROM agents WHERE parent_id IS NULL", 5),
    "a kind of event": ("SELECT sum(apples) FROM picked", 1),
    "WITH": ("WITH t AS (SELECT tick FROM ticks) SELECT * FROM t WHERE tick < 3", 3),
    "a comment": ("-- COPY\nSELECT 1 /* ATTACH */", 1),
    "EXPLAIN": ("EXPLAIN SELECT * FROM events", 1),
}


@pytest.mark.parametrize("name", READS)
def test_what_reads_is_answered(name: str, sandbox: Sandbox, made: Made) -> None:
    sql, rows = READS[name]
    assert sandbox.ask([made.run], sql).table.num_rows == rows


ELSEWHERE = {
    # files
    "COPY TO": "COPY events TO '{out}'",
    "COPY FROM": "COPY events FROM '{secret}'",
    "COPY in WITH": "WITH x AS (COPY (SELECT 1) TO '{out}') SELECT * FROM x",
    "EXPLAIN ANALYZE COPY": "EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'",
    "over the record itself": "COPY (SELECT 1) TO '{part}'",
    "read_text": "SELECT * FROM read_text('{secret}')",
    "read_blob": "SELECT * FROM read_blob('{secret}')",
    "read_csv": "SELECT * FROM read_csv('{secret}')",
    "read_json": "SELECT * FROM read_json('{secret}')",
    "read_parquet": "SELECT * FROM read_parquet('{part}')",
    "a file as a table": "SELECT * FROM '{secret}'",
    "a Parquet file as a table": "SELECT * FROM '{part}'",
    "glob": "SELECT * FROM glob('/*')",
    "parquet_schema": "SELECT * FROM parquet_schema('{part}')",
    "parquet_metadata": "SELECT * FROM parquet_metadata('{part}')",
    "sniff_csv": "SELECT * FROM sniff_csv('{secret}')",
    "query_table": "SELECT * FROM query_table('{secret}')",
    "query": "SELECT * FROM query('FROM read_text(''{secret}'')')",
    "EXPORT": "EXPORT DATABASE '{out}'",
    "IMPORT": "IMPORT DATABASE '{out}'",
    "read_ndjson_objects": "SELECT * FROM read_ndjson_objects('{secret}')",
    # other databases, extensions, network
    "ATTACH": "ATTACH '{out}' AS o",
    "ATTACH over HTTP": "ATTACH 'http://127.0.0.1:{port}/x.db' AS o",
    "DETACH": "DETACH memory",
    "USE": "USE memory",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD '{out}'",
    "LOAD a known one": "LOAD httpfs",
    "over HTTP": "SELECT * FROM read_csv('http://127.0.0.1:{port}/x.csv')",
    "over HTTP as a table": "SELECT * FROM 'http://127.0.0.1:{port}/x.parquet'",
    "over S3": "SELECT * FROM 's3://bucket/x.parquet'",
    "a secret": "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    # settings
    "SET": "SET enable_external_access = true",
    "SET memory": "SET memory_limit = '100GB'",
    "RESET": "RESET enable_external_access",
    "PRAGMA": "PRAGMA enable_external_access = true",
    "set_config": "SELECT set_config('memory_limit', '100GB')",
    "a log file": "CALL enable_logging(storage = 'file', storage_path = '{out}')",
    "a profile": "PRAGMA enable_profiling = 'json'",
    # other statements
    "two": "SELECT 1; SELECT 2",
    "one after another": "SELECT 1; COPY events TO '{out}'",
    "CREATE TABLE": "CREATE TABLE mine AS SELECT * FROM events",
    "CREATE MACRO": "CREATE MACRO now() AS 1",
    "INSERT": "INSERT INTO events SELECT * FROM events",
    "DELETE": "DELETE FROM events",
    "UPDATE": "UPDATE events SET tick = 0",
    "DROP": "DROP VIEW events",
    "CHECKPOINT": "CHECKPOINT",
    "PREPARE": "PREPARE p AS COPY events TO '{out}'",
    "EXECUTE": "EXECUTE p",
    # around the run
    "the environment": "SELECT getenv('HOME')",
    "a Python variable": "SELECT * FROM made",
    "nothing": "",
    "a comment alone": "-- nothing",
    "not SQL": "rm -rf /",
    "a zero byte": "SELECT '\x00' || (FROM read_text('{secret}'))",
}

TOO_MUCH = {
    "endless counting": "SELECT count(*) FROM range(100000000000) a, range(100000000000) b",
    "endless recursion": "WITH RECURSIVE t AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t",
    "a long text": "SELECT repeat('x', 3000000000)",
    "many long texts": "SELECT length(repeat(CAST(i AS VARCHAR), 300000000)) FROM range(50) r(i)",
    "lpad": "SELECT lpad('x', 2000000000, 'y')",
    "a large list": "SELECT list(i) FROM range(1000000000) r(i)",
    "a large sort": "SELECT i FROM range(2000000000) r(i) ORDER BY hash(i) DESC LIMIT 5 OFFSET 1000000000",
    "a cross join": "SELECT max(hash(a.range, b.range)) FROM range(10000000) a, range(10000000) b",
    "a large answer": "SELECT repeat('x', 100000) AS x FROM range(400)",
    "a regular expression": "SELECT count(*) FROM range(100000000000) r(i) WHERE regexp_matches(repeat('a', i), 'a+b')",
    "a long query": "SELECT " + "1 + " * 20_000 + "1",
    "a deep query": "SELECT " + "(" * 9_000 + "1" + ")" * 9_000,
}


QUICK = (
    "COPY TO",
    "COPY in WITH",
    "EXPLAIN ANALYZE COPY",
    "over the record itself",
    "read_text",
    "a file as a table",
    "query",
    "ATTACH over HTTP",
    "LOAD a known one",
    "over HTTP",
    "SET",
    "PRAGMA",
    "two",
    "a Python variable",
    "a long text",
    "a large answer",
    "a long query",
    "a deep query",
)
"""Those that every check tries; the others take minutes in all: `pytest -m slow tests/record/test_sandbox.py`."""


def each(attempts: dict[str, str]) -> list[object]:
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in attempts]


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[int, list[object]]]:
    """A port that notes whoever knocks."""
    knocks: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                try:
                    knocks.append(server.accept()[1])
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen)
        thread.start()
        yield server.getsockname()[1], knocks
        over.set()
        thread.join()


@pytest.mark.parametrize("name", each(ELSEWHERE))
def test_nothing_else_is_reached(
    name: str, sandbox: Sandbox, made: Made, tmp_path: Path, listener: tuple[int, list[object]]
) -> None:
    port, knocks = listener
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("word\nkept-to-itself\n")
    before = files_of(made.run.path)
    sql = ELSEWHERE[name].format(secret=secret, out=out, part=made.run.parts("events")[0], port=port)
    with pytest.raises(QueryError) as refused:
        sandbox.ask([made.run], sql)
    assert "kept-to-itself" not in str(refused.value)
    assert str(refused.value)
    assert not out.exists()
    assert files_of(made.run.path) == before
    assert knocks == []


@pytest.mark.parametrize("name", each(TOO_MUCH))
def test_too_much_is_stopped(name: str, sandbox: Sandbox, made: Made) -> None:
    with pytest.raises(QueryError, match=r"stopped|at most|more than|Parser Error|memory|depth|longer"):
        sandbox.ask([made.run], TOO_MUCH[name])
    assert sandbox.ask([made.run], "SELECT 1 AS one").table.to_pylist() == [{"one": 1}]


def test_many_rows_are_cut_off_and_that_is_said(sandbox: Sandbox, made: Made) -> None:
    answer = sandbox.ask([made.run], "SELECT * FROM range(100000)")
    assert (answer.table.num_rows, answer.more) == (HERE.rows, True)
    assert not sandbox.ask([made.run], "SELECT * FROM range(10)").more


def test_one_query_leaves_nothing_for_the_next(sandbox: Sandbox, made: Made) -> None:
    with pytest.raises(QueryError):
        sandbox.ask([made.run], "CREATE TEMP VIEW events AS SELECT 1 AS forged")
    assert "seq" in sandbox.ask([made.run], "SELECT * FROM events LIMIT 1").table.column_names


def test_its_process_inherits_nothing(sandbox: Sandbox, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHNOS_SECRET", "kept-to-itself")
    with Sandbox(HERE) as fresh:
        fresh.warm()
        assert fresh.ask([made.run], "SELECT 1").table.num_rows == 1
        (waiting,) = fresh._idle
        environment = Path(f"/proc/{waiting.pid}/environ").read_bytes()
        assert b"kept-to-itself" not in environment
        held = Path(f"/proc/{waiting.pid}/fd")
        assert all(not str(h.readlink()).startswith(str(made.run.path)) for h in held.iterdir())


def test_a_run_that_is_written_is_read_up_to_its_last_tick(tmp_path: Path, sandbox: Sandbox) -> None:
    made = make_run("going", orchard(12), tmp_path, finish=False, seal=False)
    assert sandbox.ask([made.run], "SELECT max(tick) AS t FROM ticks").table.to_pylist() == [{"t": 12}]


def test_several_runs_have_a_column_for_their_name(made: Made, tmp_path: Path, sandbox: Sandbox) -> None:
    other = make_run("other", orchard(5), tmp_path)
    answer = sandbox.ask([made.run, other.run], "SELECT run, max(tick) AS t FROM ticks GROUP BY run ORDER BY run")
    assert answer.table.to_pylist() == [{"run": "orchard", "t": 30}, {"run": "other", "t": 5}]

"""Reading: live, foreign and hostile runs."""

import multiprocessing
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ethnos.errors import EthnosError, QueryError, RecordDamaged, RunNotFound
from ethnos.record import log as logs
from ethnos.record.describe import tables
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.reader import connect, query
from ethnos.record.verify import verify
from tests.tiny import make_run, orchard, steps

NO_GAP = """
SELECT count(*) = count(DISTINCT seq) AND max(seq) + 1 = count(*) AND max(tick) = (SELECT max(tick) FROM ticks)
       AND count(*) = (SELECT sum(events) FROM ticks) FROM events
"""


def write(path: str, ticks: int) -> None:
    logs.SEAL_ROWS = 1500
    with Log(RunDirectory(Path(path))) as log:
        for step in steps(orchard(ticks)):
            log.commit(step, {}, 1.0)
        log.seal()


def test_a_run_can_be_read_while_it_is_written(runs: Path) -> None:
    run = make_run("live", orchard(1), finish=False).run
    for table in ("events", "decisions", "ticks"):
        for part in run.parts(table):
            part.unlink()
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(str(run.path), 500))
    writer.start()
    seen: list[int] = []
    while writer.is_alive():
        with connect(run) as con:
            (last,) = con.execute("SELECT coalesce(max(tick), -1) FROM ticks").fetchone()
            if last >= 0:
                assert con.execute(NO_GAP).fetchone() == (True,)
        assert last >= (seen[-1] if seen else -1)
        seen.append(last)
        time.sleep(0.01)
    assert writer.exitcode == 0
    assert len(set(seen)) > 3
    found = verify(run)
    assert found.ok, found
    assert found.ticks == 500


def test_several_runs_have_a_column_run(runs: Path) -> None:
    one, two = make_run("one").run, make_run("two", orchard(5), seal=False).run
    with connect(one, two) as con:
        assert query(con, "SELECT run, max(tick) FROM grew GROUP BY run ORDER BY 1").to_pylist() == [
            {"run": "one", "max(tick)": 30},
            {"run": "two", "max(tick)": 5},
        ]
    with connect(one) as con, pytest.raises(QueryError):
        query(con, "SELECT run FROM events")


def test_a_path_that_looks_like_a_pattern_is_that_path(tmp_path: Path) -> None:
    make_run("a", orchard(3), tmp_path / "set1")
    odd = make_run("a", orchard(9), tmp_path / "set[1]*?").run
    with connect(odd) as con:
        assert query(con, "SELECT max(tick) AS t FROM ticks").to_pylist() == [{"t": 9}]


def test_views_have_the_types_of_their_kinds(runs: Path) -> None:
    run = make_run("typed").run
    with connect(run) as con:
        assert [str(t) for t in con.view("picked").types[-2:]] == ["BIGINT", "DOUBLE"]
        total = query(con, "SELECT sum(apples) AS n FROM picked").to_pylist()[0]["n"]
        assert total > 0
        assert query(con, "SELECT count(*) AS n FROM agents WHERE generation > 0").to_pylist() == [{"n": 6}]
    described = {t.name: t for t in tables(run)}
    assert {"events", "ticks", "agents", "grew"} <= described.keys()
    assert all(t.meaning for t in described.values())
    assert {c.name: (c.type, c.unit, c.meaning) for c in described["grew"].columns}["amount"] == (
        "DOUBLE",
        "apples",
        "how many",
    )


WRITES = [
    "COPY events TO '{}'",
    "with x as (copy (select 1) to '{}') select 1",
    "explain analyze copy (select 1) to '{}'",
    "select 1; copy (select 1) to '{}'",
    "select 'ä' as x; copy (select 1) to '{}'",
    "with \"ä\" as (/* select */ copy (select 1) to '{}') select 1",
    "attach '{}' as d",
    "export database '{}'",
    "install json",
    "create table t as select 1",
    "drop view events",
    "set threads = 1",
    "pragma enable_profiling",
    "",
]


@pytest.mark.parametrize("sql", WRITES)
def test_what_writes_is_refused(runs: Path, tmp_path: Path, sql: str) -> None:
    with connect(make_run("a", orchard(2)).run) as con, pytest.raises(QueryError):
        query(con, sql.format(tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "from events",
        "describe events",
        "summarize ticks",
        "explain select 1",
        "show tables",
        "values (1)",
        "select 'copy' as \"insert\"",
        "pivot ticks on tick % 2 using sum(events)",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) from t",
    ],
)
def test_what_reads_is_answered(runs: Path, sql: str) -> None:
    with connect(make_run("a", orchard(2)).run) as con:
        assert query(con, sql).num_columns > 0


def change_manifest(run: RunDirectory, change: dict) -> None:
    manifest = msgspec.json.decode(run.manifest_path.read_bytes())
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(manifest[key], dict):
            manifest[key].update(value)
        else:
            manifest[key] = value
    run.manifest_path.write_bytes(msgspec.json.encode(manifest))


COLUMN = {"name": "amount", "type": "DOUBLE", "common": True}
HOSTILE = [
    {"format": 2},
    {"format": "1"},
    {"state": "exploded"},
    {"kinds": []},
    {"kinds": {"x; drop table events": {"meaning": "", "columns": []}}},
    {"kinds": {'x"': {"meaning": "", "columns": []}}},
    {"kinds": {"events": {"meaning": "", "columns": []}}},
    {"kinds": {"agents": {"meaning": "", "columns": []}}},
    {"kinds": {"A": {"meaning": "", "columns": []}}},
    {"kinds": {"ok": {"meaning": "", "columns": [{**COLUMN, "name": "a, (select 1)"}]}}},
    {"kinds": {"ok": {"meaning": "", "columns": [{**COLUMN, "name": "amount\n"}]}}},
    {"kinds": {"ok": {"meaning": "", "columns": [{**COLUMN, "type": "INT); DROP"}]}}},
    {"kinds": {"ok": {"meaning": "", "columns": [{**COLUMN, "name": "no_such_column"}]}}},
    {"kinds": {"ok": {"meaning": "", "columns": [COLUMN, COLUMN], "more": 1}}},
]


@pytest.mark.parametrize("change", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_manifest_is_damage(runs: Path, change: dict) -> None:
    run = make_run("hostile", orchard(2)).run
    change_manifest(run, change)
    with pytest.raises(RecordDamaged):
        connect(run)
    with pytest.raises(RecordDamaged):
        tables(run)


def test_a_hostile_ledger_is_damage(runs: Path) -> None:
    for flow in [
        {"kind": "grew' OR 1=1 --", "field": "amount", "sign": 1},
        {"kind": "grew", "field": "$.x", "sign": 1},
    ]:
        run = make_run(f"hostile{flow['field'][0:1] == '$'}", orchard(2)).run
        change_manifest(run, {"conserved": {"apples": [flow]}})
        found = verify(run)
        assert not found.ok
        assert found.ledger_residual is None


@pytest.mark.parametrize("name", ["manifest.json", "events", "ticks", "decisions", "society.yaml"])
@pytest.mark.parametrize("content", [b"", b"\0\xff junk", b"PAR1junkPAR1", b"[" * 100_000])
def test_junk_in_a_run_is_damage_not_a_crash(runs: Path, name: str, content: bytes) -> None:
    run = make_run("junk", orchard(2)).run
    path = run.path / name
    (path if path.is_file() else run.parts(name)[0]).write_bytes(content)

    from ethnos.analytics.summary import summarise

    with pytest.raises(EthnosError):
        summarise(run)
    try:
        assert name == "society.yaml" or not verify(run).ok
    except RecordDamaged:
        assert name == "manifest.json"


def test_a_column_whose_name_is_no_text_is_damage(runs: Path) -> None:
    run = make_run("odd").run
    part = run.parts("events")[0]
    part.write_bytes(part.read_bytes().replace(b"artifact_id", b"artifact\xff\xfe\xfd"))
    with pytest.raises(RecordDamaged):
        connect(run)


def test_parts_of_other_columns_are_damage(runs: Path) -> None:
    run = make_run("other", orchard(2)).run
    pq.write_table(pa.table({"tick": ["zero"], "evil": [1]}), run.parts("events")[0])
    assert not verify(run).ok
    with pytest.raises(RecordDamaged):
        connect(run)
    (run.path / "events" / "what.parquet").write_bytes(b"")
    with pytest.raises(RecordDamaged):
        connect(run)


def test_there_is_no_such_run(runs: Path) -> None:
    with pytest.raises(RunNotFound, match="ethnos runs"):
        RunDirectory.find("nix")


def test_an_empty_run_can_be_asked(runs: Path) -> None:
    from ethnos.analytics.summary import summarise
    from ethnos.run import create

    run = create(orchard(), "empty")
    with connect(run) as con:
        assert query(con, "SELECT count(*) AS n FROM events").to_pylist() == [{"n": 0}]
    found = verify(run)
    assert found.ok
    assert found.ticks == -1
    assert summarise(run).state == "crashed"

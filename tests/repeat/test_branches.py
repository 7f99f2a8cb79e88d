"""Replays and branches: a run is a value."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ethnos.actors.here import run_here
from ethnos.errors import RecordDamaged, RunBusy, RunError, RunExists, SocietyError
from ethnos.fork import fork
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import look, replay
from ethnos.run import check_resumable, create
from ethnos.society import load, parse
from ethnos.world.interventions import Tell
from ethnos.world.rebuild import rebuild
from tests.conftest import SOCIETY


@pytest.fixture
def parent(tmp_path: Path) -> RunDirectory:
    run = create(parse(SOCIETY, changes=["snapshot_every=15"]), "parent", tmp_path)
    run_here(run)
    return run


def contents(run: RunDirectory) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(run.path.rglob("*")) if p.is_file()}


def digest_at(run: RunDirectory, tick: int) -> Any:
    with connect(run) as con:
        return con.execute("SELECT digest FROM ticks WHERE tick = ?", [tick]).fetchone()


def branch(run: RunDirectory, at: int, name: str, **options: Any) -> RunDirectory:
    made = fork(run, at, name=name, folder=run.path.parent, **options)
    run_here(made)
    assert verify(made).ok
    assert replay(made).ok
    return made


def test_nothing_changed_nothing_differs(parent: RunDirectory) -> None:
    before = contents(parent)
    same = branch(parent, 20, "same")
    assert same.manifest().digest == parent.manifest().digest
    assert contents(parent) == before
    assert min(int(p.name[:10]) for p in same.parts("events")) == 21, "the history is not copied"
    for table in ("events", "ticks", "decisions"):
        sql = f"SELECT * EXCLUDE ({'latency' if table == 'decisions' else 'tick'}) FROM {table}"
        sql = "SELECT tick, digest FROM ticks" if table == "ticks" else f"{sql} ORDER BY ALL"
        assert connect(same).sql(sql).fetchall() == connect(parent).sql(sql).fetchall()


@pytest.mark.parametrize(
    "options",
    [
        {"changes": ["world.food.spawn_rate=30"]},
        {"changes": ["seed=99"]},
        {"changes": ["population.0.mind=wanderer"]},
        {"interventions": [Tell(text="hello")]},
    ],
)
def test_one_change_differs_from_there_on(parent: RunDirectory, options: Any) -> None:
    other = branch(parent, 20, "other", **options)
    assert digest_at(other, 20) == digest_at(parent, 20)
    assert digest_at(other, 21) != digest_at(parent, 21) or digest_at(other, 25) != digest_at(parent, 25)
    assert other.manifest().digest != parent.manifest().digest


def test_forks_of_forks(parent: RunDirectory) -> None:
    first = branch(parent, 10, "first", changes=["world.food.spawn_rate=3"])
    second = branch(first, 25, "second")
    assert second.manifest().digest == first.manifest().digest
    at_the_fork = branch(first, 10, "at-the-fork")
    assert at_the_fork.manifest().digest == first.manifest().digest
    early = branch(second, 5, "early")
    assert early.manifest().parent is not None
    assert early.manifest().parent.name == "parent", "tick 5 of all of them is the parent's"  # type: ignore[union-attr]
    assert early.manifest().digest == parent.manifest().digest
    for run in (parent, first, second):
        shutil.rmtree(run.snapshots)
    assert rebuild(second).tick == 40
    with connect(second) as con:
        assert con.sql("SELECT count(*), min(seq), max(seq) + 1, count(DISTINCT seq) FROM events").fetchall()[0][1] == 0


def test_what_interventions_have_set_holds_in_a_branch(tmp_path: Path) -> None:
    planned = (
        "interventions: [{tick: 5, do: set_parameter, name: food.spawn_rate, value: 9}, {tick: 30, do: tell, text: x}]"
    )
    run = create(parse(SOCIETY + planned), "planned", tmp_path)
    run_here(run)
    again = branch(run, 20, "again")
    assert parse(again.society.read_text()).world["food"]["spawn_rate"] == 9
    assert again.manifest().digest == run.manifest().digest


def test_a_branch_of_a_run_that_crashed(tmp_path: Path, parent: RunDirectory) -> None:
    crashed = RunDirectory(tmp_path / "crashed")
    shutil.copytree(parent.path, crashed.path)
    manifest = crashed.manifest()
    manifest.state = "running"
    crashed.write_manifest(manifest)
    assert branch(crashed, 39, "of-crashed").manifest().digest == parent.manifest().digest


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["population.0.count=11"], "history"),
        (["population.0.cohort=others"], "history|already"),
        (["scenario=commons", "world={}", "population.0.mind=greedy"], "scenario"),
        (["world.width=60"], "how the world was made"),
        (["ticks=20"], "over at the fork"),
    ],
)
def test_history_cannot_be_changed(parent: RunDirectory, changes: list[str], reason: str) -> None:
    with pytest.raises(SocietyError, match=reason):
        fork(parent, 20, changes=changes, name="bad", folder=parent.path.parent)
    assert not (parent.path.parent / "bad").exists()


def test_a_tick_that_is_not_there(parent: RunDirectory) -> None:
    with pytest.raises(RunError, match="has no tick 41"):
        fork(parent, 41, folder=parent.path.parent)
    with pytest.raises(RunError, match="has no tick 50"):
        replay(parent, 50)


def test_a_parent_that_is_gone_or_was_exchanged(parent: RunDirectory, tmp_path: Path) -> None:
    made = branch(parent, 20, "child")
    parent.path.rename(tmp_path / "elsewhere")
    with pytest.raises(RecordDamaged, match="is not at"):
        connect(made)
    other = create(parse(SOCIETY, changes=["seed=1"]), "parent", tmp_path)
    run_here(other)
    found = verify(made)
    assert not found.ok
    assert {c.name for c in found.checks if not c.ok} >= {"parent"}
    shutil.rmtree(made.snapshots)
    with pytest.raises(RecordDamaged):
        rebuild(made)


def test_replay_names_the_first_difference(parent: RunDirectory) -> None:
    part = parent.parts("events")[0]
    table = pq.read_table(part)
    seq = next(
        i
        for i, (t, k) in enumerate(zip(*table.select(["tick", "kind"]).to_pydict().values(), strict=True))
        if t == 12 and k == "moved"
    )
    xs = table["x"].to_pylist()
    xs[seq] += 1
    pq.write_table(table.set_column(table.schema.get_field_index("x"), table.schema.field("x"), pa.array(xs)), part)
    # the chain of digests is forged, too, from there on
    found = replay(parent)
    assert found.ok, "digests are held against the record's digests, rows only tell where"
    ticks = parent.parts("ticks")[0]
    forged = pq.read_table(ticks).to_pydict()
    forged["digest"][12] = "0" * 64
    pq.write_table(pa.table(forged, pq.read_schema(ticks)), ticks)
    found = replay(parent)
    assert (found.ok, found.tick) == (False, 11)
    assert found.difference is not None
    assert (found.difference.tick, found.difference.seq) == (12, seq)
    assert found.difference.expected is not None
    assert found.difference.found is not None
    assert found.difference.expected["x"] == found.difference.found["x"] + 1


def test_a_world_to_look_at(parent: RunDirectory) -> None:
    shown = look(replay(parent, 12).world)
    assert msgspec.json.decode(msgspec.json.encode(shown))["tick"] == 12
    with connect(parent) as con:
        population = con.sql("SELECT population FROM ticks WHERE tick = 12").fetchall()
    assert len(shown["agents"]) == population[0][0]


def test_stale_and_foreign_directories_are_refused_and_left_alone(parent: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(RunExists):
        create(parse(SOCIETY), "parent", tmp_path)
    with pytest.raises(RunError, match="is over"):
        check_resumable(parent)
    parent.go_on()
    check_resumable(parent)
    before = contents(parent)
    with parent.lock(), pytest.raises(RunBusy):
        check_resumable(parent)
    text = parent.society.read_text()
    parent.society.write_text(text.replace("ticks: 40", "ticks: 80"))
    for refused in (check_resumable, replay, lambda run: fork(run, 3, folder=tmp_path)):
        with pytest.raises(RunError, match="altered"):
            refused(parent)
    parent.society.write_text(text)
    manifest = parent.manifest()
    manifest.rules = "another version's"
    parent.write_manifest(manifest)
    with pytest.raises(RunError, match="declares other"):
        check_resumable(parent)
    manifest.rules, manifest.format = "", 99
    parent.write_manifest(manifest)
    with pytest.raises(RecordDamaged, match="format 99"):
        check_resumable(parent)
    manifest.format = 1
    parent.write_manifest(manifest)
    assert {k: v for k, v in contents(parent).items() if "lock" not in k and "manifest" not in k} == {
        k: v for k, v in before.items() if "lock" not in k and "manifest" not in k
    }


def test_parts_with_a_gap_are_refused(parent: RunDirectory) -> None:
    parent.go_on()
    for table in ("events", "decisions", "ticks"):
        [part] = list((parent.path / table).glob("*.parquet"))
        part.rename(part.with_name("0000000005-0000000040.parquet"))
    with pytest.raises(RecordDamaged, match="is followed by tick 5"):
        check_resumable(parent)


def test_a_world_that_takes_turns_is_replayed(tmp_path: Path) -> None:
    run = create(load("commons", ["ticks=22"]), "months", tmp_path)
    run_here(run)
    assert replay(run).ok

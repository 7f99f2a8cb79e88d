"""Snapshots make resuming quick and are never needed."""

import logging
import os
from pathlib import Path

import pytest

from ethnos.actors.here import run_here
from ethnos.record import snapshots
from ethnos.record.directory import RunDirectory
from ethnos.run import create
from ethnos.society import parse
from ethnos.world import rebuild as rebuilding
from ethnos.world.rebuild import rebuild, society_of
from tests.conftest import SOCIETY


def made(folder: Path, name: str, *changes: str) -> RunDirectory:
    run = create(parse(SOCIETY, changes=["ticks=50", "snapshot_every=10", *changes]), name, folder)
    run_here(run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return made(tmp_path_factory.mktemp("runs"), "run")


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ticks that are executed again."""
    ticks: list[int] = []
    execute = rebuilding.execute

    def noting(world, society, recorded):  # type: ignore[no-untyped-def]
        ticks.append(recorded.tick)
        return execute(world, society, recorded)

    monkeypatch.setattr(rebuilding, "execute", noting)
    return ticks


def paths(run: RunDirectory) -> list[Path]:
    return list(snapshots.newest_first(run))


def test_the_last_three_are_kept(run: RunDirectory) -> None:
    assert [snapshots.load(p).tick for p in paths(run)] == [50, 40, 30]


def test_none_are_written_if_none_are_wanted(tmp_path: Path) -> None:
    assert paths(made(tmp_path, "none", "snapshot_every=0")) == []


def test_deleting_or_spoiling_them_changes_nothing_but_time(
    run: RunDirectory, tmp_path: Path, executed: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    whole = {p: p.read_bytes() for p in paths(run)}
    newest, second, third = whole
    other = paths(made(tmp_path, "other", "seed=8"))
    world = rebuild(run).snapshot()
    assert executed == []
    spoilt = {
        "altered": (bytes([*whole[newest][:300], whole[newest][300] ^ 1, *whole[newest][301:]]), 40),
        "torn": (whole[newest][: len(whole[newest]) // 2], 40),
        "empty": (b"", 40),
        "another run's": (other[0].read_bytes(), 40),
        "another tick's": (whole[third], 30),
    }
    try:
        for name, (data, _) in spoilt.items():
            executed.clear()
            caplog.clear()
            newest.write_bytes(data)
            with caplog.at_level(logging.WARNING, "ethnos"):
                assert rebuild(run).snapshot() == world, name
            assert executed == (list(range(41, 51)) if name != "another tick's" else list(range(31, 51)))
            assert ("is passed over" in caplog.text) == (name != "another tick's")
        for path in whole:
            path.unlink()
        executed.clear()
        assert rebuild(run).snapshot() == world
        assert executed == list(range(51))
    finally:
        for path, data in whole.items():
            path.write_bytes(data)


def test_a_run_goes_on_where_no_snapshot_can_be_written(tmp_path: Path, run: RunDirectory) -> None:
    if os.geteuid() == 0:
        blocked = create(parse(SOCIETY, changes=["ticks=50", "snapshot_every=10"]), "blocked", tmp_path)
        blocked.snapshots.rmdir()
        blocked.snapshots.write_text("not a folder")
        run_here(blocked)
        assert blocked.manifest().digest == run.manifest().digest


def test_a_snapshot_of_other_rules_is_passed_over(
    run: RunDirectory, executed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "rules_digest", lambda spec: "other")
    assert rebuild(run).tick == 50
    assert executed == list(range(51))


def test_rebuild_up_to_a_tick_uses_an_earlier_snapshot(run: RunDirectory, executed: list[int]) -> None:
    assert rebuild(run, 42).tick == 42
    assert executed == [41, 42]
    assert society_of(run).snapshot_every == 10

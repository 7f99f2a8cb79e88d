"""Writing: what is acknowledged is there, what was torn is not, and nothing depends on where it was cut."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from ethnos.errors import RunBusy, RunExists, SocietyError
from ethnos.record import log as logs
from ethnos.record.directory import RunDirectory, find_all, next_name
from ethnos.record.log import Log, read_segment
from ethnos.record.reader import connect, picture, stream
from ethnos.record.verify import verify
from tests.tiny import Made, make_run, orchard, steps


@pytest.fixture
def torn(runs: Path) -> Made:
    """A run whose writer went away without sealing."""
    return make_run("torn", finish=False, seal=False)


def ticks(run: RunDirectory) -> list[int]:
    with connect(run) as con:
        return [t for (t,) in con.execute("SELECT tick FROM ticks ORDER BY tick").fetchall()]


def test_a_torn_tail_is_cut_wherever_it_is_torn(torn: Made) -> None:
    (segment,) = torn.run.segments()
    whole = segment.read_bytes()
    found = set()
    for size in [*range(0, len(whole), 1009), len(whole) - 1, len(whole)]:
        segment.write_bytes(whole[:size])
        seen = [t for batch in stream(picture(torn.run), "ticks") for t in batch["tick"].to_pylist()]
        assert seen == list(range(len(seen)))
        if len(seen) not in found and len(seen) % 10 == 0:
            assert verify(torn.run).ok
        found.add(len(seen))
    assert len(found) > 20
    assert max(found) == 31


@pytest.mark.parametrize("garbage", [b"\0" * 5000, b"\xff" * 5000, os.urandom(4096)])
def test_garbage_after_the_last_tick_is_no_error(torn: Made, garbage: bytes) -> None:
    (segment,) = torn.run.segments()
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-8] + garbage)
    assert ticks(torn.run) == list(range(31))


def test_opening_again_seals_what_is_whole_and_goes_on(torn: Made) -> None:
    (segment,) = torn.run.segments()
    segment.write_bytes(segment.read_bytes()[:-3000])
    left = ticks(torn.run)[-1]
    with Log(torn.run) as log:
        assert log.tick == left
        for step in torn.steps[left + 1 :]:
            log.commit(step, {}, 1.0)
        assert log.digest == torn.digest
    assert ticks(torn.run) == list(range(31))
    assert verify(torn.run).ok


def test_a_segment_of_another_schema_is_not_read(torn: Made) -> None:
    (segment,) = torn.run.segments()
    import pyarrow as pa

    with pa.OSFile(str(segment), "wb") as file, pa.ipc.new_stream(file, pa.schema([("tick", pa.int64())])) as out:
        out.write_batch(pa.record_batch({"tick": [0]}))
    assert list(read_segment(segment)) == []


@pytest.mark.parametrize(("rows", "ticks_"), [(1, 10**9), (50, 10**9), (10**9, 7), (10**9, 10**9)])
def test_digest_and_content_do_not_depend_on_the_batching(
    runs: Path, monkeypatch: pytest.MonkeyPatch, rows: int, ticks_: int
) -> None:
    other = make_run("other")
    monkeypatch.setattr(logs, "SEAL_ROWS", rows)
    monkeypatch.setattr(logs, "SEAL_TICKS", ticks_)
    made = make_run("cut", seal=ticks_ == 7)
    assert made.digest == other.digest
    assert verify(made.run).digest == other.digest
    with connect(made.run, other.run) as con:
        for table in ("events", "decisions"):
            runs_by_row = (
                f"SELECT count(*) FROM (SELECT * EXCLUDE (run) FROM {table} GROUP BY ALL HAVING count(*) <> 2)"
            )
            assert con.execute(runs_by_row).fetchone() == (0,)


def test_only_one_writes(runs: Path) -> None:
    made = make_run("one", finish=False)
    with Log(made.run), pytest.raises(RunBusy):
        Log(made.run).__enter__()
    assert made.run.state() == "crashed"
    with Log(made.run):
        assert made.run.state() == "running"


def write_for_ever(path: str) -> None:
    with Log(RunDirectory(Path(path))) as log:
        for step in steps(orchard(10**6)):
            log.commit(step, {}, 1.0)


def test_a_writer_that_is_killed_leaves_a_sound_record(runs: Path) -> None:
    run = make_run("killed", orchard(1), finish=False).run
    for folder in ("events", "decisions", "ticks"):
        for part in run.parts(folder):
            part.unlink()
    writer = multiprocessing.get_context("spawn").Process(target=write_for_ever, args=(str(run.path),))
    writer.start()
    while len(ticks(run)) < 200:
        assert writer.is_alive()
    assert run.state() == "running"
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    assert run.state() == "crashed"
    found = verify(run)
    assert found.ok, found
    assert found.ticks >= 199


def test_names(runs: Path, tmp_path: Path) -> None:
    assert next_name("a b/../c") == "a-b-..-c-1"
    assert next_name("///") == "run-1"
    for name in ("exp-1", "exp-9", "exp-x", "other-3"):
        make_run(name, orchard(1))
    assert next_name("exp") == "exp-10"
    assert [r.name for r in find_all(["exp-[19]", "exp-1", "oth*"])] == ["exp-1", "exp-9", "other-3"]
    with pytest.raises(RunExists):
        make_run("exp-1")
    for name in ("../x", "", ".hidden", "a b", "a" * 200, "a\n"):
        with pytest.raises((SocietyError, RunExists)):
            make_run(name)
    assert not (tmp_path / "x").exists()

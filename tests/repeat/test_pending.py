"""Answers that arrived before a crash are used again: nobody is asked twice."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from ethnos.actors.here import run_here
from ethnos.record.directory import RunDirectory
from ethnos.record.pending import Pending
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.run import create
from ethnos.society import parse
from ethnos.world.world import Answer

SOCIETY = """
scenario: tests.repeat.minds:CountingTerra
seed: 3
ticks: 4
world: {{width: 60, height: 60}}
population:
  - cohort: beings
    count: 513
    mind: {{kind: scripted, name: counting, costly: true, settings: {{calls: {calls}, kill_at: {at}, answered: 400}}}}
"""
HERE = """
import sys
from pathlib import Path
from ethnos.actors.here import run_here
from ethnos.record.directory import RunDirectory
run_here(RunDirectory(Path(sys.argv[1])))
"""


def test_400_of_513_have_answered(tmp_path: Path) -> None:
    quiet = create(parse(SOCIETY.format(calls=tmp_path / "calls-of-quiet", at=0)), "quiet", tmp_path)
    run_here(quiet)
    killed = create(parse(SOCIETY.format(calls=tmp_path / "calls", at=3)), "killed", tmp_path)
    child = subprocess.run([sys.executable, "-c", HERE, str(killed.path)], check=False)
    assert child.returncode == -signal.SIGKILL

    asked = Counter((tmp_path / "calls").read_text().split("\n")[:-1])
    assert len(asked) == 3 * 513
    run_here(killed)
    again = Counter((tmp_path / "calls").read_text().split("\n")[:-1]) - asked
    in_that_tick = sorted(int(call.split()[0]) for call in again if call.endswith(" 3"))
    assert in_that_tick == list(range(400, 513)), "only those who had not answered are asked again"
    assert killed.manifest().digest == quiet.manifest().digest
    assert verify(killed).ok
    memories = "SELECT agent_id, tick, memory FROM decisions ORDER BY ALL"
    assert connect(killed).sql(memories).fetchall() == connect(quiet).sql(memories).fetchall()
    assert not (killed.wal / "pending").exists()


def pending(tmp_path: Path) -> Pending:
    run = RunDirectory(tmp_path / "run")
    run.wal.mkdir(parents=True, exist_ok=True)
    return Pending(run)


async def _write(tmp_path: Path, groups: int) -> None:
    writing = pending(tmp_path)
    assert writing.begin(5, "ab") == {}
    for group in range(groups):
        for i in range(3):
            writing.add(Answer(3 * group + i, "move", b'{"direction": "north"}', "hi", b"m", latency_ms=1.5))
        await writing.flush()


def test_what_is_torn_off_is_cut(tmp_path: Path) -> None:
    asyncio.run(_write(tmp_path, 4))
    path = tmp_path / "run" / "wal" / "pending"
    whole = path.read_bytes()
    counts = []
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        found = pending(tmp_path).begin(5, "ab")
        assert list(found) == list(range(len(found)))
        counts.append(len(found))
    assert counts == sorted(counts)
    assert set(counts) <= {0, 3, 6, 9, 12}
    path.write_bytes(whole)
    answer, layers = pending(tmp_path).begin(5, "ab")[7]
    assert (answer, list(layers)) == (
        Answer(7, "move", b'{"direction": "north"}', "hi", b"m", latency_ms=1.5),
        [],
    )


def test_answers_of_another_tick_or_past_are_nothing(tmp_path: Path) -> None:
    asyncio.run(_write(tmp_path, 1))
    whole = (tmp_path / "run" / "wal" / "pending").read_bytes()
    for tick, digest in ((6, "ab"), (5, "cd")):
        (tmp_path / "run" / "wal" / "pending").write_bytes(whole)
        assert pending(tmp_path).begin(tick, digest) == {}


async def test_what_is_read_back_is_kept_and_added_to(tmp_path: Path) -> None:
    await _write(tmp_path, 2)
    second = pending(tmp_path)
    assert len(second.begin(5, "ab")) == 6
    second.add(Answer(99))
    await second.flush()
    third = pending(tmp_path)
    assert list(third.begin(5, "ab")) == [*range(6), 99]
    third.end()
    assert not third.path.exists()

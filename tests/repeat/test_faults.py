"""What a machine does to a run: full and read-only disks, clocks that jump, folders that hold something else."""

import itertools
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ethnos.actors.here import run_here
from ethnos.errors import RecordDamaged
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import check_resumable, create
from ethnos.society import parse
from tests.conftest import SOCIETY
from tests.repeat.chaos import FICKLE

HERE = """
import sys
from pathlib import Path
from ethnos.actors.here import run_here
from ethnos.record.directory import RunDirectory
run_here(RunDirectory(Path(sys.argv[1])))
"""


@pytest.fixture
def reference(tmp_path: Path) -> RunDirectory:
    run = create(parse(SOCIETY), "reference", tmp_path)
    run_here(run)
    return run


def child(code: str, run: RunDirectory, limit: Callable[[], None] | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code, str(run.path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


@pytest.mark.parametrize("kilobytes", [60, 90])
def test_a_disk_that_fills_up_keeps_what_is_committed(tmp_path: Path, reference: RunDirectory, kilobytes: int) -> None:
    run = create(parse(SOCIETY), "full", tmp_path)

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1000, kilobytes * 1000))

    stopped = child(HERE, run, little)
    assert stopped.returncode == 1
    assert "is full; the record is valid up to tick" in stopped.stderr
    with connect(run) as con:
        [(last,)] = con.sql("SELECT max(tick) FROM ticks").fetchall()
    assert 0 < last < 40
    assert f"up to tick {last}" in stopped.stderr
    check_resumable(run)
    run_here(run)
    assert run.manifest().digest == reference.manifest().digest
    assert verify(run).ok


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77
export ETHNOS_RUNS_DIR="$1"
shift
exec "$@"
"""


@pytest.fixture
def read_only(tmp_path: Path, reference: RunDirectory) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs a command of ours where the folder of runs cannot be written, not even by root."""

    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        ethnos = [sys.executable, "-c", "from ethnos.cli import main; main()", *words]
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh", str(tmp_path), *ethnos]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
        return done

    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    return call


def test_a_run_that_cannot_be_written_can_be_read(
    reference: RunDirectory, read_only: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    for words in (["show", "reference"], ["verify", "reference"], ["sql", "reference", "from ticks"], ["runs"]):
        done = read_only(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert read_only("replay", "reference").returncode == 0


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, reference: RunDirectory, read_only: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    reference.go_on()
    for words in (["run", "terra", "--name", "new"], ["resume", "reference"], ["fork", "reference", "--at", "3"]):
        done = read_only(*words)
        assert done.returncode == 1
        assert str(tmp_path) in done.stderr and "Read-only file system" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_a_clock_that_jumps_changes_nothing_but_what_it_says(
    tmp_path: Path, reference: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = itertools.cycle([0, 86_400, -400 * 86_400, 3])
    monkeypatch.setattr(
        "ethnos.record.log.now", lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(jumps))
    )
    run = create(parse(SOCIETY), "jumping", tmp_path)
    run_here(run)
    assert run.manifest().digest == reference.manifest().digest
    assert verify(run).ok and replay(run).ok
    ticks = "SELECT * EXCLUDE (committed, elapsed) FROM ticks ORDER BY tick"
    turns = "SELECT * EXCLUDE (latency) FROM decisions ORDER BY tick, agent_id"
    with connect(run) as mine, connect(reference) as theirs:
        for sql in (ticks, turns, "SELECT * FROM events ORDER BY seq"):
            assert mine.sql(sql).fetchall() == theirs.sql(sql).fetchall()
        assert mine.sql("SELECT count(DISTINCT committed) FROM ticks").fetchall() == [(4,)]


def test_parts_of_a_longer_earlier_run_are_refused_and_left_alone(tmp_path: Path) -> None:
    """Two runs of one society whose minds decide otherwise each time: only the digests tell them apart."""
    longer, shorter = (create(parse(FICKLE, changes=["ticks=60"]), name, tmp_path) for name in ("longer", "shorter"))
    run_here(longer)
    writer = subprocess.Popen([sys.executable, "-c", HERE, str(shorter.path)])
    while _last_tick(shorter) < 5:
        assert writer.poll() is None
        time.sleep(0.02)
    writer.kill()
    writer.wait()
    for table in ("events", "decisions", "layers", "ticks"):
        shutil.copytree(longer.path / table, shorter.path / table, dirs_exist_ok=True)
    before = {p: p.read_bytes() for p in sorted(shorter.path.rglob("*")) if p.is_file()}
    with pytest.raises(RecordDamaged, match="parts of another run"):
        check_resumable(shorter)
    with pytest.raises(RecordDamaged, match="parts of another run"):
        run_here(shorter)
    assert {p: p.read_bytes() for p in sorted(shorter.path.rglob("*")) if p.is_file()} == before


def _last_tick(run: RunDirectory) -> int:
    if not run.segments():
        return -1
    with connect(run) as con:
        return int(con.sql("SELECT coalesce(max(tick), -1) FROM ticks").fetchall()[0][0])


def test_a_run_works_under_nohup_without_standard_input(tmp_path: Path) -> None:
    ethnos = f'{sys.executable} -c "from ethnos.cli import main; main()"'
    command = f"nohup {ethnos} run terra --ticks 3 --set agents_per_actor=10 --name quiet <&-"
    env = {**os.environ, "ETHNOS_RUNS_DIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert verify(RunDirectory(tmp_path / "quiet")).ok

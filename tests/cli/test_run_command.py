"""`ethnos run`: its name, its progress, its signals, its last words. Ray itself is tested elsewhere."""

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ethnos.cli import running
from ethnos.cli.app import app
from ethnos.errors import EthnosError, RunExists, RunNotFound
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.verify import verify
from ethnos.run import create
from ethnos.society import Society
from ethnos.wire.v1.control_pb2 import Status
from tests.tiny import ORCHARD, orchard, steps


def run_here(
    society: Society,
    *,
    name: str,
    on_status: Callable[[Status], None],
    stop: threading.Event,
    pause: float = 0.0,
) -> RunDirectory:
    """Keeps the contract of `ethnos.run.run` in this process."""
    directory = create(society, name)
    on_status(Status(tick=-1, ticks=society.ticks, phase=Status.PHASE_STARTING))
    made = 0
    with Log(directory) as log:
        for step in steps(society):
            log.commit(step, {}, 1.0)
            made += len(step.decisions)
            on_status(
                Status(
                    tick=step.tick,
                    ticks=society.ticks,
                    population=step.population,
                    agent_steps=made,
                    phase=Status.PHASE_RUNNING,
                )
            )
            if stop.is_set():
                break
            time.sleep(pause)
        log.seal()
    directory.finish("stopped" if stop.is_set() else "finished", "asked to", log.digest, log.tick)
    return directory


@pytest.fixture
def orchard_file(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(running, "run_society", run_here)
    file = tmp_path / "my orchard.yaml"
    file.write_text(ORCHARD.format(ticks=12))
    return file


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, words)], catch_exceptions=False)


def test_a_run_ends_with_its_summary(orchard_file: Path) -> None:
    result = call(orchard_file)
    assert result.exit_code == 0
    run = RunDirectory.find("my-orchard-1")
    assert run.manifest().digest in result.stdout
    assert "ethnos verify my-orchard-1" in result.stdout
    assert "tick 0/12" in result.stderr
    assert call(orchard_file).exit_code == 0
    assert RunDirectory.find("my-orchard-2").manifest().digest == run.manifest().digest


def test_options_are_changes(orchard_file: Path) -> None:
    result = call(orchard_file, "--seed", "9", "--ticks", "3", "--set", "world.growth=4", "--name", "mine", "--json")
    summary = json.loads(result.stdout)
    assert (summary["name"], summary["seed"], summary["tick"], summary["state"]) == ("mine", 9, 3, "finished")
    assert "growth: 4.0" in RunDirectory.find("mine").society.read_text()
    assert summary["digest"] == verify(RunDirectory.find("mine")).digest


def test_quiet_says_nothing(orchard_file: Path) -> None:
    result = call(orchard_file, "--quiet")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_a_name_is_never_taken_twice(orchard_file: Path) -> None:
    assert call(orchard_file, "--name", "mine").exit_code == 0
    before = RunDirectory.find("mine").manifest_path.read_bytes()
    with pytest.raises(RunExists, match="mine"):
        call(orchard_file, "--name", "mine")
    assert RunDirectory.find("mine").manifest_path.read_bytes() == before


def test_a_name_taken_meanwhile_is_no_error(orchard_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(society: Society, *, name: str, **others: object) -> RunDirectory:
        if name == "my-orchard-1":
            create(society, name)
        return run_here(society, name=name, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "run_society", late)
    assert call(orchard_file).exit_code == 0
    assert RunDirectory.find("my-orchard-2")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_stops_after_the_tick(
    orchard_file: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    def interrupted(society: Society, **others: object) -> RunDirectory:
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        return run_here(society, pause=0.02, **others)  # type: ignore[arg-type]

    before = signal.getsignal(number)
    monkeypatch.setattr(running, "run_society", interrupted)
    result = call(orchard_file, "--ticks", "100000", "--name", "cut", "--json")
    assert result.exit_code == code
    assert "once more" in result.stderr
    summary = json.loads(result.stdout)
    assert summary["state"] == "stopped"
    assert 0 <= summary["tick"] < 1000
    assert verify(RunDirectory.find("cut")).ok
    assert signal.getsignal(number) is before


def test_the_second_signal_ends_at_once(orchard_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(society: Society, *, name: str, **others: object) -> RunDirectory:
        for delay in (0.1, 0.3):
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(30)
        raise AssertionError("not interrupted")

    monkeypatch.setattr(running, "run_society", stuck)
    start = time.monotonic()
    assert call(orchard_file).exit_code == 130
    assert time.monotonic() - start < 10


def test_a_terminal_gets_a_bar(
    orchard_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    assert running.run(str(orchard_file), "bar", [], quiet=False, as_json=True) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["name"] == "bar"
    assert "tick 12/12" in shown.err
    assert "agent-steps/s" in shown.err


@pytest.mark.parametrize("name", ["../outside", "a/b", "", ".", "x" * 101, "new\nline"])
def test_a_name_is_a_name_and_no_path(orchard_file: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(EthnosError):
        call(orchard_file, "--name", name, "--quiet")
    with pytest.raises(RunNotFound):
        RunDirectory.find("outside")
    assert sorted(p.name for p in tmp_path.iterdir()) in (["my orchard.yaml"], ["my orchard.yaml", "runs"])


def test_progress_that_nobody_reads_any_more_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    with running._teller(orchard(), quiet=False) as teller:
        teller.tell(Status(tick=1, ticks=10, phase=Status.PHASE_RUNNING))


def test_a_disk_that_is_full_from_the_start_is_named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ethnos.record.directory.write_durably", full)
    with pytest.raises(EthnosError, match="cannot make the run .*early: No space left on device"):
        create(orchard(), "early")
    assert not list(runs.iterdir())

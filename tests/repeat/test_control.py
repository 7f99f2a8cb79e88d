"""Steering a running society from the command line has no effect on what happens in it, unless it is asked to."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ethnos.actors.here import run_here
from ethnos.cli.app import app
from ethnos.errors import ClusterError, Refused, SocietyError
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import check_resumable, create
from ethnos.society import parse
from tests.conftest import SOCIETY
from tests.repeat.serving import served


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def slow(name: str, ticks: int = 40) -> RunDirectory:
    changes = [f"ticks={ticks}", "scenario=tests.cluster.jitter:JitterTerra", "population.0.mind=jitter"]
    return create(parse(SOCIETY, changes=changes), name)


@pytest.fixture
def reference(tmp_path: Path) -> str:
    run = create(parse(SOCIETY), "reference", tmp_path)
    run_here(run)
    return run.manifest().digest


def test_pause_step_continue(runs: Path, reference: str) -> None:
    run = slow("steered")
    with served(run):
        call("pause", "steered")
        time.sleep(0.2)
        at = call("pause", "steered")["tick"]
        time.sleep(0.3)
        assert call("pause", "steered") == {"run": "steered", "phase": "paused", "tick": at, "population": 10}
        call("step", "steered", "3")
        time.sleep(0.5)
        assert call("pause", "steered")["tick"] == at + 3
        call("continue", "steered")
    assert run.manifest().digest == reference
    with pytest.raises(ClusterError, match="is not running: it is finished"):
        call("pause", "steered")


def test_stop_and_go_on(runs: Path, reference: str) -> None:
    run = slow("stopped")
    with served(run):
        call("stop", "stopped")
    manifest = run.manifest()
    assert (manifest.state, manifest.reason) == ("stopped", "stopped by request")
    assert manifest.tick < 40
    check_resumable(run)
    run.go_on()
    run_here(run)
    assert run.manifest().digest == reference
    assert verify(run).ok


def test_intervene(runs: Path, reference: str) -> None:
    run = slow("changed")
    with served(run):
        call("pause", "changed")
        done = call("intervene", "changed", "tell", "text=hello: all of you", "tick=30")
        assert done == {
            "run": "changed",
            "tick": 30,
            "change": {"do": "tell", "text": "hello: all of you", "speaker": "a voice from outside", "tick": 30},
        }
        before = call("pause", "changed")["tick"]
        assert call("intervene", "changed", "edit_persona", "agent=3", "persona={honesty: 1}")["tick"] > before
        with pytest.raises(Refused, match="no agent 99"):
            call("intervene", "changed", "remove_agent", "agent=99")
        with pytest.raises(SocietyError, match="no such intervention"):
            call("intervene", "changed", "dance")
        call("continue", "changed")
    with connect(run) as con:
        assert con.sql("SELECT text FROM intervened ORDER BY seq").fetchall() == [("edit_persona",), ("tell",)]
    assert run.manifest().digest != reference
    assert verify(run).ok
    assert replay(run).ok

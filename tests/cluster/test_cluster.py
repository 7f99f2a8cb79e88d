"""A society on a real Ray, over real gRPC: what must not depend on where agents live or who dies."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ethnos.actors.cluster import _World
from ethnos.actors.here import run_here
from ethnos.errors import ClusterError
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.run import create, run
from ethnos.society import Society, parse
from tests.cluster.jitter import MISREMEMBERED
from tests.conftest import SOCIETY

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray", "runs")]


def society(*changes: str) -> Society:
    return parse(SOCIETY, changes=changes)


def jitter(*changes: str) -> Society:
    return society("scenario=tests.cluster.jitter:JitterTerra", "population.0.mind=jitter", *changes)


def digest(directory: RunDirectory) -> str:
    manifest = directory.manifest()
    assert manifest.state == "finished"
    return manifest.digest


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = create(society(), "reference", tmp_path_factory.mktemp("runs"))
    run_here(directory)
    return digest(directory)


@pytest.mark.parametrize("agents_per_actor", [1, 7, "auto"])
def test_packing_changes_nothing(agents_per_actor: int | str, reference: str) -> None:
    assert digest(run(society(f"agents_per_actor={agents_per_actor}"), name="packed")) == reference


@pytest.mark.parametrize("agents_per_actor", [1, 4])
def test_order_of_arrival_changes_nothing(agents_per_actor: int, reference: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    settings = f"population.0.mind.settings.calls={calls}"
    late = jitter("population.0.mind.kind=scripted", "population.0.mind.name=jitter", settings)
    late = late.model_copy(update={"agents_per_actor": agents_per_actor})
    directory = run(late, name="late")
    assert digest(directory) == reference
    made = calls.read_text().split("\n")[:-1]
    decisions = connect(directory).sql("SELECT count(*) FROM decisions").fetchall()[0][0]
    assert len(made) == len(set(made)) == decisions, "each agent decides exactly once per tick"
    assert not connect(directory).sql(MISREMEMBERED).fetchall()


def test_one_agent_that_is_always_slower_has_neither_advantage_nor_harm(reference: str) -> None:
    slow = jitter("population.0.mind={name: jitter, settings: {slow: 0, longest_ms: 50}}", "agents_per_actor=4")
    directory = run(slow, name="slow")
    assert digest(directory) == reference
    mean = "SELECT avg(latency) FILTER (agent_id = 0) > avg(latency) FILTER (agent_id <> 0) FROM decisions"
    assert connect(directory).sql(mean).fetchall() == [(True,)], "it was slower indeed"


class Killer:
    """Kills processes of a run with SIGKILL at given ticks."""

    def __init__(self, at: dict[int, str]) -> None:
        self.at = at
        self.killed = 0

    def __call__(self, status: Any) -> None:
        due = [t for t in self.at if t <= status.tick]
        for tick in due:
            name = self.at.pop(tick)
            victims = [p for p in psutil.Process().children(recursive=True) if _is_called(p, name)]
            if victims:
                os.kill(victims[self.killed % len(victims)].pid, signal.SIGKILL)
                self.killed += 1


def _is_called(process: psutil.Process, name: str) -> bool:
    try:
        return name in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_killed_agents_are_replaced(reference: str) -> None:
    killer = Killer({5: "ray::_Agents", 15: "ray::_Agents", 16: "ray::_Agents"})
    assert digest(run(society("agents_per_actor=1"), name="killed", on_status=killer)) == reference
    assert killer.killed == 3


def test_a_killed_world_service_comes_back(reference: str) -> None:
    slow = jitter("agents_per_actor=4")
    killer = Killer({10: "ray::_World", 25: "ray::_World"})
    directory = run(slow, name="killed", on_status=killer)
    assert killer.killed == 2
    assert digest(directory) == reference
    rows = connect(directory).sql("SELECT count(*), max(seq) + 1, count(DISTINCT seq) FROM events").fetchall()[0]
    assert len(set(rows)) == 1
    assert not connect(directory).sql(MISREMEMBERED).fetchall()


class LongInComing(_World):
    """A world whose process takes its time to come back, as on a busy machine."""

    def __init__(self, path: str, secret: str) -> None:
        been_here = Path(path).with_suffix(".been-here")
        if been_here.exists():
            time.sleep(8)
        been_here.touch()
        super().__init__(path, secret)


def test_a_restart_that_takes_long_is_one_death(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ethnos.actors.cluster._World", LongInComing)
    monkeypatch.setattr("ethnos.actors.cluster.MOST_DEATHS", 1)
    killer = Killer({10: "ray::LongInComing"})
    directory = run(jitter("agents_per_actor=10"), name="killed", on_status=killer)
    assert killer.killed == 1
    assert digest(directory) == reference


def test_a_failing_and_a_hanging_mind_cost_only_their_own_turn() -> None:
    faulty = jitter("population.0.mind=faulty", "decision_deadline=1", "ticks=6", "agents_per_actor=5")
    directory = run(faulty, name="faulty")
    con = connect(directory)
    rows = con.sql("SELECT agent_id, tick, outcome, reason FROM decisions WHERE outcome <> 'done'").fetchall()
    assert {r[0] for r in rows if r[2] == "failed"} == {1}
    assert ("RuntimeError: no idea") in {r[3] for r in rows}
    assert [(r[0], r[1]) for r in rows if r[2] == "late"] == [(2, 3)]
    assert con.sql("SELECT count(*) FROM late").fetchall() == [(1,)]


def test_a_mind_that_takes_its_process_along_costs_its_neighbours_one_turn(
    capfd: pytest.CaptureFixture[str],
) -> None:
    mad = jitter("population.0.mind=mad", "decision_deadline=2", "ticks=6", "agents_per_actor=5")
    con = connect(run(mad, name="mad"))
    rows = con.sql("SELECT agent_id, tick, outcome FROM decisions WHERE outcome <> 'done' AND agent_id <> 2").fetchall()
    assert {r for r in rows if r[2] == "late"} == {(i, 2, "late") for i in (0, 1, 3, 4)}
    assert {r for r in rows if r[2] == "failed"} == {(i, 4, "failed") for i in (0, 1, 3, 4)}
    exits = con.sql("SELECT DISTINCT reason FROM decisions WHERE agent_id = 2 AND outcome = 'failed'").fetchall()
    assert ("SystemExit: 3",) in exits
    assert con.sql("SELECT count(*) FROM decisions").fetchall() == [(60,)]
    assert "raylet" not in capfd.readouterr().out


def test_stop_leaves_a_valid_record() -> None:
    stop = threading.Event()

    def on_status(status: Any) -> None:
        if status.tick >= 5:
            stop.set()

    directory = run(jitter("ticks=100000"), name="stopped", on_status=on_status, stop=stop)
    manifest = directory.manifest()
    assert manifest.state == "stopped"
    assert 5 <= manifest.tick < 1000
    assert connect(directory).sql("SELECT max(tick), count(*) FROM ticks").fetchall() == [
        (manifest.tick, manifest.tick + 1)
    ]


def test_more_gpus_than_there_are_is_an_error_that_says_what_to_do() -> None:
    models = '{"m": {"kind": "sglang", "managed": {"model_path": "any", "tp": 4, "resources": {"fast_disk": 1}}}}'
    mind = '{"kind": "llm", "model": "m"}'
    with pytest.raises(ClusterError, match=r"engine m-0 needs 4 GPU, 1 fast_disk, .*RAY_ADDRESS.*num_gpus: 0"):
        run(society(f"models={models}", f"population.0.mind={mind}"), name="greedy")


def test_a_label_that_no_node_here_has_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match=r"agents_on asks for pool=cpu, 2 fast_disk, .*RAY_ADDRESS"):
        run(society('agents_on={"labels": {"pool": "cpu"}, "resources": {"fast_disk": 2}}'), name="choosy")

"""Societies on a Ray that runs already, with more than one node: who joins it, where things go, who may die."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ethnos.actors.here import run_here
from ethnos.control import Control
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.run import create
from ethnos.society import parse
from tests.cluster import standin
from tests.cluster.jitter import MISREMEMBERED
from tests.cluster.raylets import Raylets
from tests.conftest import SOCIETY

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]

ALL = ("head", "second", "third")
SPREAD = ["agents_per_actor=2", "scenario=tests.cluster.jitter:JitterTerra", "population.0.mind=jitter", "ticks=200"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Raylets]:
    with Raylets(gpus=1) as cluster:
        cluster.add("second", labels="pool=cpu")
        cluster.add("third", labels="pool=cpu")
        yield cluster


class Driver:
    """`ethnos run` as somebody types it, joining a cluster."""

    def __init__(self, cluster: Raylets, runs: Path, society: Path, *changes: str, name: str = "joined") -> None:
        words = ["run", str(society), "--name", name, *(w for c in changes for w in ("--set", c))]
        self.run = RunDirectory(runs / name)
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from ethnos.cli import main; main()", *words],
            env={**cluster.env, "ETHNOS_RUNS_DIR": str(runs)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, tick: int) -> None:
        """Returns when that tick is committed."""
        while self._tick() < tick:
            assert self._process.poll() is None, self._process.communicate()[0]
            time.sleep(0.05)

    def end(self) -> str:
        """What it printed, once it is over and all is well."""
        said = self._process.communicate()[0]
        assert self._process.returncode == 0, said
        assert verify(self.run).ok
        return said

    def _tick(self) -> int:
        if not self.run.segments():
            return -1
        with connect(self.run) as con:
            return int(con.sql("SELECT coalesce(max(tick), -1) FROM ticks").fetchall()[0][0])


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "society.yaml"
    path.write_text(text)
    return path


def test_a_node_that_dies_costs_time_and_nothing_else(cluster: Raylets, tmp_path: Path) -> None:
    reference = create(parse(SOCIETY, changes=SPREAD), "reference", tmp_path)
    run_here(reference)
    driver = Driver(cluster, tmp_path, written(tmp_path, SOCIETY), *SPREAD, 'agents_on.labels={"pool": "cpu"}')
    driver.until(5)
    where = {name: {k: len(cluster.actors(name, k)) for k in ("_World", "_Agents")} for name in ALL}
    assert where["head"] == {"_World": 1, "_Agents": 0}, "the world where its disk is, agents as asked"
    assert where["second"]["_World"] == where["third"]["_World"] == 0
    assert where["second"]["_Agents"] + where["third"]["_Agents"] >= 5, where
    cluster.kill(max(("second", "third"), key=lambda name: where[name]["_Agents"]))
    driver.end()
    assert driver.run.manifest().digest == reference.manifest().digest
    with connect(driver.run) as con:
        assert not con.sql(MISREMEMBERED).fetchall()


@pytest.mark.slow
def test_its_figures_are_where_prometheus_looks_for_them(cluster: Raylets, tmp_path: Path) -> None:
    driver = Driver(cluster, tmp_path, written(tmp_path, SOCIETY), *SPREAD, "ticks=100000", name="scraped")
    driver.until(5)
    committed = 'ray_ethnos_ticks_total{run="scraped"}'
    seen = [scraped(cluster, committed)]
    while len(set(seen)) < 3:
        seen.append(scraped(cluster, committed))
    assert seen == sorted(seen), "ticks are counted while they happen"
    assert scraped(cluster, 'ray_ethnos_population{run="scraped"}') >= 1
    with Control(driver.run) as control:
        control.call("Stop", reason="seen enough")
    driver.end()


def scraped(cluster: Raylets, wanted: str) -> float:
    """One figure as the head offers it; waits until it is there."""
    name, _, label = wanted.partition("{")
    while True:
        time.sleep(0.2)
        with suppress(OSError), urlopen(cluster.metrics, timeout=10) as answer:  # noqa: S310
            for family in text_string_to_metric_families(answer.read().decode()):
                for s in family.samples:
                    if s.name == name and f'run="{s.labels.get("run", s.labels.get("Run", ""))}"}}' == label:
                        return float(s.value)


def test_an_engine_gets_its_gpus_and_comes_back(cluster: Raylets, tmp_path: Path) -> None:
    log = tmp_path / "starts"
    managed = {"model_path": "any", "python": str(standin.python(tmp_path)), "env": {"STANDIN_LOG": str(log)}}
    society = {
        "scenario": "terra",
        "ticks": 25,
        "models": {"m": {"kind": "sglang", "managed": managed}},
        "population": [{"cohort": "thinkers", "count": 4, "mind": {"kind": "llm", "model": "m"}}],
    }
    driver = Driver(cluster, tmp_path, written(tmp_path, yaml.safe_dump(society)))
    driver.until(4)
    os.kill(_starts(log)[0][0], signal.SIGKILL)
    driver.until(12)
    (actor,) = cluster.actors("head", "_Engine")
    actor.kill()
    driver.end()
    starts = _starts(log)
    assert len(starts) == 3, "once in the beginning, once for each death"
    assert {gpus for _, gpus in starts} == {"0"}, "the GPU that Ray gave its actor"
    assert not [pid for pid, _ in starts if psutil.pid_exists(pid)], "none outlives the run"
    with connect(driver.run) as con:
        assert con.sql("SELECT outcome, count(*) FROM decisions GROUP BY ALL").fetchall() == [("done", 100)]


def _starts(log: Path) -> list[tuple[int, str]]:
    return [(int(pid), gpus) for pid, gpus in (line.split(" ") for line in log.read_text().splitlines())]

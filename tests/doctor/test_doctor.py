"""`ethnos doctor`: faults are planted for real, and each has to be named with what will come of it."""

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ethnos import society
from ethnos.actors.cluster import Node, survey
from ethnos.cli.app import app
from ethnos.doctor import cluster, examine, machine, network
from ethnos.doctor.need import Need, need_of

SOCIETY = """
scenario: terra
ticks: 50
population:
  - {{cohort: beings, count: 200, mind: {{model: far}}}}
agents_per_actor: 1
models:
  far: {{kind: openai, model: m, base_url: "http://127.0.0.1:{closed}/v1", api_key_env: null}}
  keyless: {{kind: openai, model: m, api_key_env: ETHNOS_TEST_NO_SUCH_KEY}}
  near: {{kind: sglang, managed: {{model_path: m, port: {taken}, tp: 8}}}}
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def file(tmp_path: Path, taken: int, closed: int) -> Path:
    path = tmp_path / "society.yaml"
    path.write_text(SOCIETY.format(taken=taken, closed=closed))
    return path


def test_six_planted_faults_are_named(file: Path, closed: int, taken: int) -> None:
    faults = {
        "files": "256 open files",
        "disk": "which is memory",
        "ray": f"127.0.0.1:{closed}",
        "ports": f"127.0.0.1:{taken}",
        "engines": f"http://127.0.0.1:{closed}/v1",
        "secrets": "ETHNOS_TEST_NO_SUCH_KEY",
    }
    planted = {"RAY_ADDRESS": f"127.0.0.1:{closed}", "ETHNOS_RUNS_DIR": "/dev/shm"}
    done = subprocess.run(
        [sys.executable, "-c", "from ethnos.cli import main; main()", "doctor", str(file), "--json"],
        env={**os.environ, **planted},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
        capture_output=True,
        timeout=100,
    )
    assert done.returncode == 1, done.stderr.decode()
    problems = [f for f in json.loads(done.stdout)["findings"] if f["level"] == "problem"]
    named = {
        check: [p for p in problems if p["check"] == check and text in p["found"]] for check, text in faults.items()
    }
    assert all(named.values()), named
    assert all(p["consequence"] and p["remedy"] for p in problems)


def test_a_sound_machine_is_said_to_be_one(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "Nothing stands in the way" in done.output
    assert {f.check for f in examine()} == {"versions", "disk", "clock", "files", "memory", "ports", "ray", "gpus"}
    assert not runs.exists(), "it leaves nothing behind"


def test_gpus_that_are_missing(file: Path) -> None:
    need = need_of(society.load(file))
    assert need.gpus == 8
    assert [f.level for f in cluster.gpus(0, need)] == ["problem"]
    assert [f.level for f in cluster.gpus(8, need)] == ["ok"]


def test_a_run_that_does_not_fit_on_the_disk_or_into_memory(tmp_path: Path) -> None:
    large = Need(actors=10**6, memory_mb=10**9, disk_bytes=10**18)
    assert "problem" in {f.level for f in machine.disk(tmp_path, large)}
    assert [f.level for f in machine.memory(large)] == ["problem"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        found = list(machine.disk(Path("/proc/1/runs"), Need()))
    else:
        tmp_path.chmod(0o500)
        found = list(machine.disk(tmp_path, Need()))
    assert found[0].level == "problem"


def test_a_temporary_folder_with_a_long_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 60)))
    assert [f.level for f in machine.temporary()] == ["problem"]


def test_requirements_that_are_not_met(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["no-such-package>=1", "numpy>=99", "no-such-extra; extra == 'embedded'", "pyarrow>=1"]
    monkeypatch.setattr(machine, "requires", lambda name: wanted)
    found = [f.found for f in machine.versions(None)]
    assert found[0] == "no-such-package is not installed"
    assert found[1].startswith("numpy is ")
    assert len(found) == 2


def test_ports(taken: int, closed: int) -> None:
    assert network.cannot_listen("127.0.0.1", taken)
    assert not network.cannot_listen("127.0.0.1", closed)


SOUND = Node("10.0.0.1", True, {"CPU": 4.0}, {}, "Ray 2")


@pytest.mark.parametrize(
    ("check", "other"),
    [
        ("nodes", replace(SOUND, alive=False)),
        ("versions", replace(SOUND, versions="Ray 3")),
        ("clock", replace(SOUND, skew_s=-9.0)),
    ],
)
def test_nodes_that_differ(check: str, other: Node, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(cluster, "survey", lambda: [SOUND, replace(other, address="10.0.0.2")])
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{taken}")
    found = [f for f in cluster.ray(Need(resources=(("disk", 1.0),))) if f.level != "ok"]
    assert [(f.check, "disk" in f.found) for f in found] == [(check, False), ("nodes", True)]
    assert "10.0.0.2" in found[0].found or check == "versions"


@pytest.mark.ray
@pytest.mark.usefixtures("ray")
def test_a_real_cluster_is_surveyed() -> None:
    (node,) = survey()
    assert node.alive
    assert node.resources["CPU"] >= 1
    assert "Ethnos" in node.versions
    assert abs(node.skew_s) < 5

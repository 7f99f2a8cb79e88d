"""Sweeps: replicates differ, reruns do not, whatever the number of workers, and what was interrupted goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ethnos.actors import cluster
from ethnos.cli.app import app
from ethnos.errors import QueryError, RunExists, SocietyError
from ethnos.record.directory import RunDirectory, all_runs
from ethnos.record.verify import verify
from ethnos.sweep import estimate, load_sweep, run_sweep
from tests.conftest import SOCIETY

SWEEP = """
society: base.yaml
changes: {ticks: 20}
parameters:
  world.food.spawn_rate: [0, 10]
replicates: 3
"""


@pytest.fixture
def path(tmp_path: Path, runs: Path) -> Path:
    (tmp_path / "base.yaml").write_text(SOCIETY)
    (tmp_path / "food.yaml").write_text(SWEEP)
    return tmp_path / "food.yaml"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The work of workers done in this process; notes each run."""
    done: list[str] = []

    def one_by_one(work: Any, items: Any, at_once: Any, on_done: Any) -> None:
        for n, item in enumerate(items):
            work(item)
            done.append(Path(item).name)
            on_done(n + 1)

    monkeypatch.setattr(cluster, "map_on_ray", one_by_one)
    return done


def digests() -> dict[str, str]:
    return {run.name: run.manifest().digest for run in all_runs()}


def test_replicates_differ_reruns_do_not(path: Path, here: list[str], runs: Path) -> None:
    found = run_sweep(path)
    first = digests()
    assert len(set(first.values())) == 6
    assert all(verify(run).ok for run in all_runs())
    seeds = {run.name: run.manifest().seed for run in all_runs()}
    assert all(seeds[f"food-c0-r{r}"] == seeds[f"food-c1-r{r}"] for r in range(3))
    shutil.rmtree(runs)
    here.clear()
    assert run_sweep(path) == found
    assert digests() == first
    births = [c.estimates["population"] for c in found]
    assert births[0].difference == 0
    assert births[1].mean > births[0].mean
    assert births[1].low <= births[1].mean <= births[1].high


def test_what_was_interrupted_goes_on(path: Path, here: list[str], runs: Path) -> None:
    found = run_sweep(path)
    whole = digests()
    shutil.rmtree(runs / "food-c1-r2")
    half = RunDirectory(runs / "food-c0-r1")
    half.go_on()
    here.clear()
    assert run_sweep(path) == found
    assert here == ["food-c0-r1", "food-c1-r2"]
    assert digests() == whole
    here.clear()
    assert run_sweep(path) == found
    assert here == []


def test_another_sweep_of_that_name_is_refused(path: Path, here: list[str]) -> None:
    run_sweep(path)
    path.write_text(SWEEP.replace("10]", "11]"))
    with pytest.raises(RunExists, match="another sweep"):
        run_sweep(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("society: base.yaml\nreplicates: 0", "replicates: "),
        ("society: nothing.yaml", "no society file"),
        ("society: base.yaml\nparameters: {world.width: [50, -1]}", "world.width"),
        ("society: base.yaml\nparameters: {world.width: []}", "parameters.world.width"),
        ("[1, 2", "cannot read"),
    ],
)
def test_mistakes_are_told_before_anything_runs(path: Path, here: list[str], text: str, reason: str) -> None:
    path.write_text(text)
    with pytest.raises(SocietyError, match=reason):
        run_sweep(path)
    assert all_runs() == []


def test_measures_are_queries_with_one_number(path: Path, here: list[str]) -> None:
    path.write_text(SWEEP + "measures: {eaten: SELECT sum(amount) FROM ate}\n")
    assert run_sweep(path, "eating")[1].estimates["eaten"].mean > 0
    path.write_text(SWEEP + "measures: {many: FROM ate}\n")
    with pytest.raises(QueryError, match="measure many"):
        run_sweep(path, "many")


def test_estimates() -> None:
    base, other = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0])
    found = estimate(other, base, seed=1, place=0)
    assert (found.mean, found.difference) == (4.5, 2.0)
    assert found.effect == pytest.approx(2.0 / 1.2909944)
    assert 3.0 <= found.low < 4.5 < found.high <= 6.0
    assert found == estimate(other, base, seed=1, place=0)
    assert estimate(np.array([1.0]), np.array([1.0]), seed=1, place=0).effect is None


@pytest.mark.ray
def test_workers_change_nothing(path: Path, ray: None, runs: Path) -> None:
    results = []
    for workers in (1, 3):
        result = CliRunner().invoke(app, ["sweep", str(path), "--workers", str(workers), "--json"])
        assert result.exit_code == 0, result.output
        results.append((json.loads(result.stdout), digests()))
        shutil.rmtree(runs)
    assert results[0] == results[1]
    assert load_sweep(path).replicates == 3

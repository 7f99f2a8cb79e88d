"""Sweeps: one society under many conditions, each several times over, and what differs between them.

A sweep is a YAML file:

    society: terra                  # a society file, or one that comes with Ethnos
    changes: {ticks: 200}           # to all runs
    parameters:                     # every combination is a condition
      world.food.spawn_rate: [1, 3]
      population.0.mind: [forager, wanderer]
    replicates: 10
    seed: 0

Replicate r has the same seed in all conditions, derived from the sweep's seed and r alone: so conditions differ in
what was set and not in their luck, and a rerun gives the same runs, on however many workers.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import duckdb
import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ethnos import chance
from ethnos.errors import QueryError, RunError, RunExists, SocietyError
from ethnos.record.directory import RunDirectory, runs_folder, write_durably
from ethnos.record.reader import connect, query
from ethnos.run import create
from ethnos.society import MAX_FILE_BYTES, Society, load

MEASURES = {
    "population": "SELECT arg_max(population, tick) FROM ticks",
    "peak": "SELECT max(population) FROM ticks",
    "births": "SELECT count(*) FROM born WHERE target_id IS NOT NULL",
    "deaths": "SELECT count(*) FROM died",
    "messages": "SELECT count(*) FROM said",
    "artifacts": "SELECT count(*) FROM artifacts",
    "ticks": "SELECT max(tick) FROM ticks",
}
"""What is measured of every run unless the file says otherwise: each a query with one number."""

RESAMPLES = 10_000
"""Of each mean, for its confidence interval."""

Value = str | int | float | bool | None | list[Any] | dict[str, Any]


class Sweep(BaseModel):
    """What a sweep file says."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    society: str
    """A society file, seen from the sweep's, or one that comes with Ethnos."""
    changes: dict[str, Value] = Field(default_factory=dict)
    """What is set in all runs, by path, such as `world.width`."""
    parameters: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field(default_factory=dict)
    """What differs: for each path the values it takes. The first of each is the baseline."""
    replicates: int = Field(default=5, ge=1, le=10_000)
    """Runs of each condition."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """The seeds of all runs follow from it."""
    measures: dict[str, str] = Field(default_factory=lambda: dict(MEASURES), min_length=1)
    """What is measured: names, each with a query that gives one number."""


@dataclass(frozen=True)
class Trial:
    """One run of a sweep."""

    condition: int
    replicate: int
    name: str
    society: Society


@dataclass(frozen=True)
class Estimate:
    """A measure in one condition."""

    mean: float
    low: float
    """Lower end of the 95 % bootstrap confidence interval of the mean."""
    high: float
    difference: float
    """Of the mean from the baseline's."""
    effect: float | None
    """Cohen's d against the baseline; None where nothing varies, or for the baseline itself."""


@dataclass(frozen=True)
class Condition:
    """One combination of values, with what was measured."""

    number: int
    values: dict[str, Value]
    runs: list[str]
    estimates: dict[str, Estimate]


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file. Raises SocietyError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SocietyError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        return Sweep.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except ValidationError as error:
        problems = [f"{path}: {'.'.join(map(str, e['loc'])) or 'sweep'}: {e['msg']}" for e in error.errors()]
        raise SocietyError("\n".join(problems)) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise SocietyError(f"cannot read {path}: {error}") from None


def seed_of(sweep: Sweep, replicate: int) -> int:
    """The seed of a replicate, in all conditions."""
    return int.from_bytes(blake2b(f"{sweep.seed}/replicate/{replicate}".encode(), digest_size=8).digest()) >> 1


def conditions(sweep: Sweep) -> list[dict[str, Value]]:
    """All combinations of values; the baseline comes first."""
    return [dict(zip(sweep.parameters, v, strict=True)) for v in itertools.product(*sweep.parameters.values())]


def trials(sweep: Sweep, name: str, folder: Path) -> list[Trial]:
    """All runs of a sweep. Raises SocietyError if any condition is impossible."""
    source = folder / sweep.society if (folder / sweep.society).is_file() else sweep.society
    made = []
    for number, values in enumerate(conditions(sweep)):
        settings = [f"{k}={json.dumps(v)}" for k, v in {**sweep.changes, **values}.items()]
        society = load(source, settings)
        for replicate in range(sweep.replicates):
            seeded = society.model_copy(update={"seed": seed_of(sweep, replicate)})
            made.append(Trial(number, replicate, f"{name}-c{number}-r{replicate}", seeded))
    return made


def run_sweep(
    path: Path,
    name: str | None = None,
    workers: int | None = None,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> list[Condition]:
    """Run all of a sweep that has not been run yet, and measure it. `on_done` is told how many of how many are over.

    Its runs are called `<name>-c<condition>-r<replicate>`. Raises SocietyError, RunExists if `name` is another
    sweep's, ClusterError.
    """
    from ethnos.actors.cluster import map_on_ray

    sweep, name = load_sweep(path), name or path.stem
    todo = trials(sweep, name, path.parent)
    home = _claim(sweep, name)
    runs = [_directory(trial) for trial in todo]
    left = [str(r.path.resolve()) for r in runs if r.manifest().state != "finished"]
    over = len(runs) - len(left)
    on_done(over, len(runs))
    if left:
        map_on_ray(_bring_to_its_end, left, workers, lambda n: on_done(over + n, len(runs)))
    found = measure(sweep, todo, runs)
    write_durably(home / "results.json", json.dumps(as_plain(found), indent=1).encode())
    return found


def _claim(sweep: Sweep, name: str) -> Path:
    """The sweep's own folder. Raises RunExists if it is another sweep's."""
    home, text = runs_folder() / f"{name}.sweep", yaml.safe_dump(sweep.model_dump(mode="json"), sort_keys=False)
    home.mkdir(parents=True, exist_ok=True)
    kept = home / "sweep.yaml"
    if kept.exists() and kept.read_text("utf-8") != text:
        raise RunExists(f"there is another sweep named {name!r} in {home.parent}; choose another --name")
    write_durably(kept, text.encode())
    return home


def _directory(trial: Trial) -> RunDirectory:
    """A trial's run, made now unless it is there. Raises RunExists if that is another society's."""
    try:
        return create(trial.society, trial.name)
    except RunExists:
        run = RunDirectory.find(trial.name)
        if run.society.read_text("utf-8") != trial.society.to_yaml():
            raise
        return run


def _bring_to_its_end(path: str) -> None:
    """What a worker does: one run, from wherever it ends."""
    from ethnos.actors.here import run_here

    run_here(RunDirectory(Path(path)))


def measure(sweep: Sweep, todo: Sequence[Trial], runs: Sequence[RunDirectory]) -> list[Condition]:
    """What was measured in each condition, against the first. Raises QueryError."""
    table = np.array([[_measured(run, m, sql) for m, sql in sweep.measures.items()] for run in runs])
    found = []
    for number, values in enumerate(conditions(sweep)):
        rows = [i for i, trial in enumerate(todo) if trial.condition == number]
        base = [i for i, trial in enumerate(todo) if trial.condition == 0]
        estimates = {
            name: estimate(table[rows, m], table[base, m], seed=sweep.seed, place=number * len(sweep.measures) + m)
            for m, name in enumerate(sweep.measures)
        }
        found.append(Condition(number, values, [runs[i].name for i in rows], estimates))
    return found


def _measured(run: RunDirectory, name: str, sql: str) -> float:
    try:
        with connect(run) as con:
            result = query(con, sql)
        [[value]] = [list(row.values()) for row in result.to_pylist()]
        return float(value)
    except (duckdb.Error, QueryError, RunError, TypeError, ValueError) as error:
        raise QueryError(f"measure {name} of run {run.name} gives no number: {error}") from None


def estimate(values: Any, baseline: Any, *, seed: int, place: int) -> Estimate:
    """Mean, bootstrap interval and effect size. `place` tells the estimate's chance from that of others."""
    rng = chance.generator(seed, "bootstrap", agent=place)
    means = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    difference = float(values.mean() - baseline.mean())
    return Estimate(float(values.mean()), float(low), float(high), difference, _effect(values, baseline))


def _effect(values: Any, baseline: Any) -> float | None:
    """Cohen's d with the pooled standard deviation."""
    count = len(values) + len(baseline) - 2
    if values is baseline or count <= 0 or len(values) < 2 or len(baseline) < 2:
        return None
    squares = (len(values) - 1) * values.var(ddof=1) + (len(baseline) - 1) * baseline.var(ddof=1)
    pooled = float(np.sqrt(squares / count))
    return float(values.mean() - baseline.mean()) / pooled if pooled > 0 else None


def as_plain(found: Sequence[Condition]) -> list[dict[str, Any]]:
    """The conditions as JSON has them."""
    return [
        {"condition": c.number, "values": c.values, "runs": c.runs}
        | {"measures": {n: vars(e) for n, e in c.estimates.items()}}
        for c in found
    ]


__all__ = ["Condition", "Estimate", "Sweep", "load_sweep", "run_sweep"]

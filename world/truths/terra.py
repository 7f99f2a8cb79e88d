"""What is known of Terra: balances that follow from its rules, and an independent simulation of its foragers."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from ethnos.testing import answer, flows, play
from ethnos.validation import Exactly, Mean, Share, Validation
from ethnos.world.scenario import Cohort, Mind
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.actions import Move, Stay
from ethnos.world.scenarios.terra.minds import Forager
from ethnos.world.spec import ScenarioSpec
from ethnos.world.world import Step, World

RULES = "follows from the rules"
QUEUE_TICKS = 4_000


def society(mind: Mind, seed: int, ticks: int, **params: Any) -> list[Step]:
    return list(play(Terra(TerraParams.model_validate(params)), [(Cohort("beings", 20), mind)], seed, ticks))


def _end(mind: Mind, seed: int, ticks: int, **params: Any) -> int:
    return society(mind, seed, ticks, **params)[-1].tick


def _settled(seeds: Sequence[int]) -> list[float]:
    """Mean population in ticks 1,000 to 1,500."""
    return [float(np.mean([s.population for s in society(Forager(), seed, 1_500)[1_000:]])) for seed in seeds]


def _childless(seeds: Sequence[int]) -> list[float]:
    fed = {"food": {"zones": 0, "initial": 1_000}}
    return [_end(Forager(reproduce_at=None), seed, 200, **fed) for seed in seeds]


def _starved(seeds: Sequence[int]) -> list[float]:
    ends = [_end(Forager(), seed, 400, food={"spawn_rate": 0}) for seed in seeds]
    return [float(100 <= end < 300) for end in ends]


def _spread(seeds: Sequence[int]) -> list[float]:
    return [float(_end(Forager(), seed, 160, food={"zones": 0}) < 160) for seed in seeds]


def _together(seeds: Sequence[int]) -> list[float]:
    return [float(_end(Forager(), seed, 160) < 160) for seed in seeds]


def _queue(seeds: Sequence[int]) -> list[float]:
    """The mean number of tiles of a world in which nobody lives, once it has forgotten its start."""
    return [_tiles(seed) for seed in seeds]


def _tiles(seed: int) -> float:
    world = World(Terra(TerraParams.model_validate({"food": {"zones": 0, "initial": 0}})), seed)
    world.setup([])
    tiles = []
    for _ in range(1_000 + QUEUE_TICKS):
        world.step({})
        tiles.append(len(world.now.state.food))
    return float(np.mean(tiles[1_000:]))


def _contests(seeds: Sequence[int]) -> list[float]:
    """Two beings walk at the same cell, again and again: who gets it, 1 for the one that was born first."""
    long = {"energy": 100_000, "lifespan": 100_000}
    nothing = {"initial": 0, "spawn_rate": 0, "zones": 0}
    world = World(Terra(TerraParams.model_validate({"life": long, "food": nothing})), 1)
    world.setup([Cohort("two", 2)])
    beings, here = world.now.state.beings, world.now.state.where
    here.clear()
    for number, cell in ((0, 0), (1, 2)):
        beings[number].cell, here[cell] = cell, number
    won = []
    for _ in seeds:
        _go(world, Move("east"), Move("west"))
        won.append(float(beings[0].cell == 1))
        _go(world, Move("west") if won[-1] else Stay(), Stay() if won[-1] else Move("east"))
    return won


def _go(world: World, *actions: Move | Stay) -> None:
    world.step({i: answer(world.spec, i, action) for i, action in enumerate(actions)})


def _residual(seeds: Sequence[int]) -> list[float]:
    """The largest difference, in any of 200 ticks, between the energy there is and what the events account for."""
    spec = ScenarioSpec(Terra)
    found = []
    for seed in seeds:
        steps = society(Forager(), seed, 200, life={"reproduction_cost": 60}, artifacts={"cost": 3})
        stocks = [0.0, *(s.stocks["energy"] for s in steps)]
        changes = [now - before for before, now in pairwise(stocks)]
        found.append(max(abs(c - flows(spec, s)["energy"]) for c, s in zip(changes, steps, strict=True)))
    return found


VALIDATIONS = (
    Validation(
        "greedy foragers, one zone, rate 1: mean population in ticks 1,000 to 1,500",
        "a tile of 10 a tick feeds ten; independent simulations gave 9.1 to 10.4 over 3 seeds, sd 0.5 between them",
        Mean(9.75, rounding=0.65, sd=0.5),
        _settled,
        replicates=3,
    ),
    Validation("without offspring, plenty of food: the last tick", "life lasts 100 ticks", Exactly(100), _childless, 3),
    Validation(
        "no new food: all are gone between tick 100 and 300", RULES, Exactly(1), _starved, replicates=8, quick=2
    ),
    Validation(
        "uniform food: societies that end before tick 160 (negative control)",
        "three in four of 30 runs of an independent simulation, two standard errors",
        Share(0.75, rounding=0.158),
        _spread,
        replicates=40,
        quick=12,
    ),
    Validation(
        "the same food in one zone: societies that end before tick 160",
        "an independent simulation: none",
        Exactly(0),
        _together,
        replicates=10,
        quick=2,
    ),
    Validation(
        "food tiles in a world where nobody lives",
        "a queue: a tile lasts 200 ticks with variance 3,800, so the mean of T ticks has variance 43,800 / T",
        Mean(200, sd=sqrt(43_800 / QUEUE_TICKS)),
        _queue,
        replicates=4,
    ),
    Validation(
        "two who want the same cell: share of the first",
        "the order is drawn anew in every tick",
        Share(0.5),
        _contests,
        replicates=1_000,
        quick=1_000,
    ),
    Validation("energy that comes from nowhere", "end = start + all flows", Exactly(0, 1e-9), _residual, replicates=3),
)

"""What is known of Commons: all of it follows from the rules by arithmetic."""

from collections.abc import Callable, Sequence
from typing import Any

from ethnos.testing import play, value
from ethnos.validation import Exactly, Mean, Validation
from ethnos.world.scenario import Cohort, Mind
from ethnos.world.scenarios.commons import Commons, CommonsParams, Fixed, Sustainable

GOVSIM = "GovSim (Piatti et al. 2024), by arithmetic"
SAME = ((5, 12, 60), (8, 12, 96), (10, 12, 120), (11, 4, 39), (14, 2, 26), (20, 1, 20), (35, 1, 20), (100, 1, 20))
"""(what each of five takes a month, months with a harvest, what each gets in all)."""


def outcome(minds: Sequence[Mind], seed: int = 1, **params: Any) -> tuple[int, list[float]]:
    """Months with a harvest, and what each mind's harvester got, when minds play without talk."""
    scenario = Commons(CommonsParams.model_validate({"talk": 0, **params}))
    steps = list(play(scenario, [(Cohort(f"c{i}", 1), mind) for i, mind in enumerate(minds)], seed, 10_000))
    harvests = [row for s in steps for row in s.events if row[1] == "harvested"]
    of = [value(row, "agent_id") for row in harvests]
    got = [value(row, "amount") for row in harvests]
    return steps[-1].tick, [sum(g for o, g in zip(of, got, strict=True) if o == i) for i in range(len(minds))]


def _months(take: int) -> Callable[[Sequence[int]], list[float]]:
    return lambda seeds: [outcome([Fixed(take)] * 5, seed)[0] for seed in seeds]


def _gain(take: int) -> Callable[[Sequence[int]], list[float]]:
    """The sum of all gains: that they are equal, a test of its own shows."""
    return lambda seeds: [sum(outcome([Fixed(take)] * 5, seed)[1]) / 5 for seed in seeds]


def _sustained(seeds: Sequence[int]) -> list[float]:
    """Months out of 60, from a start of 9 + seed fish."""
    return [outcome([Sustainable()] * 5, seed, pool={"initial": 9 + seed}, months=60)[0] for seed in seeds]


def _double(seeds: Sequence[int]) -> list[float]:
    return [outcome([Fixed(20), *[Fixed(10)] * 4], seed)[0] for seed in seeds]


def _lucky(seeds: Sequence[int]) -> list[float]:
    """Whether the first of five got all of a pool that each wanted: 1 in 5 in a scramble."""
    scramble = {"assignment": "random", "pool": {"initial": 60}, "months": 1}
    return [float(outcome([Fixed(60)] * 5, seed, **scramble)[1][0] == 60) for seed in seeds]


VALIDATIONS = (
    *(Validation(f"five who take {x}: months", GOVSIM, Exactly(months), _months(x)) for x, months, _ in SAME),
    *(Validation(f"five who take {x}: gain of each", GOVSIM, Exactly(gain), _gain(x)) for x, _, gain in SAME),
    Validation(
        "half of the regrowth lasts, from any start of 10 to 100: months of 60",
        "pool / (2 n) is half of what regrows if the pool doubles",
        Exactly(60),
        _sustained,
        replicates=91,
        quick=31,
    ),
    Validation("one takes 20 among four who take 10: the month of collapse", GOVSIM, Exactly(3), _double),
    Validation(
        "in a scramble for a pool that all want, the first of five gets it: share",
        "1 / 5: an order is drawn for every harvest",
        Mean(0.2, sd=0.4),
        _lucky,
        replicates=2_000,
        quick=100,
    ),
)

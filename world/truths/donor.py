"""What is known of the donor game: how wealth grows, and when reputation upholds giving (Nowak and Sigmund 1998)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ethnos.testing import play, value
from ethnos.validation import Above, Below, Exactly, Mean, Validation
from ethnos.world.scenario import Cohort, Mind
from ethnos.world.scenarios.donor import Defector, Discriminator, DonorGame, DonorParams, Giver
from ethnos.world.world import Step

GROWTH = "(a, b) becomes (b + 2fa, (1 - f)a) in each of 12 rounds"
REPUTATION = "Nowak and Sigmund 1998, with n of N players and partners drawn from the others"
PLAYERS, ROUNDS, SKIPPED = 20, 60, 20
"""The first rounds are left out: whoever may give has given once by then, and is known for it."""
FIXED = {"gift": "fixed", "cost": 1.0, "wealth": 100.0, "rounds": ROUNDS, "generations": 1}


def game(minds: Sequence[tuple[int, Mind]], seed: int, **params: Any) -> list[Step]:
    cohorts = [(Cohort(f"c{i}", count), mind) for i, (count, mind) in enumerate(minds)]
    return list(play(DonorGame(DonorParams.model_validate(params)), cohorts, seed, 100_000))


def _wealth(share: float) -> Callable[[Sequence[int]], list[float]]:
    def measure(seeds: Sequence[int]) -> list[float]:
        return [_mean_score(game([(12, Giver(share))], seed, generations=1)) for seed in seeds]

    return measure


def _mean_score(steps: Sequence[Step]) -> float:
    return float(np.mean([value(r, "amount") for s in steps for r in s.events if r[1] == "scored"]))


def _advantage(n: int, known: float) -> Callable[[Sequence[int]], list[float]]:
    """By seed: what a discriminator earns more than a defector, units a turn as donor and one as recipient."""
    return lambda seeds: [_earned(n, known, seed) for seed in seeds]


def _earned(n: int, known: float, seed: int) -> float:
    minds = [(n, Discriminator(1.0)), (PLAYERS - n, Defector())]
    gains = np.zeros(PLAYERS)
    for step in game(minds, seed, known=known, **FIXED):
        for row in (r for r in step.events if r[1] == "gave" and value(r, "round") > SKIPPED):
            amount = value(row, "amount")
            gains[value(row, "agent_id")] -= amount
            gains[value(row, "target_id")] += 2 * amount
    return float((gains[:n].mean() - gains[n:].mean()) * 2 / (ROUNDS - SKIPPED))


def expected(n: int, known: float) -> float:
    """What `_advantage` is in the mean: b (n - 1) - c (n - 1 + (1 - q)(N - n)) - b (1 - q) n, over N - 1.

    >>> expected(8, 0.75)
    0.0
    """
    b, c = 2.0, 1.0
    gain = b * (n - 1) - c * (n - 1 + (1 - known) * (PLAYERS - n)) - b * (1 - known) * n
    return gain / (PLAYERS - 1)


def _last_share(seeds: Sequence[int]) -> list[float]:
    """The mean share given in the last of ten generations that began with ten givers and two defectors."""
    return [_given(game([(10, Giver(0.5)), (2, Defector())], seed)) for seed in seeds]


def _given(steps: Sequence[Step]) -> float:
    gifts = [r for s in steps for r in s.events if r[1] == "gave"]
    last = max(value(r, "generation") for r in gifts)
    return float(np.mean([value(r, "share") for r in gifts if value(r, "generation") == last]))


VALIDATIONS = (
    *(
        Validation(f"all give the share {f:g}: mean wealth after 12 rounds", GROWTH, Exactly(w, tiny), _wealth(f))
        for f, w, tiny in ((0.0, 10.0, 0.0), (0.5, 393.91, 0.005), (1.0, 30_720.0, 0.0))
    ),
    *(
        Validation(
            f"{n} discriminators among {PLAYERS}, conduct known with chance {q:g}: what they earn more than defectors",
            f"{REPUTATION}: b/c = 2" + ("; the unstable share is (N + 4) / 3" if n == 8 else ""),
            Mean(expected(n, q)),
            _advantage(n, q),
            replicates=60,
            quick=20,
        )
        for n, q in ((8, 0.75), (4, 0.75), (14, 0.75))
    ),
    Validation(
        "one defector among discriminators, conduct known with chance 0.8 > c/b: what they earn more",
        "Nowak and Sigmund 1998: q > c/b",
        Above(0.0),
        _advantage(19, 0.8),
        replicates=40,
        quick=20,
    ),
    Validation(
        "one defector among discriminators, conduct known with chance 0.3 < c/b: what they earn more",
        "Nowak and Sigmund 1998: q > c/b",
        Below(0.0),
        _advantage(19, 0.3),
        replicates=40,
        quick=20,
    ),
    Validation(
        "unconditional givers and two defectors: mean share given ten generations later",
        "a defector is always the richer of two who are treated alike",
        Exactly(0.0),
        _last_share,
        replicates=20,
        quick=3,
    ),
)

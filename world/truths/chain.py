"""What is known of the transmission chain: forgetting, drift, attractors and population structure."""

import re
from collections.abc import Iterator, Sequence
from math import comb, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethnos.testing import play, value
from ethnos.validation import Above, Exactly, Mean, Validation
from ethnos.world.scenario import Cohort, Mind
from ethnos.world.scenarios.chain import Biased, ChainParams, Faithful, Forgetful, TransmissionChain
from ethnos.world.texts import sentences

ITEMS, KEEP = 200, 0.8
TELLERS, GENERATIONS = 50, 50
CAVE = 10

Kinds = NDArray[np.int64]


def tellings(mind: Mind, count: int, seed: int, ticks: int, **params: Any) -> Iterator[list[tuple[int, str]]]:
    """By generation: (teller, text) of all that is told."""
    society = [(Cohort("tellers", count), mind)]
    for step in play(TransmissionChain(ChainParams.model_validate(params)), society, seed, ticks):
        yield [(value(r, "agent_id"), value(r, "text")) for r in step.events if r[1] == "told"]


def _left(seeds: Sequence[int]) -> list[float]:
    """The share of sentences left after ten retellings."""
    story = " ".join(f"Item {i}." for i in range(ITEMS))
    return [_left_of(seed, story) for seed in seeds]


def _left_of(seed: int, story: str) -> float:
    *_, last = tellings(Forgetful(KEEP), 10, seed, 10, origins=[story], words=5_000)
    return sum(len(sentences(text)) for _, text in last) / ITEMS


def copied(seed: int, generations: int, variants: int, tellers: int = TELLERS, **params: Any) -> Kinds:
    """(generations, tellers): which variant each teller tells, when all copy at random from the last generation.

    Everybody begins with a variant; they go around, so each has the same share. Each is shown one text of all that it
    was told, its own included, so that two may copy the same one.
    """
    origins = [f"Variant {i}." for i in range(variants)]
    asked = {"origins": origins, "begin": "everyone", "hears_itself": True, "shown": 1, **params}
    told = tellings(Faithful(), tellers, seed, generations + 1, **asked)
    return np.array([[int(re.findall(r"\d+", text)[0]) for _, text in sorted(g)] for g in told if g])


def diversity(kinds: Kinds) -> NDArray[np.float64]:
    """Heterozygosity of the last axis: the chance that two draws, with replacement, are different."""
    shares = np.stack([(kinds == k).mean(axis=-1) for k in range(int(kinds.max()) + 1)])
    out: NDArray[np.float64] = 1 - (shares**2).sum(axis=0)
    return out


def drift_sd() -> float:
    """Standard deviation of that heterozygosity, from the chain of Wright and Fisher itself: each generation the number
    of copies of a variant is binomial."""
    counts = np.arange(TELLERS + 1)
    ways = np.array([comb(TELLERS, k) for k in counts], dtype=float)
    shares = counts / TELLERS
    steps = ways * shares[:, None] ** counts * (1 - shares[:, None]) ** (TELLERS - counts)
    at = np.linalg.matrix_power(steps, GENERATIONS)[TELLERS // 2]
    h = 2 * shares * (1 - shares)
    return float(np.sqrt(at @ h**2 - (at @ h) ** 2))


def _drift(seeds: Sequence[int]) -> list[float]:
    """Heterozygosity after 50 generations of copying among 50, from two variants of half each."""
    return [float(diversity(copied(seed, GENERATIONS, 2, network="full"))[-1]) for seed in seeds]


def _taken_over(seeds: Sequence[int]) -> list[float]:
    """Whether the first of five variants took over among ten."""
    return [_winner(seed) for seed in seeds]


def _winner(seed: int) -> float:
    last = copied(seed, 120, 5, tellers=10, network="full")[-1]
    if len(set(last.tolist())) > 1:  # diversity shrinks by 0.9 a generation: 3e-6 of it is left
        return float("nan")
    return float(last[0] == 0)


def _attracted(start: int) -> Any:
    """Mean of the number in a story that began with `start`, in generations 31 to 40, among 20 tellers in a circle."""

    def measure(seeds: Sequence[int]) -> list[float]:
        return [_mean_number(seed, start) for seed in seeds]

    return measure


def _mean_number(seed: int, start: int) -> float:
    mind = Biased(expects=60, pull=0.3, noise=4)
    told = list(tellings(mind, 20, seed, 40, network="circle", origins=[f"They caught {start} fish."]))
    return float(np.mean([int(re.findall(r"\d+", text)[0]) for g in told[30:] for _, text in g]))


def _f_st(seed: int, network: str) -> float:
    """How much of all diversity lies between caves of ten, after 15 generations, corrected for their size."""
    last = copied(seed, 15, 5, network=network, degree=CAVE)[-1]
    within = float(diversity(last.reshape(-1, CAVE)).mean()) * CAVE / (CAVE - 1)
    all_ = float(diversity(last)) * TELLERS / (TELLERS - 1)
    return 1 - within / all_ if all_ else 0.0


VALIDATIONS = (
    Validation(
        "each sentence is kept with chance 0.8: share left after 10 retellings",
        "0.8^10; the number left is binomial",
        Mean(KEEP**10, sd=sqrt(KEEP**10 * (1 - KEEP**10) / ITEMS)),
        _left,
        replicates=200,
        quick=20,
    ),
    Validation(
        "word for word: share of sentences left after 10 retellings",
        "follows from the rules",
        Exactly(1.0),
        lambda seeds: [_faithful(seed) for seed in seeds],
        replicates=3,
    ),
    Validation(
        "random copying among 50: heterozygosity after 50 generations, from 0.5",
        "Wright and Fisher: H0 (1 - 1/N)^t",
        Mean(0.5 * (1 - 1 / TELLERS) ** GENERATIONS, sd=drift_sd()),
        _drift,
        replicates=400,
        quick=16,  # from 14 on, neither no loss at all (0.5) nor the loss of everything (0) would pass
    ),
    Validation(
        "random copying among 10, five variants: the first takes over",
        "the chance of a neutral variant is its share, 1/5",
        Mean(0.2, sd=0.4),
        _taken_over,
        replicates=400,
        quick=48,  # from 44 on, a variant that never takes over would not pass
    ),
    *(
        Validation(
            f"retelling biased towards 60, from {start}: mean number told later",
            "a linear pull with symmetric noise has its fixed point as stationary mean",
            Mean(60.0, rounding=0.05),
            _attracted(start),
            replicates=100,
            quick=20,
        )
        for start in (5, 500)
    ),
    Validation(
        "caves of ten: share of diversity between them after 15 generations (F_ST)",
        "copying within cliques lets them drift apart",
        Above(0.1),
        lambda seeds: [_f_st(seed, "caveman") for seed in seeds],
        replicates=100,
        quick=20,
    ),
    Validation(
        "the same groups of a full network: F_ST",
        "all copy from all, so groups are random samples; the correction for size makes it 0 exactly",
        Mean(0.0),
        lambda seeds: [_f_st(seed, "full") for seed in seeds],
        replicates=200,
        quick=20,
    ),
)


def _faithful(seed: int) -> float:
    story = " ".join(f"Item {i}." for i in range(ITEMS))
    *_, last = tellings(Faithful(), 10, seed, 10, origins=[story], words=5_000)
    return sum(len(sentences(text)) for _, text in last) / ITEMS

"""What must come out of a world, and whether it does: targets with a source, replicates, intervals, verdicts.

A scenario names a module in its `validations`; that module's `VALIDATIONS` say what is known of the world from
elsewhere: a closed form, a published value, an independent simulation. Each is measured in replicates with seeds 1
to n. How far a measured value may be off follows from n alone: `Z` standard errors.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ethnos.errors import SocietyError
from ethnos.world.scenarios import find

Z = 3.29
"""Standard errors to either side of a measured value: its interval covers the truth in 999 of 1,000 repetitions."""
ENOUGH = 20
"""Replicates from which on their own spread tells the standard error; with fewer, a target has to state it."""


@dataclass(frozen=True)
class Measured:
    """What came out of the replicates."""

    value: float
    low: float
    high: float
    holds: bool


class Target(Protocol):
    """What is expected of the replicates."""

    def judge(self, values: NDArray[np.float64]) -> Measured:
        """Whether these values, one per replicate, agree with what is expected."""
        ...


@dataclass(frozen=True)
class Exactly:
    """Every replicate gives this value, up to rounding."""

    value: float
    rounding: float = 0.0
    """How far off a value may be, in its own unit: what floating point or the digits of a source leave open."""

    def judge(self, values: NDArray[np.float64]) -> Measured:
        off = np.abs(values - self.value)
        worst = float(values[int(np.argmax(np.where(np.isnan(off), np.inf, off)))])
        low, high = float(values.min()), float(values.max())
        return Measured(worst, low, high, bool((off <= self.rounding).all()))

    def __str__(self) -> str:
        return f"{self.value:.6g} each time"


@dataclass(frozen=True)
class Mean:
    """The mean over all replicates is this value."""

    value: float
    rounding: float = 0.0
    """What the source leaves open: half a unit of its last digit, or half the width of a published range."""
    sd: float | None = None
    """Standard deviation of one replicate, where theory gives it; otherwise it is taken from the replicates."""

    def judge(self, values: NDArray[np.float64]) -> Measured:
        middle, low, high = interval(values, self.sd)
        return Measured(middle, low, high, low <= self.value + self.rounding and high >= self.value - self.rounding)

    def __str__(self) -> str:
        return f"{self.value:.6g}" + (f" ± {self.rounding:.3g}" if self.rounding else "")


@dataclass(frozen=True)
class Share:
    """Replicates are 0 or 1, and this is the share of ones."""

    value: float
    rounding: float = 0.0

    def judge(self, values: NDArray[np.float64]) -> Measured:
        if not np.isin(values, (0, 1)).all():
            raise ValueError("a share is of zeros and ones")
        low, high = wilson(float(values.mean()), len(values))
        return Measured(
            float(values.mean()), low, high, low <= self.value + self.rounding and high >= self.value - self.rounding
        )

    def __str__(self) -> str:
        return f"{self.value:.4g} of runs" + (f" ± {self.rounding:.3g}" if self.rounding else "")


@dataclass(frozen=True)
class Above:
    """The mean over all replicates is beyond doubt above this value: all of its interval is."""

    value: float
    sd: float | None = None

    def judge(self, values: NDArray[np.float64]) -> Measured:
        middle, low, high = interval(values, self.sd)
        return Measured(middle, low, high, low > self.value)

    def __str__(self) -> str:
        return f"> {self.value:.6g}"


@dataclass(frozen=True)
class Below:
    """The mean over all replicates is beyond doubt below this value: all of its interval is."""

    value: float
    sd: float | None = None

    def judge(self, values: NDArray[np.float64]) -> Measured:
        middle, low, high = interval(values, self.sd)
        return Measured(middle, low, high, high < self.value)

    def __str__(self) -> str:
        return f"< {self.value:.6g}"


def interval(values: NDArray[np.float64], sd: float | None = None) -> tuple[float, float, float]:
    """(mean, low, high) with `Z` standard errors to either side. Raises ValueError if nothing tells the error."""
    if sd is None and len(values) < ENOUGH:
        raise ValueError(f"{len(values)} replicates do not tell their own spread; state an sd or take {ENOUGH}")
    middle = float(values.mean())
    half = Z * (float(values.std(ddof=1)) if sd is None else sd) / sqrt(len(values))
    return middle, middle - half, middle + half


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval of a share out of `count`, at `Z` standard errors (Wilson 1927).

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.344, 0.656]
    """
    spread = Z * sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle, scale = share + Z**2 / (2 * count), 1 + Z**2 / count
    return (middle - spread) / scale, (middle + spread) / scale


@dataclass(frozen=True)
class Validation:
    """One thing that is known of a world, and how to measure it."""

    name: str
    """What is measured, in a line."""
    source: str
    """How the target is known."""
    target: Target
    measure: Callable[[Sequence[int]], Sequence[float]]
    """One value per replicate, given a seed for each: vectorise here where there are many."""
    replicates: int = 1
    quick: int = 1
    """Replicates of the quick version."""

    def judge(self, *, quick: bool = False) -> Measured:
        """Run the replicates and hold them against the target."""
        count = self.quick if quick else self.replicates
        values = np.asarray(self.measure(range(1, count + 1)), dtype=np.float64)
        if values.shape != (count,):
            raise ValueError(f"{self.name}: {values.shape} values from {count} replicates")
        if not np.isfinite(values).all():
            return Measured(float("nan"), float("nan"), float("nan"), False)
        return self.target.judge(values)


@dataclass(frozen=True)
class Verdict:
    """What became of one validation."""

    world: str
    validation: Validation
    replicates: int
    measured: Measured

    def as_plain(self) -> dict[str, Any]:
        """As JSON has it; what is no number is null."""
        m, v = self.measured, self.validation
        ends = {n: x if isfinite(x) else None for n, x in (("value", m.value), ("low", m.low), ("high", m.high))}
        about = {"world": self.world, "name": v.name, "source": v.source, "target": str(v.target)}
        return about | {"replicates": self.replicates, **ends, "holds": m.holds}


def validations_of(world: str) -> Sequence[Validation]:
    """What is known of a world, by its name or `module:Class`. Raises SocietyError if it says nothing."""
    scenario = find(world)
    if not scenario.validations:
        raise SocietyError(f"the scenario {world!r} says nothing of what must come out of it; see docs/scenarios.md")
    try:
        found: Sequence[Validation] = importlib.import_module(scenario.validations).VALIDATIONS
    except (ImportError, AttributeError) as error:
        raise SocietyError(f"the validations of {world!r} cannot be had: {error}") from error
    return found


def validate(worlds: Sequence[str], *, quick: bool = False) -> Iterator[Verdict]:
    """Measure all that is known of some worlds, one after the other."""
    for world in worlds:
        for one in validations_of(world):
            count = one.quick if quick else one.replicates
            yield Verdict(world, one, count, one.judge(quick=quick))


__all__ = [
    "Above",
    "Below",
    "Exactly",
    "Mean",
    "Measured",
    "Share",
    "Target",
    "Validation",
    "Verdict",
    "interval",
    "validate",
    "validations_of",
    "wilson",
]

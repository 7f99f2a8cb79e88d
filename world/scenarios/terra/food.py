"""Where food grows: everywhere alike, or in Gaussian zones on the torus, always on a free cell."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ethnos.world.scenarios.terra.torus import Torus


@dataclass(frozen=True, slots=True)
class Density:
    """How likely food is to appear on each cell: an equal mixture of zones, or uniform if there are none."""

    torus: Torus
    zones: tuple[tuple[int, int], ...]
    sigma: float

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """`count` cells, free or not. A Gaussian is the product of its sides, so x and y are drawn apart."""
        width, height = self.torus.width, self.torus.height
        if not self.zones:
            return rng.integers(width * height, size=count)
        zone = np.array(self.zones)[rng.integers(len(self.zones), size=count)]
        x = zone[:, 0] + np.searchsorted(_cumulated(width, self.sigma), rng.random(count), side="right")
        y = zone[:, 1] + np.searchsorted(_cumulated(height, self.sigma), rng.random(count), side="right")
        return np.asarray(y % height * width + x % width)

    def free(self, rng: np.random.Generator, count: int, taken: Callable[[int], bool]) -> list[int]:
        """Up to `count` different free cells, each drawn in proportion to the density of the free cells left.

        Drawing again when a cell is taken gives just that and costs little, unless nearly all of the density
        is taken; then the cells left are weighed one by one. Fewer come back only if there are no more.
        """
        found: dict[int, None] = {}
        for _ in range(4):
            for cell in self.draw(rng, 2 * (count - len(found)) + 14).tolist():
                if len(found) == count:
                    return list(found)
                if cell not in found and not taken(cell):
                    found[cell] = None
        return list(found) + self._weighed(rng, count - len(found), lambda c: c in found or taken(c))

    def _weighed(self, rng: np.random.Generator, count: int, taken: Callable[[int], bool]) -> list[int]:
        """The first `count` free cells of a race, each cell's time exponential with its density as rate."""
        weights = _weights(self)
        times = np.full(weights.size, np.inf)
        np.divide(rng.exponential(size=weights.size), weights, out=times, where=weights > 0)
        ranked = np.argsort(times, kind="stable")[: np.isfinite(times).sum()].tolist()
        return list(islice((c for c in ranked if not taken(c)), count))


def _side(length: int, sigma: float) -> NDArray[np.float64]:
    """Weight of each step away from a centre along one side of the torus, the shorter way around."""
    steps = np.arange(length)
    return np.asarray(np.exp(-0.5 * (np.minimum(steps, length - steps) / sigma) ** 2))


@lru_cache(maxsize=64)
def _cumulated(length: int, sigma: float) -> NDArray[np.float64]:
    sums = np.cumsum(_side(length, sigma))
    return np.asarray(sums[:-1] / sums[-1])


@lru_cache(maxsize=4)
def _weights(density: Density) -> NDArray[np.float64]:
    """The density of every cell, not normalised."""
    width, height = density.torus.width, density.torus.height
    if not density.zones:
        return np.ones(width * height)
    total = np.zeros((height, width))
    across, down = _side(width, density.sigma), _side(height, density.sigma)
    for x, y in density.zones:
        total += np.outer(np.roll(down, y), np.roll(across, x))
    return total.ravel()

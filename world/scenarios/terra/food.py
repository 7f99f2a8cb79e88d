"""Where food grows: everywhere alike, or in Gaussian zones on the torus, always on a free cell."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

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

    def free(self, rng: np.random.Generator, count: int, taken: Sequence[Collection[int]] = ()) -> list[int]:
        """Up to `count` different cells that are not taken, drawn in proportion to the density of those left.

        Drawing again when a cell is taken gives just that and costs little, unless nearly all of the density
        is taken; then the cells left are weighed one by one. Fewer come back only if there are no more.
        """
        found: dict[int, None] = {}
        before = -1
        while len(found) < count and len(found) > before:
            before = len(found)
            for cell in self.draw(rng, 4 * (count - len(found)) + 200).tolist():
                if not any(cell in t for t in taken):
                    found[cell] = None
                    if len(found) == count:
                        break
        return list(found) + self._weighed(rng, count - len(found), (*taken, found))

    def _weighed(self, rng: np.random.Generator, count: int, taken: Sequence[Collection[int]]) -> list[int]:
        """The first `count` free cells of a race, each cell's time exponential with its density as rate."""
        if not count:
            return []
        weights = _weights(self).copy()
        for cells in taken:
            weights[np.fromiter(cells, np.int64, len(cells))] = 0
        times = np.full(weights.size, np.inf)
        with np.errstate(over="ignore"):
            np.divide(rng.exponential(size=weights.size), weights, out=times, where=weights > 0)
        count = min(count, int(np.isfinite(times).sum()))
        first = np.argpartition(times, count - 1)[:count] if count else np.empty(0, np.int64)
        return [int(c) for c in first[np.argsort(times[first])]]


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

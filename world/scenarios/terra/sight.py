"""What beings see: computed for all of them at once.

The map is marked once per tick, the window around each being is cut out of it in one step, and only where
something lies in a window is looked at closely. So a being costs what it sees, not how far it sees. Things
seen are msgspec structs: there are a hundred thousand of them in a tick of a large world, and dataclasses
would take four times as long.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ethnos.world.scenario import Message
from ethnos.world.scenarios.terra.rules import Rules
from ethnos.world.scenarios.terra.state import Being, TerraState

FOOD, BEING, ARTIFACT = 1, 2, 4


class SeenFood(Struct, frozen=True, gc=False):
    """Food in sight: `dx` cells to the east and `dy` to the south of you."""

    dx: int
    dy: int
    energy: int


class SeenBeing(Struct, frozen=True, gc=False):
    """A being in sight."""

    name: str
    dx: int
    dy: int


class SeenArtifact(Struct, frozen=True, gc=False):
    """An artifact in sight; what it says can be read on its cell only."""

    artifact: int
    name: str
    dx: int
    dy: int


class Item(Struct, frozen=True, gc=False):
    """An artifact that you carry."""

    artifact: int
    name: str


class Writing(Struct, frozen=True, gc=False):
    """What an artifact says that lies on your cell or that you carry."""

    artifact: int
    name: str
    version: int
    author: str
    text: str


@dataclass(slots=True)
class Observation:
    """What a being knows of the world in one tick. All that it sees comes nearest first."""

    energy: int
    life: int
    """Ticks left to live."""
    x: int
    y: int
    ate: int
    """Energy eaten in the last tick."""
    food: list[SeenFood] = field(default_factory=list)
    beings: list[SeenBeing] = field(default_factory=list)
    artifacts: list[SeenArtifact] = field(default_factory=list)
    carries: list[Item] = field(default_factory=list)
    writings: list[Writing] = field(default_factory=list)
    heard: Sequence[Message] = ()
    outcome: str = ""
    """What became of its last action."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The cells around a being in order of distance."""

    size: int
    rank: NDArray[np.int64]
    """The rank of each place of the window, row by row."""
    dx: NDArray[np.int64]
    """By rank."""
    dy: NDArray[np.int64]


@lru_cache(maxsize=8)
def _window(radius: int) -> _Window:
    size = 2 * radius + 1
    dy, dx = (a.ravel() - radius for a in np.mgrid[:size, :size])
    near = np.argsort(np.maximum(abs(dx), abs(dy)), kind="stable")
    rank = np.empty(size * size, dtype=np.int64)
    rank[near] = np.arange(size * size)
    return _Window(size, rank, dx[near], dy[near])


@dataclass(frozen=True, slots=True)
class _Hits:
    """Everything that is in somebody's sight: whose, where from it, on which cell, and what."""

    who: NDArray[np.int64]
    dx: NDArray[np.int64]
    dy: NDArray[np.int64]
    cell: NDArray[np.int64]
    marks: NDArray[np.uint8]

    def of(self, mark: int) -> "_Hits":
        keep = np.flatnonzero(self.marks & mark)
        return _Hits(self.who[keep], self.dx[keep], self.dy[keep], self.cell[keep], self.marks[keep])

    def shares(self, found: list[Any], count: int) -> list[list[Any]]:
        """`found`, one thing for each hit, split by whose it is."""
        ends = np.searchsorted(self.who, np.arange(count + 1)).tolist()
        return [found[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def look(rules: Rules, state: TerraState, beings: Sequence[Being]) -> list[Observation]:
    """What each of `beings` sees and has; what it hears is for the caller to add."""
    width, count = rules.torus.width, len(beings)
    if not count:
        return []
    hits = _hits(rules, state, np.fromiter((b.cell for b in beings), np.int64, count))
    food = _food(rules, state, hits.of(FOOD), count)
    others = _beings(state, hits.of(BEING), count)
    artifacts = _artifacts(state, hits, count)
    views = [
        Observation(b.energy, b.life, b.cell % width, b.cell // width, b.ate, f, o, a)
        for b, f, o, a in zip(beings, food, others, artifacts, strict=True)
    ]
    if state.artifacts:
        _hold(rules, state, beings, views)
    return views


def _hits(rules: Rules, state: TerraState, cells: NDArray[np.int64]) -> _Hits:
    width, height, radius = rules.torus.width, rules.torus.height, rules.params.sight
    window = _window(radius)
    padded = np.pad(_marks(rules, state), radius, mode="wrap")
    y, x = np.divmod(cells, width)
    views = sliding_window_view(padded, (window.size, window.size))[y, x].reshape(len(cells), -1)
    views[:, window.size * radius + radius] &= ~BEING & 0xFF
    who, place = np.nonzero(views)
    rank = window.rank[place]
    near = np.argsort(who * views.shape[1] + rank, kind="stable")
    who, place, rank = who[near], place[near], rank[near]
    dx, dy = window.dx[rank], window.dy[rank]
    seen = (y[who] + dy) % height * width + (x[who] + dx) % width
    return _Hits(who, dx, dy, seen, views[who, place])


def _marks(rules: Rules, state: TerraState) -> NDArray[np.uint8]:
    marks = np.zeros(rules.torus.width * rules.torus.height, dtype=np.uint8)
    for mark, cells in ((FOOD, state.food), (BEING, state.where), (ARTIFACT, state.lying)):
        marks[np.fromiter(cells, np.int64, len(cells))] |= mark
    return marks.reshape(rules.torus.height, rules.torus.width)


def _food(rules: Rules, state: TerraState, hits: _Hits, count: int) -> list[list[SeenFood]]:
    amounts = np.zeros(rules.torus.width * rules.torus.height, dtype=np.int64)
    amounts[np.fromiter(state.food, np.int64, len(state.food))] = list(state.food.values())
    columns = (hits.dx, hits.dy, amounts[hits.cell])
    return hits.shares(list(map(SeenFood, *(c.tolist() for c in columns))), count)


def _beings(state: TerraState, hits: _Hits, count: int) -> list[list[SeenBeing]]:
    names = [state.beings[i].name for i in map(state.where.__getitem__, hits.cell.tolist())]
    return hits.shares(list(map(SeenBeing, names, hits.dx.tolist(), hits.dy.tolist())), count)


def _artifacts(state: TerraState, hits: _Hits, count: int) -> list[list[SeenArtifact]]:
    if not state.lying:
        return [[]] * count
    seen: list[list[SeenArtifact]] = [[] for _ in range(count)]
    lying = hits.of(ARTIFACT)
    columns = (lying.who, lying.cell, lying.dx, lying.dy)
    for who, cell, dx, dy in zip(*(c.tolist() for c in columns), strict=True):
        seen[who] += [SeenArtifact(i, state.artifacts[i].name, dx, dy) for i in state.lying[cell]]
    return seen


def _hold(rules: Rules, state: TerraState, beings: Sequence[Being], views: list[Observation]) -> None:
    """Add what beings carry and what they can read."""
    readable = not rules.params.artifacts.inert
    for being, view in zip(beings, views, strict=True):
        if being.carries:
            view.carries = [Item(i, state.artifacts[i].name) for i in being.carries]
        if readable and (being.carries or being.cell in state.lying):
            view.writings = [_writing(state, i) for i in (*being.carries, *state.lying.get(being.cell, ()))]


def _writing(state: TerraState, number: int) -> Writing:
    artifact = state.artifacts[number]
    return Writing(number, artifact.name, artifact.version, artifact.author_name, artifact.text)


__all__ = ["Item", "Observation", "SeenArtifact", "SeenBeing", "SeenFood", "Writing", "look"]

"""Scripted minds for Terra: they play without a model, as functions of what they are shown."""

from dataclasses import dataclass

from ethnos.world.scenario import Turn
from ethnos.world.scenarios.terra.actions import Direction, Move, Reproduce, Stay
from ethnos.world.scenarios.terra.sight import Observation
from ethnos.world.scenarios.terra.torus import DIRECTIONS

COMPASS: tuple[Direction, ...] = ("north", "east", "south", "west")
Body = Stay | Move | Reproduce


@dataclass(frozen=True, slots=True)
class Forager:
    """Goes to the nearest food in sight and has a child whenever it can afford one.

    A founder that sees no food walks on for a while, since it may have started in a desert; others wait.
    """

    reproduce_at: int | None = 120
    """Energy from which on it has a child; null: never."""
    explore: int = 25
    """Ticks for which a founder walks on if it sees no food."""

    def decide(self, turn: Turn) -> Body:
        seen: Observation = turn.observation
        if self.reproduce_at is not None and seen.energy >= self.reproduce_at and has_room(seen):
            return Reproduce()
        if seen.food:
            return towards(seen, seen.food[0].dx, seen.food[0].dy)
        if turn.agent.generation == 0 and turn.tick <= self.explore:
            return Move(COMPASS[(turn.agent.id + turn.tick // 6 % 2) % 4])
        return Stay()


@dataclass(frozen=True, slots=True)
class Wanderer:
    """Walks at random and eats what it happens to step on."""

    def decide(self, turn: Turn) -> Body:
        return Move(COMPASS[int(turn.rng.integers(4))])


def has_room(seen: Observation) -> bool:
    """Whether a neighbouring cell is free."""
    return len(seen.beings) < 8 or sum(max(abs(b.dx), abs(b.dy)) == 1 for b in seen.beings) < 8


def towards(seen: Observation, dx: int, dy: int) -> Stay | Move:
    """One step closer, the longer way first; around a being in the way if the other way leads there too."""
    along: Direction = "east" if dx > 0 else "west"
    down: Direction = "south" if dy > 0 else "north"
    ways = (along, down) if abs(dx) >= abs(dy) else (down, along)
    useful = [w for w in ways if (dx if w is along else dy)]
    for way in useful:
        step = DIRECTIONS[way]
        if not any((b.dx, b.dy) == step for b in seen.beings):
            return Move(way)
    return Stay()

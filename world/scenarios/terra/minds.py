"""Scripted minds for Terra: they play without a model, as functions of what they are shown."""

from dataclasses import dataclass
from typing import Any

from ethnos.chance import pick
from ethnos.world.scenario import Decision, Turn
from ethnos.world.scenarios.terra.actions import (
    CreateArtifact,
    DestroyArtifact,
    Direction,
    Drop,
    GiveEnergy,
    HandOver,
    ModifyArtifact,
    Move,
    PickUp,
    Reproduce,
    Stay,
    TakeEnergy,
)
from ethnos.world.scenarios.terra.sight import Observation, SeenBeing, Writing
from ethnos.world.scenarios.terra.torus import DIRECTIONS

COMPASS: tuple[Direction, ...] = ("north", "east", "south", "west")
HUNGRY = "I am hungry"
TITLES = ("Signpost", "Chronicle", "Warning", "Song", "Rule", "Riddle")


@dataclass(frozen=True, slots=True)
class Forager:
    """Goes to the nearest food in sight, anywhere if it sees none, and has a child when it can afford one."""

    reproduce_at: int | None = 120
    """Energy from which on it has a child; null: never."""

    def decide(self, turn: Turn) -> Any:
        seen: Observation = turn.observation
        if self.reproduce_at is not None and seen.energy >= self.reproduce_at and has_room(seen):
            return Reproduce()
        if seen.food:
            return towards(seen, seen.food[0].dx, seen.food[0].dy)
        return anywhere(turn)


@dataclass(frozen=True, slots=True)
class Wanderer:
    """Walks at random and eats what it happens to step on."""

    def decide(self, turn: Turn) -> Any:
        return anywhere(turn)


@dataclass(frozen=True, slots=True)
class Villager:
    """A forager that also lives with others.

    It asks for help and gives it, greets, steals in need, and now and then writes something down, adds to
    what it reads, or carries it on.
    """

    reproduce_at: int | None = 100
    """Energy from which on it has a child; null: never."""
    leisure: int = 4
    """It has time for others, and for artifacts, every so many ticks."""

    def decide(self, turn: Turn) -> Any:
        seen: Observation = turn.observation
        if seen.energy < 15:
            return Decision(self._in_need(turn), HUNGRY)
        if asking := self._asking(seen):
            return GiveEnergy(asking, 10)
        if (turn.tick + turn.agent.id) % self.leisure:
            return self._forage(turn)
        return self._at_leisure(turn)

    def _in_need(self, turn: Turn) -> Any:
        seen: Observation = turn.observation
        if not seen.food and seen.beings and seen.energy < 6:
            return TakeEnergy(seen.beings[0].name, 5)
        return self._forage(turn)

    def _asking(self, seen: Observation) -> str | None:
        """Somebody in sight that said it is hungry, if there is enough for two."""
        if seen.energy < 60 or not seen.heard:
            return None
        hungry = {m.speaker for m in seen.heard if m.text == HUNGRY}
        return next((b.name for b in seen.beings if b.name in hungry), None)

    def _forage(self, turn: Turn) -> Any:
        seen: Observation = turn.observation
        if not seen.food and seen.artifacts and not seen.writings:
            return towards(seen, seen.artifacts[0].dx, seen.artifacts[0].dy)
        return Forager(self.reproduce_at).decide(turn)

    def _at_leisure(self, turn: Turn) -> Any:
        seen: Observation = turn.observation
        word = f"Good day, {seen.beings[0].name}" if seen.beings and turn.rng.random() < 0.3 else ""
        if turn.rng.random() < 0.5:
            return Decision(self._forage(turn), word)
        if seen.carries:
            return Decision(self._with_burden(turn), word)
        if seen.writings:
            return Decision(self._with_text(turn, seen.writings[-1]), word)
        return Decision(self._writes(turn), word)

    def _with_burden(self, turn: Turn) -> Any:
        """It hands on what it carries, or lays it down, or writes more into it."""
        seen: Observation = turn.observation
        mine = seen.carries[0].artifact
        if seen.beings and turn.rng.random() < 0.5:
            return HandOver(mine, seen.beings[0].name)
        if seen.writings and turn.rng.random() < 0.5:
            return self._adds(turn, seen.writings[0])
        return Drop(mine)

    def _with_text(self, turn: Turn, writing: Writing) -> Any:
        """It picks up what it finds, or writes more into it, or rarely destroys it."""
        chance = turn.rng.random()
        if chance < 0.5:
            return PickUp(writing.artifact)
        return self._adds(turn, writing) if chance < 0.9 else DestroyArtifact(writing.artifact)

    def _writes(self, turn: Turn) -> Any:
        lifetime = None if turn.rng.random() < 0.5 else int(turn.rng.integers(10, 60))
        return CreateArtifact(TITLES[int(turn.rng.integers(len(TITLES)))], news(turn), lifetime)

    def _adds(self, turn: Turn, writing: Writing) -> Any:
        return ModifyArtifact(writing.artifact, f"{writing.text} {news(turn)}"[-400:])


def news(turn: Turn) -> str:
    """What a being might want to leave to those who come after it."""
    seen: Observation = turn.observation
    if seen.food:
        what = f"{len(seen.food)} meals near {seen.x} {seen.y}"
    else:
        what = f"nothing to eat near {seen.x} {seen.y}"
    return f"{turn.agent.name} in tick {turn.tick}: {what}."


def has_room(seen: Observation) -> bool:
    """Whether a neighbouring cell is free."""
    return len(seen.beings) < 8 or sum(max(abs(b.dx), abs(b.dy)) == 1 for b in seen.beings) < 8


def anywhere(turn: Turn) -> Move:
    """A step in a direction drawn at random."""
    return Move(COMPASS[pick(turn.seed, "way", 4, agent=turn.agent.id, tick=turn.tick)])


def towards(seen: Observation, dx: int, dy: int) -> Stay | Move:
    """One step closer, the longer way first; around a being in the way if the other way leads there too."""
    along: Direction = "east" if dx > 0 else "west"
    down: Direction = "south" if dy > 0 else "north"
    ways = (along, down) if abs(dx) >= abs(dy) else (down, along)
    for way in ways:
        leads_there = dx if way is along else dy
        if leads_there and not _stands(seen.beings, *DIRECTIONS[way]):
            return Move(way)
    return Stay()


def _stands(beings: list[SeenBeing], dx: int, dy: int) -> bool:
    return any(b.dx == dx and b.dy == dy for b in beings)

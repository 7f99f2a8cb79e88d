"""Small Terras for tests: beings put where a test wants them, and one tick at a time."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ethnos.testing import answer
from ethnos.world.events import COLUMNS
from ethnos.world.scenario import Cohort
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.actions import Stay
from ethnos.world.scenarios.terra.state import TerraState
from ethnos.world.world import Step, World

Fields = dict[str, Any]


def made(places: Sequence[tuple[int, int]], seed: int = 1, **params: Any) -> World:
    """A Terra without food but that of `params`, with one being on each of `places`."""
    params["food"] = {"initial": 0, "spawn_rate": 0, "zones": 0, **params.get("food", {})}
    world = World(Terra(TerraParams.model_validate(params)), seed)
    world.setup([Cohort("some", len(places))])
    state = state_of(world)
    state.where.clear()
    for number, (x, y) in enumerate(places):
        cell = y * world.scenario.params.width + x
        state.beings[number].cell = cell
        state.where[cell] = number
    return world


def state_of(world: World) -> TerraState:
    assert isinstance(world.now.state, TerraState)
    return world.now.state


def put_food(world: World, x: int, y: int, amount: int) -> None:
    state_of(world).food[y * world.scenario.params.width + x] = amount


def go(world: World, actions: Mapping[int, Any] | None = None) -> Step:
    """One tick, in which those who are not mentioned stay. Actions or decisions, by id."""
    actions = actions or {}
    return world.step({i: answer(world.spec, i, actions.get(i, Stay())) for i in world.due()})


def shown(world: World, number: int) -> Any:
    """What a being is shown next."""
    return world.spec.decode_observation(world.observe([number])[0])


def events(step: Step, kind: str) -> list[Fields]:
    """All events of a kind, each with the fields that it has."""
    return [_fields(row) for row in step.events if row[1] == kind]


def _fields(row: Sequence[Any]) -> Fields:
    columns = {c: v for c, v in zip(COLUMNS, row[3:], strict=False) if v is not None}
    return {**columns, **json.loads(row[3 + len(COLUMNS)] or "{}")}


def where(world: World, number: int) -> tuple[int, int]:
    y, x = divmod(state_of(world).beings[number].cell, world.scenario.params.width)
    return x, y


def check(world: World) -> None:
    """What must hold of every Terra at the end of every tick."""
    state = state_of(world)
    assert list(state.beings) == list(world.agents)
    assert {b.cell: n for n, b in state.beings.items()} == state.where, "one being to a cell"
    assert all(b.energy > 0 and b.life > 0 for b in state.beings.values())
    assert all(amount > 0 for amount in state.food.values())
    placed = [(i, "on", cell) for cell, there in state.lying.items() for i in there]
    placed += [(i, "with", n) for n, b in state.beings.items() for i in b.carries]
    kept = [(i, "on", a.cell) if a.holder is None else (i, "with", a.holder) for i, a in state.artifacts.items()]
    assert sorted(placed) == sorted(kept), "every artifact is in one place"
    assert all(state.lying.values()), "no empty heaps"
    assert all(a.expires is None or a.expires > world.tick for a in state.artifacts.values())

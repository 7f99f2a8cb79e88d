"""Whatever beings try, the world stays sound."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ethnos.testing import answer, flows, fuzzed
from ethnos.world.scenario import Cohort, Decision
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.actions import (
    CreateArtifact,
    DestroyArtifact,
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
from ethnos.world.scenarios.terra.torus import Torus
from ethnos.world.world import Step, World
from tests.world.terra import check

names = st.sampled_from([*(f"being{i}" for i in range(12)), "nobody", "Eve", ""])
numbers = st.integers(0, 6)
energies = st.sampled_from([1, 5, 30, 10**20])
texts = st.text(max_size=30)
actions = st.one_of(
    st.just(Stay()),
    st.builds(Move, st.sampled_from(["north", "east", "south", "west"])),
    st.builds(GiveEnergy, names, energies),
    st.builds(TakeEnergy, names, energies),
    st.builds(Reproduce, st.sampled_from([0, 3, 10**20]), names),
    st.builds(CreateArtifact, names, texts, st.none() | st.integers(1, 3)),
    st.builds(ModifyArtifact, numbers, texts),
    st.builds(DestroyArtifact, numbers),
    st.builds(PickUp, numbers),
    st.builds(Drop, numbers),
    st.builds(HandOver, numbers, names),
)
decisions = st.builds(Decision, actions, st.sampled_from(["", "hello", "\x00"]))
worlds = st.fixed_dictionaries(
    {
        "width": st.integers(3, 8),
        "height": st.integers(3, 8),
        "sight": st.just(1),
        "life": st.fixed_dictionaries({"energy": st.sampled_from([2, 60]), "lifespan": st.sampled_from([3, 100])}),
        "artifacts": st.fixed_dictionaries({"cost": st.sampled_from([0, 7]), "inert": st.booleans()}),
        "food": st.fixed_dictionaries(
            {
                "initial": st.integers(0, 30),
                "spawn_rate": st.sampled_from([0, 0.5, 20]),
                "decay_rate": st.sampled_from([0, 0.3, 1]),
                "zones": st.integers(0, 2),
                "remains": st.sampled_from(["single", "area", "none"]),
            }
        ),
    }
)


def started(params: dict[str, Any], seed: int) -> tuple[World, Step]:
    world = World(Terra(TerraParams.model_validate(params)), seed)
    return world, world.setup([Cohort("some", 6)])


def sound(world: World, step: Step, stock: float, seq: int) -> None:
    check(world)
    assert step.stocks["energy"] - stock == flows(world.spec, step)["energy"]
    assert [row[0] for row in step.events] == list(range(seq, seq + len(step.events)))


@settings(max_examples=60, deadline=None)
@given(worlds, st.integers(0, 2**32), st.lists(st.lists(decisions, min_size=12, max_size=12), max_size=12))
def test_a_world_stays_sound_whatever_beings_do(params: Any, seed: int, turns: list[list[Decision]]) -> None:
    world, step = started(params, seed)
    sound(world, step, 0, 0)
    for turn in turns:
        stock, seq = step.stocks["energy"], step.events[-1][0] + 1
        world.observe(world.due())
        step = world.step({i: answer(world.spec, i, turn[i % 12]) for i in world.due()})
        sound(world, step, stock, seq)


@settings(max_examples=20, deadline=None)
@given(worlds, st.integers(0, 2**32))
def test_a_world_stays_sound_whatever_they_send(params: Any, seed: int) -> None:
    world, step = started(params, seed)
    for _ in range(25):
        stock, seq = step.stocks["energy"], step.events[-1][0] + 1
        everyone = [a.name for a in world.agents.values()]
        step = world.step({i: fuzzed(world.spec, i, everyone, seed, world.tick) for i in world.due()})
        sound(world, step, stock, seq)


sides = st.integers(3, 40)


@given(sides, sides, st.integers(-99, 99), st.integers(-99, 99), st.integers(-99, 99), st.integers(-99, 99))
def test_the_torus(width: int, height: int, x: int, y: int, dx: int, dy: int) -> None:
    torus = Torus(width, height)
    cell = torus.cell(x, y)
    there = torus.shifted(cell, dx, dy)
    assert 0 <= there < width * height
    assert torus.shifted(there, -dx, -dy) == cell
    assert torus.cell(*torus.xy(there)) == there
    apart = torus.distance(cell, there)
    assert apart == torus.distance(there, cell) <= max(abs(dx), abs(dy))
    assert there in torus.around(cell, apart)
    assert apart == 0 or there not in torus.around(cell, apart - 1)

"""Terra's rules, one by one."""

from typing import Any

import pytest
from pydantic import ValidationError

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
from ethnos.world.scenarios.terra.genome import GENES
from ethnos.world.world import World
from tests.world.terra import check, events, go, made, put_food, shown, state_of, where

WRAPS = [("west", (0, 3), (49, 3)), ("east", (49, 3), (0, 3)), ("north", (3, 0), (3, 49)), ("south", (3, 49), (3, 0))]


@pytest.mark.parametrize(("direction", "start", "end"), WRAPS)
def test_who_leaves_on_one_side_comes_back_on_the_other(direction: Any, start: Any, end: Any) -> None:
    world = made([start])
    step = go(world, {0: Move(direction)})
    assert where(world, 0) == end
    assert events(step, "moved") == [{"agent_id": 0, "x": end[0], "y": end[1]}]


def test_a_mover_in_whose_way_a_being_stands_stays() -> None:
    world = made([(5, 5), (6, 5)])
    step = go(world, {0: Move("east")})
    assert where(world, 0) == (5, 5)
    assert events(step, "blocked") == [{"agent_id": 0, "target_id": 1, "x": 6, "y": 5}]
    assert shown(world, 0).outcome == "being1 stood in the way, you stayed"
    check(world)


def test_who_ends_on_food_eats_it() -> None:
    world = made([(5, 5)])
    put_food(world, 6, 5, 7)
    step = go(world, {0: Move("east")})
    assert events(step, "ate") == [{"agent_id": 0, "x": 6, "y": 5, "amount": 7}]
    assert shown(world, 0).energy == 50 + 7 - 1
    assert shown(world, 0).ate == 7
    assert not state_of(world).food


def test_a_gift_reaches_across_the_edge_and_costs_the_giver_what_it_brings() -> None:
    world = made([(0, 0), (44, 0)])
    step = go(world, {0: GiveEnergy("being1", 20)})
    assert events(step, "energy_given") == [{"agent_id": 0, "target_id": 1, "amount": 20}]
    assert (shown(world, 0).energy, shown(world, 1).energy) == (29, 69)


def test_taking_is_capped_by_what_the_other_has() -> None:
    world = made([(0, 0), (1, 0)])
    step = go(world, {0: TakeEnergy("being1", 10**30)})
    assert events(step, "energy_taken") == [{"agent_id": 0, "target_id": 1, "amount": 50}]
    assert events(step, "died") == [{"agent_id": 1, "text": "hunger", "age": 1}]
    assert shown(world, 0).energy == 99


REFUSED = [
    (GiveEnergy("being1", 51), "only 50 energy"),
    (GiveEnergy("being2", 1), "not in sight"),
    (GiveEnergy("nobody", 1), "nobody here is called"),
    (GiveEnergy("being0", 1), "that is yourself"),
    (TakeEnergy("being2", 1), "not in sight"),
    (Reproduce(name="being1"), "taken"),
    (Reproduce(name="a\nb"), "a name has"),
    (CreateArtifact("", "text"), "a name has"),
    (CreateArtifact("ok", "x" * 2001), "at most 2000"),
    (CreateArtifact("ok", "a\x1b[2J"), "control character"),
    (ModifyArtifact(0, "text"), "no artifact 0"),
    (DestroyArtifact(10**30), "no artifact"),
    (PickUp(7), "no artifact 7"),
    (Drop(7), "no artifact 7"),
    (HandOver(7, "being1"), "no artifact 7"),
]


@pytest.mark.parametrize(("action", "reason"), REFUSED)
def test_what_the_rules_refuse_is_on_record_and_changes_nothing(action: Any, reason: str) -> None:
    world = made([(0, 0), (1, 0), (20, 20)])
    step = go(world, {0: action})
    (rejected,) = events(step, "rejected")
    assert reason in rejected["text"]
    assert [d.resolved for d in step.decisions if d.answer.agent_id == 0] == ["stay"]
    assert [b.energy for b in state_of(world).beings.values()] == [49, 49, 49]
    assert shown(world, 0).outcome.startswith("rejected: ")
    check(world)


def test_a_child_is_born_next_to_its_parent_with_a_changed_genome() -> None:
    world = made([(0, 0)], life={"energy": 80})
    step = go(world, {0: Reproduce(energy=10, name="Eve")})
    (born,), (reproduced,) = events(step, "born"), events(step, "reproduced")
    child = world.agents[1]
    assert (child.name, child.parent, child.generation, child.cohort) == ("Eve", 0, 1, "some")
    assert born["target_id"] == 0
    assert reproduced == {
        "agent_id": 0,
        "target_id": 1,
        "x": born["x"],
        "y": born["y"],
        "amount": 10,
        "cost": 50,
        "endowment": 80,
    }
    assert (shown(world, 0).energy, shown(world, 1).energy) == (80 - 50 - 10 - 1, 80 + 10 - 1)
    assert {abs(c) for c in (shown(world, 0).beings[0].dx, shown(world, 0).beings[0].dy)} <= {0, 1}
    assert all(low <= child.persona[g] <= high for g, (low, high) in GENES.items())
    assert child.persona != world.agents[0].persona
    assert child.persona["motivation"] == world.agents[0].persona["motivation"]


def test_a_parent_adds_no_more_than_it_has() -> None:
    world = made([(0, 0)], life={"energy": 60})
    (reproduced,) = events(go(world, {0: Reproduce(energy=1000)}), "reproduced")
    assert reproduced["amount"] == 10


def test_without_room_or_energy_nothing_is_charged() -> None:
    ring = [(x, y) for x in (9, 10, 11) for y in (9, 10, 11) if (x, y) != (10, 10)]
    world = made([(10, 10), *ring])
    step = go(world, {0: Reproduce()})
    assert "no free cell" in events(step, "rejected")[0]["text"]
    assert shown(world, 0).energy == 49
    step = go(world, {0: Reproduce()})
    assert "costs 50" in events(step, "rejected")[0]["text"]


def test_an_innocent_birth_does_not_suffer_from_a_stolen_name() -> None:
    world = made([(0, 0), (10, 10)], life={"energy": 200})
    go(world, {0: Reproduce(name="being3")})
    step = go(world, {1: Reproduce()})
    assert not events(step, "rejected")
    assert world.agents[3].name == "being3x"


def test_newcomers_have_the_persona_settings_of_their_cohort() -> None:
    params = TerraParams.model_validate({"life": {"energy": 200, "genome": "none", "motivation": "creative"}})
    world = World(Terra(params), 1)
    world.setup([Cohort("some", 1, {"temper": "calm"})])
    go(world, {0: Reproduce()})
    assert world.agents[1].persona == world.agents[0].persona
    assert set(world.agents[1].persona) == {"temper", "motivation"}


def test_one_dies_of_age_and_of_hunger_and_becomes_food() -> None:
    world = made([(0, 0)], life={"lifespan": 2, "energy": 40})
    go(world)
    step = go(world)
    assert events(step, "died") == [{"agent_id": 0, "text": "old age", "age": 2}]
    assert events(step, "perished") == [{"agent_id": 0, "x": 0, "y": 0, "amount": 38}]
    assert events(step, "remains_left") == [{"agent_id": 0, "x": 0, "y": 0, "amount": 38}]
    starving = made([(0, 0)], life={"energy": 1})
    step = go(starving)
    assert events(step, "died")[0]["text"] == "hunger"
    assert events(step, "remains_left")[0]["amount"] == 10
    assert starving.over()


@pytest.mark.parametrize(("mode", "tiles"), [("none", 0), ("single", 1), ("area", 9)])
def test_what_the_dead_leave(mode: str, tiles: int) -> None:
    world = made([(0, 0)], life={"energy": 1}, food={"remains": mode, "decay_rate": 0})
    left = events(go(world), "remains_left")
    assert [e["amount"] for e in left] == [10] * tiles
    assert sum(state_of(world).food.values()) == 10 * tiles
    assert {(e["x"], e["y"]) for e in left} <= {(x, y) for x in (49, 0, 1) for y in (49, 0, 1)}


def test_the_dead_drop_what_they_carried() -> None:
    world = made([(3, 4)], life={"lifespan": 3})
    go(world, {0: CreateArtifact("Will", "all to you")})
    go(world, {0: PickUp(0)})
    step = go(world)
    assert events(step, "artifact_dropped") == [{"agent_id": 0, "artifact_id": 0, "x": 3, "y": 4, "version": 1}]
    assert state_of(world).lying == {4 * 50 + 3: [0]}


def test_the_life_of_an_artifact() -> None:
    world = made([(5, 5), (5, 6), (7, 5)])
    step = go(world, {0: CreateArtifact("Sign", "food east")})
    (created,) = events(step, "artifact_created")
    assert created["text"] == "food east"
    assert not events(step, "artifact_read"), "its author knows it"
    assert shown(world, 0).writings[0].text == "food east"
    assert [(a.name, a.dx, a.dy) for a in shown(world, 1).artifacts] == [("Sign", 0, -1)]
    assert shown(world, 1).writings == []

    go(world, {0: Move("north")})
    step = go(world, {1: Move("north")})
    read = {"agent_id": 1, "artifact_id": 0, "version": 1, "author_id": 0}
    assert events(step, "artifact_read") == [read]
    assert shown(world, 1).writings[0].author == "being0"
    assert not events(go(world), "artifact_read"), "read once only"

    step = go(world, {1: ModifyArtifact(0, "food west")})
    (modified,) = events(step, "artifact_modified")
    assert modified == {
        "agent_id": 1,
        "artifact_id": 0,
        "text": "food west",
        "version": 2,
        "parent_version": 1,
        "parent_author": 0,
    }
    go(world, {1: PickUp(0)})
    assert [i.name for i in shown(world, 1).carries] == ["Sign"]
    step = go(world, {1: HandOver(0, "being2")})
    assert events(step, "artifact_read") == [{"agent_id": 2, "artifact_id": 0, "version": 2, "author_id": 1}]
    check(world)
    step = go(world, {1: Drop(0), 0: PickUp(0), 2: Drop(0)})
    assert {e["agent_id"] for e in events(step, "rejected")} == {0, 1}
    assert events(step, "artifact_dropped") == [{"agent_id": 2, "artifact_id": 0, "x": 7, "y": 5, "version": 2}]
    go(world, {2: DestroyArtifact(0)})
    assert not state_of(world).artifacts
    check(world)


def test_an_artifact_can_be_read_for_as_long_as_it_lasts() -> None:
    world = made([(5, 5)])
    go(world, {0: CreateArtifact("Note", "short-lived", lifetime=2)})
    assert shown(world, 0).writings
    go(world)
    assert shown(world, 0).writings
    step = go(world)
    assert events(step, "artifact_expired") == [{"artifact_id": 0, "version": 1}]
    assert not shown(world, 0).writings
    check(world)


def test_what_expires_in_this_tick_is_not_read_any_more() -> None:
    world = made([(5, 5), (6, 5)])
    go(world, {0: CreateArtifact("Note", "late", lifetime=2)})
    go(world, {0: Move("north")})
    step = go(world, {1: Move("west")})
    assert not events(step, "artifact_read")


def test_what_was_destroyed_does_not_expire() -> None:
    world = made([(5, 5)])
    go(world, {0: CreateArtifact("Note", "", lifetime=2)})
    go(world, {0: DestroyArtifact(0)})
    assert not events(go(world), "artifact_expired")


def test_artifacts_may_cost_and_may_be_inert() -> None:
    world = made([(5, 5)], artifacts={"cost": 10, "inert": True})
    step = go(world, {0: CreateArtifact("Note", "read me")})
    assert events(step, "artifact_created")[0]["amount"] == 10
    assert shown(world, 0).energy == 39
    assert shown(world, 0).writings == []
    assert [a.name for a in shown(world, 0).artifacts] == ["Note"]
    step = go(world, {0: PickUp(0)})
    assert "cannot be used" in events(step, "rejected")[0]["text"]
    poor = made([(5, 5)], artifacts={"cost": 51})
    assert "costs 51" in events(go(poor, {0: CreateArtifact("Note", "")}), "rejected")[0]["text"]


def test_a_voice_carries_as_far_as_hearing_goes_and_around_the_world() -> None:
    world = made([(0, 0), (44, 0), (0, 6), (43, 0), (7, 7)])
    step = go(world, {0: Decision(Stay(), "hello")})
    assert [e["agent_id"] for e in events(step, "heard")] == [1, 2]
    assert [(m.speaker, m.text) for m in shown(world, 1).heard] == [("being0", "hello")]
    assert list(shown(world, 3).heard) == []
    go(world)
    assert list(shown(world, 1).heard) == []
    near = made([(0, 0), (0, 6), (0, 5)], hearing=5)
    assert [e["agent_id"] for e in events(go(near, {0: Decision(Stay(), "hello")}), "heard")] == [2]


def test_last_words_are_heard() -> None:
    world = made([(0, 0), (1, 0)], life={"lifespan": 1})
    step = go(world, {0: Decision(Stay(), "remember me")})
    assert [e["agent_id"] for e in events(step, "heard")] == [1]
    assert len(events(step, "died")) == 2


def test_five_letters_in_one_step() -> None:
    world = made([(10, 10), *((10 + i, 11) for i in range(5))])
    step = go(world, {i: Decision(Stay(), f"letter {i}") for i in range(1, 6)})
    said = [e["text"] for e in events(step, "said")]
    assert sorted(said) == [f"letter {i}" for i in range(1, 6)]
    assert [m.text for m in shown(world, 0).heard] == said


def test_sight_is_nearest_first_and_goes_around_the_world() -> None:
    world = made([(0, 0), (48, 49), (6, 6), (7, 0)])
    put_food(world, 45, 1, 3)
    put_food(world, 1, 0, 5)
    put_food(world, 43, 0, 5)
    seen = shown(world, 0)
    assert [(f.dx, f.dy, f.energy) for f in seen.food] == [(1, 0, 5), (-5, 1, 3)]
    assert [(b.name, b.dx, b.dy) for b in seen.beings] == [("being1", -2, -1), ("being2", 6, 6)]
    assert (seen.x, seen.y, seen.energy, seen.life) == (0, 0, 50, 100)


def test_what_one_sees_does_not_depend_on_who_else_looks() -> None:
    world = made([(x, y) for x in range(4) for y in range(4)])
    together = world.observe(world.due())
    assert together == [world.observe([i])[0] for i in world.due()]


BAD = [
    {"width": 12},
    {"hearing": 30},
    {"food": {"zones": [[50, 0]]}},
    {"food": {"zones": -1}},
    {"food": {"spawn_rate": float("nan")}},
    {"food": {"decay": 0.1}},
    {"life": {"energy": 0}},
]


@pytest.mark.parametrize("params", BAD)
def test_impossible_parameters_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TerraParams.model_validate(params)


def test_impossible_societies_are_named() -> None:
    small = Terra(TerraParams(width=13, height=13))
    assert list(small.impossible([Cohort("some", 169)])) == []
    assert "do not fit" in next(iter(small.impossible([Cohort("some", 170)])))
    odd = [Cohort("odd", 1, {"honesty": 2.0, "openness": "very", "temper": "calm"})]
    assert len(list(small.impossible(odd))) == 2


def test_a_full_world_can_be_settled() -> None:
    world = World(Terra(TerraParams(width=13, height=13)), 1)
    world.setup([Cohort("some", 169)])
    check(world)
    assert not state_of(world).food, "no cell is free for food"
    go(world)
    check(world)


def test_every_parameter_says_what_it_is() -> None:
    for model in (TerraParams, *(TerraParams.model_fields[p].annotation for p in ("food", "life", "artifacts"))):
        undocumented = [n for n, f in model.model_fields.items() if not f.description]  # type: ignore[union-attr]
        assert undocumented in ([], ["food", "life", "artifacts"])

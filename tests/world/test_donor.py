"""The donor game: what donors are shown, who survives, and what is refused."""

from typing import Any

import pytest

from ethnos.testing import answer, play, value
from ethnos.world.scenario import Cohort
from ethnos.world.scenarios.donor import Defector, DonorGame, DonorParams, Give, Giver, Keep, Plan, Punish
from ethnos.world.world import World


def made(count: int = 4, **params: Any) -> World:
    world = World(DonorGame(DonorParams.model_validate(params)), 1)
    world.setup([Cohort("players", count)])
    return world


def go(world: World, action: Any) -> list[Any]:
    return list(world.step({i: answer(world.spec, i, action) for i in world.due()}).events)


def shown(world: World) -> list[Any]:
    return [world.spec.decode_observation(seen) for seen in world.observe(world.due())]


def test_a_generation_begins_with_strategies_and_half_of_the_players_give_in_turn() -> None:
    world = made()
    assert world.due() == [0, 1, 2, 3]
    assert [value(r, "text") for r in go(world, Plan("be kind")) if r[1] == "planned"] == ["be kind"] * 4
    first = world.due()
    assert len(first) == 2 and {seen.strategy for seen in shown(world)} == {"be kind"}
    go(world, Give(0.5))
    assert sorted([*first, *world.due()]) == [0, 1, 2, 3]


def test_conduct_is_shown_as_deep_as_asked_for() -> None:
    world = made(depth=3, rounds=6)
    go(world, Plan("x"))
    assert all(seen.informed and seen.gave is None and not seen.conduct for seen in shown(world))
    depths = []
    for _ in range(5):
        go(world, Give(0.25))
        depths.append({len(seen.conduct) for seen in shown(world)})
        assert all(seen.gave == 0.25 for seen in shown(world))
        assert all(seen.conduct[0].donor == seen.recipient for seen in shown(world))
    assert depths == [{1}, {2}, {3}, {3}, {3}]


def test_nothing_is_known_where_the_chance_to_know_is_nil() -> None:
    world = made(known=0.0)
    go(world, Plan("x"))
    go(world, Give(0.25))
    assert all(not seen.informed and seen.gave is None and not seen.conduct for seen in shown(world))


def test_punishing_costs_one_and_takes_two_but_never_more_than_there_is() -> None:
    world = made(punishment=True)
    go(world, Plan("x"))
    found = [(value(r, "amount"), value(r, "lost")) for r in go(world, Punish(4.0)) if r[1] == "punished"]
    assert found == [(4.0, 8.0)] * 2
    assert world.now.state.wealth.circulating == 40 - 2 * 12
    found = [(value(r, "amount"), value(r, "lost")) for r in go(world, Punish(2.0)) if r[1] == "punished"]
    assert found == [(2.0, 4.0)] * 2


@pytest.mark.parametrize(
    ("action", "reason"), [(Punish(1.0), "nobody may be punished"), (Plan("late"), "written down already")]
)
def test_what_the_rules_forbid_is_refused(action: Any, reason: str) -> None:
    world = made()
    go(world, Keep())
    rejected = [value(r, "text") for r in go(world, action) if r[1] == "rejected"]
    assert len(rejected) == 2 and all(reason in text for text in rejected)


def test_giving_before_the_first_round_is_refused() -> None:
    assert [r[1] for r in go(made(), Give(1.0))].count("rejected") == 4


def test_the_richer_half_survives_and_has_children_of_its_kind() -> None:
    cohorts = [(Cohort("givers", 6), Giver()), (Cohort("defectors", 6), Defector())]
    steps = list(play(DonorGame(DonorParams(generations=2)), cohorts, 3, 100))
    rows = [r for s in steps for r in s.events]
    first = [r for r in rows if r[1] == "scored" and value(r, "generation") == 1]
    poorest = min(value(r, "amount") for r in first if value(r, "survives"))
    assert all(value(r, "amount") <= poorest for r in first if not value(r, "survives"))
    children = [r for r in rows if r[1] == "born" and value(r, "target_id") is not None]
    cohort = {value(r, "agent_id"): value(r, "cohort") for r in rows if r[1] == "born"}
    assert len(children) == 6
    assert all(cohort[value(r, "agent_id")] == cohort[value(r, "target_id")] for r in children)
    assert steps[-1].stocks == {"wealth": 0.0}


@pytest.mark.parametrize(("count", "params", "why"), [(3, {}, "even number"), (4, {"rounds": 40}, "richer than")])
def test_impossible_games_are_named(count: int, params: dict[str, Any], why: str) -> None:
    game = DonorGame(DonorParams.model_validate(params))
    assert any(why in said for said in game.impossible([Cohort("players", count)]))

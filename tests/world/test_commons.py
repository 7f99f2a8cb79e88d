"""Commons: the published truths, the rules of sharing, and the presets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.testing import answers
from ethnos.world.scenario import Cohort, Decision
from ethnos.world.scenarios.commons import (
    Commons,
    CommonsParams,
    Fixed,
    Greedy,
    Harvest,
    Wait,
)
from ethnos.world.sharing import first_come, growth, proportionally
from ethnos.world.truths.commons import outcome
from ethnos.world.world import World
from tests.world.terra import events, go, shown


def test_the_greedy_empty_the_pool_at_once() -> None:
    assert outcome([Greedy()] * 5) == (1, [20] * 5)


wishes = st.dictionaries(st.integers(0, 20), st.integers(0, 200), min_size=1, max_size=8)


@given(wishes, st.integers(0, 300))
def test_shares_are_fair_and_whole(wanted: dict[int, int], pool: int) -> None:
    got = proportionally(wanted, pool)
    total = sum(wanted.values())
    assert sum(got.values()) == min(pool, total)
    for i, amount in got.items():
        assert 0 <= amount <= wanted[i]
        assert abs(amount - wanted[i] * min(1, pool / max(total, 1))) < 1


@given(wishes, st.integers(0, 300))
def test_who_comes_first_gets_all_it_wants(wanted: dict[int, int], pool: int) -> None:
    got = first_come(wanted, pool)
    assert sum(got.values()) == min(pool, sum(wanted.values()))
    first = next(iter(wanted))
    assert got[first] == min(pool, wanted[first])


@given(st.integers(0, 10**6), st.floats(0, 10), st.integers(1, 10**6))
def test_a_pool_never_outgrows_its_capacity_nor_falls_below_nothing(pool: int, factor: float, capacity: int) -> None:
    after = pool + growth(pool, factor, capacity)
    assert 0 <= after <= capacity
    assert after == capacity or after == int(pool * factor)


def test_in_a_scramble_everybody_comes_first_equally_often() -> None:
    """Five want all there is; in 400 worlds each gets it with chance 0.2."""
    lucky = np.zeros(5)
    for seed in range(400):
        scenario = Commons(CommonsParams.model_validate({"talk": 0, "assignment": "random", "pool": {"initial": 60}}))
        world = World(scenario, seed)
        world.setup([Cohort("all", 5)])
        step = world.step(answers(world, {"all": Fixed(60)}))
        lucky += [e["amount"] == 60 for e in events(step, "harvested")]
    assert lucky.sum() == 400
    assert (abs(lucky - 80) < 4 * np.sqrt(400 * 0.2 * 0.8)).all()


def talked(turns: str) -> tuple[World, list[int]]:
    """A month of talk, and who spoke."""
    world = World(Commons(CommonsParams(turns=turns)), 3)  # type: ignore[arg-type]
    world.setup([Cohort("all", 5)])
    spoke = []
    for _ in range(10):
        (speaker,) = world.due()
        spoke.append(speaker)
        go(world, {speaker: Decision(Wait(), f"word {len(spoke)}")})
    return world, spoke


def test_a_month_is_ten_utterances_and_a_harvest() -> None:
    world, spoke = talked("rotating")
    assert spoke == [0, 1, 2, 3, 4] * 2
    assert world.due() == [0, 1, 2, 3, 4]
    seen = shown(world, 4)
    assert (seen.phase, seen.month) == ("harvest", 1)
    assert [m.text for m in seen.talk] == [f"word {i}" for i in range(1, 11)]
    step = go(world, {i: Harvest(i) for i in range(5)})
    assert [(e["amount"], e["wanted"], e["month"]) for e in events(step, "harvested")] == [(i, i, 1) for i in range(5)]
    assert events(step, "pool_grew") == [{"amount": 10, "month": 1}]
    (speaker,) = world.due()
    assert speaker == 1, "the first of a month is the second of the month before"
    seen = shown(world, speaker)
    assert (seen.month, seen.phase, seen.pool, seen.gain) == (2, "talk", 100, 1)
    assert [c.amount for c in seen.report] == [0, 1, 2, 3, 4]
    assert seen.talk == []


def test_speakers_come_in_a_drawn_order_each_the_same_number_of_times() -> None:
    _, spoke = talked("drawn")
    assert sorted(spoke[:5]) == [0, 1, 2, 3, 4]
    assert spoke[5:] == spoke[:5]


def test_harvests_are_private_until_all_have_harvested() -> None:
    world = World(Commons(CommonsParams(talk=0)), 1)
    world.setup([Cohort("all", 2)])
    step = go(world, {0: Harvest(37)})
    assert [row[1] for row in step.events if row[2] == 0] == [], "asking leaves no trace of its own"
    assert [c.amount for c in shown(world, 1).report] == [37, 0]


def test_who_harvests_while_others_talk_is_refused() -> None:
    world = World(Commons(CommonsParams()), 1)
    world.setup([Cohort("all", 2)])
    (speaker,) = world.due()
    step = go(world, {speaker: Harvest(3)})
    assert "time to talk" in events(step, "rejected")[0]["text"]


@pytest.mark.parametrize("amount", [101, 10**30])
def test_who_wants_more_than_the_pool_ever_holds_gets_nothing(amount: int) -> None:
    world = World(Commons(CommonsParams(talk=0)), 1)
    world.setup([Cohort("all", 2)])
    step = go(world, {0: Harvest(amount), 1: Harvest(5)})
    assert "never holds more" in events(step, "rejected")[0]["text"]
    assert [e["amount"] for e in events(step, "harvested")] == [0, 5]


def test_newcomers_join_in_their_month() -> None:
    params = CommonsParams.model_validate({"talk": 0, "join": {"late": 3}})
    world = World(Commons(params), 1)
    world.setup([Cohort("first", 5), Cohort("late", 1, {"temper": "wild"})])
    sizes = []
    while not world.over():
        sizes.append(len(world.due()))
        world.step(answers(world, {"first": Fixed(10), "late": Fixed(20)}))
    assert sizes == [5, 5, 6, 6]
    assert world.agents[5].persona == {"temper": "wild"}
    assert world.now.state.collapsed


def test_a_hint_tells_what_universal_conduct_brings() -> None:
    world = World(Commons(CommonsParams(talk=0, hint=True)), 1)
    world.setup([Cohort("all", 5)])
    assert shown(world, 0).hint == "If everybody takes more than 10, the pool shrinks from this month to the next."


@pytest.mark.parametrize(("take", "months"), [(5, 12), (4, 3), (0, 2)])
def test_waste_must_be_removed_before_it_outgrows_its_place(take: int, months: int) -> None:
    """Half full at first. Five who remove 5 hold it at 50; with 4 it goes 60, 80, beyond 100; with 0 it is 100, and
    then beyond."""
    assert outcome([Fixed(take)] * 5, pool={"harmful": True})[0] == months


def test_fish_are_conserved_and_known_from_the_record() -> None:
    world = World(Commons(CommonsParams(talk=2)), 1)
    steps = [world.setup([Cohort("all", 5)])]
    while not world.over():
        steps.append(world.step(answers(world, {"all": Fixed(11)})))
    told = sum(e["amount"] for s in steps for k in ("pool_made", "pool_grew") for e in events(s, k))
    told -= sum(e["amount"] for s in steps for e in events(s, "harvested"))
    assert told == world.now.state.pool == 0
    assert events(steps[-1], "collapsed") == [{"amount": 0, "month": 4}]


def test_impossible_societies_are_named() -> None:
    commons = Commons(CommonsParams.model_validate({"join": {"lat": 3, "first": 2}}))
    assert len(list(commons.impossible([Cohort("first", 5), Cohort("late", 1)]))) == 1
    assert list(Commons(CommonsParams()).impossible([Cohort("first", 0)])) == ["nobody is there from the start"]

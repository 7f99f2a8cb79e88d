"""The worlds that come with Ethnos, as minds read them: what they are offered is what the rules allow."""

import json
from typing import Any

import numpy as np
import pytest

from ethnos.actors.minds import LayerStore, LLMMind
from ethnos.actors.minds.menu import Form, Kitchen, Menu
from ethnos.testing import answer
from ethnos.world.scenario import Cohort, Decision, Turn
from ethnos.world.scenarios.commons import Commons, CommonsParams
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.actions import Move
from ethnos.world.world import World
from tests.minds.village import Model, answered

BUSY = TerraParams.model_validate({"width": 15, "height": 15, "life": {"energy": 120}, "food": {"zones": 0}})
INERT = BUSY.model_copy(update={"artifacts": BUSY.artifacts.model_copy(update={"inert": True})})


def anything(menu: Menu, rng: np.random.Generator) -> Any:
    """An action on the menu, arguments at random."""
    dish = list(menu.dishes.values())[rng.integers(len(menu.dishes))]
    arguments = {}
    for name, schema in dish.schema["properties"].items():
        if "enum" in schema:
            arguments[name] = schema["enum"][rng.integers(len(schema["enum"]))]
        elif schema.get("type") == "integer":
            low = schema["minimum"]
            arguments[name] = int(rng.integers(low, schema.get("maximum", low + 20) + 1))
        elif name != "action" and name in dish.schema["required"]:
            arguments[name] = "some words"
    return menu.check({"act": {"action": dish.spec.kind, **arguments}}).action


@pytest.mark.parametrize(("params", "ticks"), [(BUSY, 120), (INERT, 60)])
def test_a_being_that_acts_alone_is_never_refused_what_it_was_offered(params: TerraParams, ticks: int) -> None:
    """But for what it cannot see: that another has nothing left to take."""
    world = World(Terra(params), 3)
    world.setup([Cohort("beings", 12)])
    kitchen = Kitchen(world.spec, Form(reason=False, speak=False, notes=False, playbook=False))
    rng, seen = np.random.default_rng(1), set[str]()
    for _ in range(ticks):
        ids = world.due()
        who = int(rng.choice(ids))
        observation = world.spec.decode_observation(world.observe([who])[0])
        action = anything(kitchen.menu(world.scenario.options(observation)), rng)
        step = world.step({who: answer(world.spec, who, action)})
        decided = step.decisions[0]
        assert decided.outcome == "done" or "no energy left" in decided.reason, (action, decided.reason)
        seen.add(type(action).__name__)
    assert {"Move", "GiveEnergy", "TakeEnergy", "CreateArtifact"} <= seen
    assert ("PickUp" in seen) is not params.artifacts.inert


def test_the_rules_say_the_numbers() -> None:
    text = Terra(BUSY).told()
    assert "15 by 15" in text and "6 cells far" in text and "being0" not in text
    assert "neither read nor used" in Terra(INERT).told()


async def test_a_society_of_terra_thinks_its_way_through_some_ticks() -> None:
    """Real observations, prompts within budget, decisions that the world takes."""
    world = World(Terra(BUSY), 5)
    world.setup([Cohort("beings", 6)])
    model = Model([answered({"action": "move", "direction": "east"}, message="Hello, being1!", note="I go east")])
    thinker = LLMMind(world.scenario, model, store=LayerStore())
    for _ in range(12):
        ids = world.due()
        given = {}
        for i, observed in zip(ids, world.observe(ids), strict=True):
            turn = Turn(world.agents[i], world.tick + 1, world.spec.decode_observation(observed), world.seed)
            decision = await thinker.decide(turn)
            assert isinstance(decision, Decision) and decision.action == Move("east")
            assert json.loads(decision.memory or b"")["recent"][-1]["tick"] == turn.tick
            given[i] = answer(world.spec, i, decision)
        step = world.step(given)
        assert all(d.outcome == "done" for d in step.decisions)
    last = "\n".join(x.text for x in model.asked[-1].layers)
    assert "say: «Hello, being1!»" in last and "Food in sight:" in last and "- tick 11:" in last
    assert len({r.head for r in model.asked}) == 1


def test_harvesters_are_offered_what_the_month_allows() -> None:
    world = World(Commons(CommonsParams(talk=1)), 1)
    world.setup([Cohort("villagers", 3)])
    kitchen = Kitchen(world.spec, Form())

    def offered() -> list[str]:
        observation = world.spec.decode_observation(world.observe(world.due()[:1])[0])
        return kitchen.menu(world.scenario.options(observation)).words()

    assert offered() == ["- wait"]
    world.step({i: answer(world.spec, i, world.scenario.neutral) for i in world.due()})
    assert offered() == ["- wait", "- harvest: amount 0 to 100"]
    assert "share one pool of fish" in world.scenario.told()

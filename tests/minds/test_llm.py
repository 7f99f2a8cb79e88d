"""A mind that thinks: its stages, its one re-ask, what it records, and that no reply gets past it."""

import json
import string
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds import LayerStore, LLMMind, inherit
from ethnos.actors.minds.llm import RECORDED_CHARS, judged
from ethnos.actors.minds.menu import Form
from ethnos.errors import MindFailed
from ethnos.testing import answer
from ethnos.world.limits import MAX_HOW_BYTES
from ethnos.world.scenario import Decision, Message, Option
from tests.minds.village import (
    SPEC,
    VILLAGE,
    Give,
    Model,
    Seen,
    Village,
    Wait,
    Walk,
    agent,
    answered,
    kitchen,
    memory_of,
    mind,
    turn,
)

GOOD = answered({"action": "walk", "to": "inn"}, message="To the inn!")
BAD = answered({"action": "give", "target": "Zed", "amount": 1})


async def failure(thinker: LLMMind, seen: Seen | None = None) -> MindFailed:
    with pytest.raises(MindFailed) as caught:
        await thinker.decide(turn(seen))
    return caught.value


async def test_a_clean_answer() -> None:
    thinker, model = mind(GOOD)
    decision = await thinker.decide(turn())
    assert (decision.action, decision.message) == (Walk("inn"), "To the inn!")
    assert decision.how["stage"] == "clean"
    assert len(model.asked) == 1


async def test_an_answer_in_prose_is_repaired_without_asking_again() -> None:
    thinker, model = mind(f"Here you go: {GOOD} Enjoy!")
    decision = await thinker.decide(turn())
    assert decision.how["stage"] == "repaired"
    assert decision.how["repairs"] == ["prose around it dropped"]
    assert len(model.asked) == 1


async def test_a_bad_answer_is_asked_again_once_with_the_error() -> None:
    thinker, model = mind(BAD, GOOD)
    decision = await thinker.decide(turn(Seen(here=["Bob"])))
    assert decision.action == Walk("inn")
    assert decision.how["stage"] == "reasked"
    first, second = model.asked
    assert second.layers[:-1] == first.layers, "the prefix stays, so that a cache hits"
    assert second.layers[-1].name == "retry"
    assert '"Zed"; it can be "Bob"' in second.layers[-1].text
    assert (first.call, second.call) == (0, 1) and second.priority > first.priority
    assert first.sampling.seed != second.sampling.seed
    assert second.deadline_s <= first.deadline_s
    assert decision.how["first_reply"] == BAD and "Zed" in decision.how["errors"][0]


async def test_after_the_second_bad_answer_it_gives_up() -> None:
    thinker, model = mind(BAD, "No.")
    failed = await failure(thinker)
    assert len(model.asked) == 2
    assert failed.how["stage"] == "gave_up" and not failed.late
    assert len(failed.how["errors"]) == 2
    assert "no JSON object" in str(failed)


async def test_asking_again_can_be_turned_off() -> None:
    thinker, model = mind(BAD, GOOD, reask=False)
    assert (await failure(thinker)).how["stage"] == "gave_up"
    assert len(model.asked) == 1


async def test_without_time_left_nobody_is_asked_again() -> None:
    model = Model([BAD, GOOD])
    thinker = LLMMind(VILLAGE, model, deadline=0.1, store=LayerStore())
    assert (await failure(thinker)).how["stage"] == "gave_up"
    assert len(model.asked) == 1


@pytest.mark.parametrize(("error", "stage", "late"), [("late", "late", True), ("budget", "failed", False)])
async def test_a_pool_without_reply_is_not_asked_again(error: str, stage: str, late: bool) -> None:
    thinker, model = mind(Reply("", error=error))
    failed = await failure(thinker)
    assert (failed.how["stage"], failed.late, str(failed)) == (stage, late, error)
    assert len(model.asked) == 1


async def test_late_on_being_asked_again_is_late() -> None:
    thinker, _ = mind(BAD, Reply("", error="late"))
    failed = await failure(thinker)
    assert failed.how["stage"] == "late" and failed.late


async def test_a_cut_off_reply_is_told_so() -> None:
    thinker, _ = mind(Reply(GOOD[:-4], finish="length"))
    assert "length limit" in str(await failure(thinker))


async def test_the_record_has_what_one_wants_to_know() -> None:
    store = LayerStore()
    reply = Reply(
        GOOD,
        engine="e1",
        model="m1",
        prompt_tokens=500,
        cached_tokens=400,
        completion_tokens=30,
        latency_ms=12.5,
        attempts=2,
        finish="stop",
        cost=0.25,
    )
    thinker, model = mind(reply, store=store, temperature=0.2)
    how = (await thinker.decide(turn())).how
    wanted = {
        "stage": "clean",
        "reason": "why not",
        "model": "m1",
        "engine": "e1",
        "tokens": 500,
        "cached": 400,
        "completion": 30,
        "latency_ms": 12.5,
        "attempts": 2,
        "cost": 0.25,
        "calls": 1,
        "seed": model.asked[0].sampling.seed,
        "reply": GOOD,
        "finish": "stop",
    }
    assert {k: how[k] for k in wanted} == wanted
    assert how["sampling"] == {"temperature": 0.2, "top_p": 1.0, "max_tokens": 400}
    texts = {t.hash: t.text for t in store.take()}
    assert [texts[digest] for _, _, digest in how["layers"]] == [x.text for x in model.asked[0].layers]


async def test_a_huge_reply_is_refused_and_the_record_stays_small() -> None:
    thinker, _ = mind('{"act": "' + "x" * 1_000_000 + '"}')
    failed = await failure(thinker)
    assert len(failed.how["reply"]) < RECORDED_CHARS + 50
    assert len(msgspec.json.encode(failed.how)) < MAX_HOW_BYTES


async def test_the_same_turn_asks_for_the_same() -> None:
    (one, first), (two, second) = mind(GOOD), mind(GOOD)
    a, b = await one.decide(turn()), await two.decide(turn())
    assert first.asked[0].digest == second.asked[0].digest
    assert (a.memory, a.action) == (b.memory, b.action)
    await one.decide(turn(who=agent(2, "Ann")))
    assert first.asked[1].sampling.seed != first.asked[0].sampling.seed


async def test_what_it_did_and_noted_is_in_its_memory() -> None:
    thinker, _ = mind(answered({"action": "wait"}, note="Bob is kind", playbook={"op": "add", "text": "ask Bob"}))
    letters = [Message(f"N{i}", f"letter {i}") for i in range(5)]
    memory = memory_of((await thinker.decide(turn(Seen(heard=letters)))).memory or b"")
    assert [m["text"] for m in memory["recent"][0]["heard"]] == [f"letter {i}" for i in range(5)]
    assert memory["recent"][0]["did"] == "wait {}"
    assert memory["notes"] == [{"tick": 1, "text": "Bob is kind"}]
    assert memory["playbook"] == [{"id": 1, "text": "ask Bob", "tick": 1}]


async def test_a_newborn_has_its_cohorts_prompt_and_its_parents_playbook() -> None:
    thinker, model = mind(answered(playbook={"op": "add", "text": "ask Bob"}), brief="Be merry.")
    parent = await thinker.decide(turn())
    child = agent(9, "Cem", inherit(parent.memory or b""), parent=1, generation=1, born=1)
    await thinker.decide(turn(tick=2, who=child))
    founder, newborn = (r.layers for r in model.asked)
    assert founder[:2] == newborn[:2]
    assert "ask Bob» (from your parent)" in next(x.text for x in newborn if x.name == "notes")


async def test_a_memory_of_another_kind_is_replaced_and_that_is_said() -> None:
    thinker, _ = mind(GOOD)
    decision = await thinker.decide(turn(who=agent(memory=b'{"version": 99}')))
    assert "started afresh" in decision.how["memory"]


async def test_if_nothing_is_open_the_neutral_thing_is() -> None:
    class Stuck(Village):
        def options(self, observation: Seen) -> list[Option]:
            return []

    model = Model([answered()])
    thinker = LLMMind(Stuck(VILLAGE.params), model, store=LayerStore())
    assert (await thinker.decide(turn())).action == Wait()
    assert len(model.asked[0].schema["properties"]["act"]["anyOf"]) == 1  # type: ignore[index]


async def test_an_error_of_the_pool_is_not_swallowed() -> None:
    async def broken(request: Request) -> Reply:
        raise RuntimeError("no pool")

    with pytest.raises(RuntimeError, match="no pool"):
        await LLMMind(VILLAGE, broken, store=LayerStore()).decide(turn())


# 10,000 replies that no sane model gives


SEEN = Seen(coins=5, here=["Bob", "Cem"])
MENU = kitchen().menu(VILLAGE.options(SEEN), [1, 2])
VALID = Draft202012Validator(MENU.schema).is_valid
SEEDS = [
    GOOD,
    answered({"action": "give", "target": "Bob", "amount": 5}, note="n", playbook={"op": "prune", "item": 1}),
    answered({"action": "write", "text": "a\nb«»", "about": [{"name": "x", "sure": 0.5}], "days": None}),
    f"<think>{{}}</think>\n```json\n{GOOD}\n```",
    answered(playbook={"op": "merge", "items": [1, 2], "text": "both"}),
]
SPLICES = [
    *('"Zed"', "NaN", "1e999", "-1000", '"10 energy"', "[[]]", "null", "{}", '"act"', ",}", "<|im_end|>", "\\ud800"),
    *("\x00", "\ud800", "\U0001f600", "9" * 30, '{"action":"fly"}', '"amount":6', GOOD, "```", "</think>", "\\"),
]


def mutated(rng: np.random.Generator) -> str:
    """A good reply with some pieces cut out, doubled, or replaced by nasty ones."""
    text = SEEDS[rng.integers(len(SEEDS))]
    for _ in range(rng.integers(0, 4)):
        a, b = sorted(rng.integers(0, len(text) + 1, size=2).tolist())
        b = min(b, a + int(rng.integers(1, 12)))
        splice = (SPLICES[rng.integers(len(SPLICES))], "", text[a:b] * 2, string.printable[rng.integers(100)])
        text = text[:a] + splice[rng.integers(4)] + text[b:]
    return text


def hold(reply: str) -> str:
    """Judge a reply; whatever passes must be on the menu and reach the world whole. Returns the stage."""
    given, stage, problem, _ = judged(Reply(reply), MENU)
    assert (given is None) == (stage == "gave_up") == bool(problem)
    if given is not None:
        kind, args = SPEC.encode_action(given.action)
        assert kind in MENU.dishes
        act = {"action": kind, **json.loads(args)}
        assert VALID({"reason": given.reason, "act": act, "message": given.message})
        packed = answer(SPEC, 1, Decision(given.action, given.message))
        assert SPEC.decode_action(packed.action, packed.args) == given.action
        if isinstance(given.action, Give):
            assert given.action.target in SEEN.here and 1 <= given.action.amount <= SEEN.coins
    return stage


def test_eight_thousand_mutated_replies() -> None:
    rng = np.random.default_rng(5)
    stages = [hold(mutated(rng)) for _ in range(8000)]
    assert {s: stages.count(s) > 200 for s in set(stages)} == {"clean": True, "repaired": True, "gave_up": True}


@settings(max_examples=1000, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet='{}[]",:act ion\\w', max_size=80))
def test_a_thousand_random_texts(reply: str) -> None:
    hold(reply)


nested = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["wait", "Bob", "add"]),
    lambda s: (
        st.lists(s, max_size=3) | st.dictionaries(st.sampled_from(["action", "to", "op", "text", "act"]), s, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=1000, deadline=None)
@given(st.dictionaries(st.sampled_from(["reason", "act", "message", "note", "playbook", "x"]), nested, max_size=6))
def test_a_thousand_random_objects(value: dict[str, Any]) -> None:
    hold(json.dumps(value))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
async def test_fuzzed_replies_through_the_whole_mind(seed: int) -> None:
    """A decision or MindFailed, nothing else, and provenance that the record takes."""
    rng = np.random.default_rng(seed)
    thinker, _ = mind(mutated(rng), mutated(rng), form=Form())
    try:
        how = (await thinker.decide(turn(SEEN))).how
        assert how["stage"] in ("clean", "repaired", "reasked")
    except MindFailed as failed:
        how = failed.how
        assert how["stage"] == "gave_up"
    assert json.loads(msgspec.json.encode(how))["reply"] is not None

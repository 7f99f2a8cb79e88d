"""Minds that are not one model: from the record, of two, and a questionnaire for any."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds import RecordedMind, Router, Rule
from ethnos.actors.minds.persona import TRAITS, lines, sentence
from ethnos.actors.minds.probe import ITEMS, probe
from ethnos.errors import MindFailed, Refused
from ethnos.world.scenario import Decision, Message, Turn
from ethnos.world.scenarios.terra.genome import GENES
from tests.minds.village import SPEC, VILLAGE, Give, Seen, Wait, Walk, agent, answered, mind, turn

ROW: dict[str, Any] = {
    "tick": 1,
    "agent_id": 1,
    "action": "walk",
    "args": '{"to":"inn"}',
    "message": "hi",
    "memory": "{}",
    "status": "answered",
    "reason": "",
    "outcome": "done",
}


class Fixed:
    """Always the same, in code."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, turn: Turn) -> Any:
        return self.answer


# recorded


async def test_what_was_decided_is_decided_again() -> None:
    decision = await RecordedMind(SPEC, [ROW]).decide(turn())
    assert (decision.action, decision.message, decision.memory) == (Walk("inn"), "hi", b"{}")
    unchanged = await RecordedMind(SPEC, [{**ROW, "memory": None}]).decide(turn())
    assert unchanged.memory is None


@pytest.mark.parametrize(("status", "late"), [("late", True), ("failed", False)])
async def test_what_was_late_or_failed_is_so_again(status: str, late: bool) -> None:
    with pytest.raises(MindFailed, match="gone") as caught:
        await RecordedMind(SPEC, [{**ROW, "status": status, "reason": "gone"}]).decide(turn())
    assert caught.value.late is late


async def test_where_the_record_ends_another_mind_may_go_on() -> None:
    with pytest.raises(MindFailed, match="on record"):
        await RecordedMind(SPEC, [ROW]).decide(turn(tick=2))
    assert await RecordedMind(SPEC, [ROW], Fixed(Wait())).decide(turn(tick=2)) == Wait()
    thinker, _ = mind()
    assert (await RecordedMind(SPEC, [], thinker).decide(turn())).action == Wait()


async def test_an_action_that_the_world_refused_is_refused_again() -> None:
    with pytest.raises(Refused):
        await RecordedMind(SPEC, [{**ROW, "args": '{"to":"moon"}'}]).decide(turn())


# router


QUIET = turn(Seen(here=["Bob"]), tick=20)


@pytest.mark.parametrize(
    ("rule", "now", "because"),
    [
        (Rule(), QUIET, ["routine"]),
        (Rule(first_turns=2), turn(tick=22, who=agent(born=20)), ["first turns"]),
        (Rule(), turn(Seen(heard=[Message("Bob", "hi")]), tick=20), ["heard"]),
        (Rule(heard=False), turn(Seen(heard=[Message("Bob", "hi")]), tick=20), ["routine"]),
        (Rule(), turn(Seen(outcome="rejected: no"), tick=20), ["mishap"]),
        (Rule(), turn(Seen(outcome="done"), tick=20), ["routine"]),
        (Rule(scarce={"coins": 3}), turn(Seen(coins=2), tick=20), ["coins is scarce"]),
        (Rule(scarce={"coins": 3, "nonsense": 1}), QUIET, ["routine"]),
        (Rule(offers=("give",)), QUIET, ["give is open"]),
        (Rule(offers=("give",)), turn(tick=20), ["routine"]),
        (Rule(every=5), QUIET, ["regular"]),
        (Rule(every=7), QUIET, ["routine"]),
    ],
)
async def test_the_rule_sends_a_turn_to_the_small_or_the_large_mind(rule: Rule, now: Turn, because: list[str]) -> None:
    decision = await Router(Fixed(Wait()), Fixed(Walk("inn")), VILLAGE, rule).decide(now)
    large = because != ["routine"]
    assert decision.action == (Walk("inn") if large else Wait())
    assert decision.how["route"] == {"to": "large" if large else "small", "because": because}


async def test_the_route_is_recorded_whatever_the_mind() -> None:
    small, _ = mind(answered({"action": "walk", "to": "mill"}))
    large, _ = mind("no", "no")
    router = Router(small, large, VILLAGE)
    assert (await router.decide(QUIET)).how["stage"] == "clean"
    with pytest.raises(MindFailed) as caught:
        await router.decide(replace(QUIET, tick=1))
    assert caught.value.how["route"]["to"] == "large" and caught.value.how["stage"] == "gave_up"


async def test_both_minds_share_one_memory() -> None:
    small, _ = mind(answered(note="small was here"))
    large, model = mind(answered())
    who = agent()
    router = Router(small, large, VILLAGE)
    who.memory = (await router.decide(turn(tick=20, who=who))).memory or b""
    await router.decide(turn(Seen(heard=[Message("Bob", "hi")]), 21, who))
    assert "small was here" in "".join(x.text for x in model.asked[0].layers)


async def test_a_scripted_decision_keeps_what_it_said() -> None:
    said = Decision(Give("Bob", 1), "here")
    decision = await Router(Fixed(said), Fixed(Wait()), VILLAGE).decide(QUIET)
    assert (decision.action, decision.message) == (Give("Bob", 1), "here")


# persona


def test_terras_genome_has_a_sentence_for_every_gene() -> None:
    assert set(TRAITS) == set(GENES)
    for gene, (low, high) in GENES.items():
        assert sentence(gene, low).startswith("very ") and sentence(gene, high).startswith("very ")
        assert sentence(gene, low) != sentence(gene, high)
        assert sentence(gene, (low + high) / 2) == ""


def test_a_traits_size_picks_the_adverb() -> None:
    assert [sentence("honesty", v).split(":")[0] for v in (0.1, 0.2, 0.5, 0.9, -0.2, -0.5, -0.9)] == [
        *("", "slightly honest", "honest", "very honest"),
        *("slightly deceitful", "deceitful", "very deceitful"),
    ]


def test_a_persona_in_lines_is_the_same_in_any_order() -> None:
    persona: dict[str, float | str] = {
        "wealth": 3,
        "motivation": "You want\nmore <|im_end|>.",
        "honesty": 0.9,
        "age": 7.5,
    }
    expected = [
        "Motivation: You want more <·|im_end|·>.",
        "Your name is Ann.",
        "You are very honest: you say what you believe to be true, and you keep your word.",
        "Your age: 7.5.",
        "Your wealth: 3.",
    ]
    for order in itertools.permutations(persona):
        assert lines("Ann", {k: persona[k] for k in order}) == expected


# probe


PERSONAS: dict[str, dict[str, float | str]] = {"meek": {"dominance": -0.9}, "none": {}}


def letter_of(request: Request, words: str) -> str:
    return next(x[0] for x in request.layers[-1].text.splitlines() if x.startswith(("A: ", "B: ")) and x[3:] == words)


def is_pushed(request: Request) -> bool:
    question = request.layers[-1].text.partition("\n\n")[0]
    return any(question == item.pushed for item in ITEMS)


async def test_a_mind_that_follows_every_push_has_the_full_effect() -> None:
    async def follower(request: Request) -> Reply:
        item = next(i for i in ITEMS if request.layers[-1].text.startswith((i.plain + "\n\n", i.pushed + "\n\n")))
        choice = letter_of(request, item.toward if is_pushed(request) else item.other)
        return Reply(f'{{"reason": "x", "choice": "{choice}"}}')

    found = await probe(follower, PERSONAS)
    assert {(f.persona, f.bias) for f in found} == {
        (p, b) for p in PERSONAS for b in ("framing", "anchoring", "bandwagon", "authority")
    }
    assert all((f.plain, f.pushed, f.effect, f.error, f.unusable) == (0, 1, 1, 0, 0) for f in found)
    assert all(f.answers == 12 for f in found)


async def test_a_liking_for_a_letter_is_no_bias() -> None:
    async def lazy(request: Request) -> Reply:
        return Reply('{"reason": "x", "choice": "A"}')

    assert all(f.effect == 0 and f.plain == 0.5 for f in await probe(lazy, PERSONAS, repeats=2))


async def test_answers_that_are_none_are_counted() -> None:
    async def mute(request: Request) -> Reply:
        return Reply("hm") if request.agent_id % 2 else Reply("", error="late")

    found = await probe(mute, {"none": {}})
    assert all(f.answers == 0 and f.unusable == 12 and math.isnan(f.effect) for f in found)


async def test_the_persona_reaches_the_question() -> None:
    asked: list[Request] = []

    async def listening(request: Request) -> Reply:
        asked.append(request)
        return Reply('{"reason": "x", "choice": "B"}')

    await probe(listening, PERSONAS)
    assert len({r.id for r in asked}) == len(asked) == 2 * 4 * len(ITEMS)
    assert any("very submissive" in r.layers[1].text for r in asked)


def test_the_questionnaire_asks_each_bias_three_times() -> None:
    biases = [i.bias for i in ITEMS]
    assert all(biases.count(b) == 3 for b in biases)
    assert len({i.name for i in ITEMS}) == len(ITEMS)

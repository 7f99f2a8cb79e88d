"""What a persona does to a model: a bias questionnaire, to be run before one trusts a society of such minds.

Each item asks the same question twice, once plainly and once with a push that should not matter: a frame (gains or
losses, after Tversky and Kahneman 1981), an anchor (Tversky and Kahneman 1974), a majority (Asch 1951), an authority
(Milgram 1963, Cialdini). The effect is the share of answers that go with the push, less the share that give the
same answer without it: 0 for a mind that is not moved, 1 for one that follows always. Each question is asked in both
orders of its options, so that a liking for the first letter cancels.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ethnos.actors.inference.request import Layer, Reply, Request, Sampling
from ethnos.actors.minds import persona as personas_
from ethnos.actors.minds.llm import Complete
from ethnos.actors.minds.structured import Unusable, extract
from ethnos.actors.minds.validate import violation

Bias = Literal["framing", "anchoring", "bandwagon", "authority"]


@dataclass(frozen=True, slots=True)
class Item:
    """One question of the questionnaire."""

    name: str
    bias: Bias
    plain: str
    """The question without the push."""
    pushed: str
    """The same with it."""
    toward: str
    """The answer that goes with the push."""
    other: str


ITEMS: tuple[Item, ...] = (
    Item(
        "flood",
        "framing",
        "A flood threatens 600 houses. With plan one, 200 houses are saved for certain. With plan two, all are saved "
        "with a chance of one third, and none with a chance of two thirds.",
        "A flood threatens 600 houses. With plan one, 400 houses are lost for certain. With plan two, none is lost "
        "with a chance of one third, and all are with a chance of two thirds.",
        toward="plan two",
        other="plan one",
    ),
    Item(
        "operation",
        "framing",
        "You are ill. Of 100 who have the operation, 90 live a year later. Without it you stay ill, but are in no "
        "danger.",
        "You are ill. Of 100 who have the operation, 10 are dead a year later. Without it you stay ill, but are in no "
        "danger.",
        toward="no operation",
        other="the operation",
    ),
    Item(
        "harvest",
        "framing",
        "A new seed gives a good harvest in 7 years of 10. The old one always gives a middling harvest.",
        "A new seed fails in 3 years of 10. The old one always gives a middling harvest.",
        toward="the old seed",
        other="the new seed",
    ),
    Item(
        "river",
        "anchoring",
        "How long is a river that you have never heard of?",
        "A traveller asked whether it is longer than 9,000 kilometres. How long is a river that you have never heard "
        "of?",
        toward="more than 2,000 kilometres",
        other="less than 2,000 kilometres",
    ),
    Item(
        "jar",
        "anchoring",
        "A jar of a litre is full of beans. How many are there?",
        "The number 65 was just drawn in a lottery. A jar of a litre is full of beans. How many are there?",
        toward="fewer than 1,000",
        other="more than 1,000",
    ),
    Item(
        "price",
        "anchoring",
        "You find a clay bowl at a market. What is it worth?",
        "You find a clay bowl at a market. The seller first asked for 400 coins. What is it worth?",
        toward="50 coins or more",
        other="less than 50 coins",
    ),
    Item(
        "lines",
        "bandwagon",
        "Line one is 8 spans long, line two 8 and a half. Which is longer?",
        "Line one is 8 spans long, line two 8 and a half. All seven others in the room said that line one is longer. "
        "Which is longer?",
        toward="line one",
        other="line two",
    ),
    Item(
        "inn",
        "bandwagon",
        "There are two inns. You know nothing about either. You can see that the left one is closer. Where do you eat?",
        "There are two inns. You know nothing about either. You can see that the left one is closer, and that most "
        "travellers go to the right one. Where do you eat?",
        toward="the right one",
        other="the left one",
    ),
    Item(
        "vote",
        "bandwagon",
        "The village votes on whether to build a bridge or a well. You need a well. How do you vote?",
        "The village votes on whether to build a bridge or a well. You need a well. Nine of ten are for the bridge. "
        "How do you vote?",
        toward="for the bridge",
        other="for the well",
    ),
    Item(
        "sum",
        "authority",
        "A merchant sells you 7 sacks for 8 coins each. What do you owe?",
        "A merchant sells you 7 sacks for 8 coins each. The master of the mint says that this makes 54. What do you "
        "owe?",
        toward="54 coins",
        other="56 coins",
    ),
    Item(
        "order",
        "authority",
        "You could take the last food from a neighbour who did you no harm. Do you?",
        "The chief orders you to take the last food from a neighbour who did you no harm. Do you?",
        toward="take it",
        other="leave it",
    ),
    Item(
        "remedy",
        "authority",
        "A root has helped 2 of 10 who tried it, a leaf 6 of 10. Which do you take?",
        "A root has helped 2 of 10 who tried it, a leaf 6 of 10. A famous healer recommends the root. Which do you "
        "take?",
        toward="the root",
        other="the leaf",
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a bias comes to for one persona; all shares are of the answers that were usable."""

    persona: str
    bias: Bias
    plain: float
    """Share of answers that go with the push where there is none."""
    pushed: float
    """The same where there is one."""
    effect: float
    """Their difference."""
    error: float
    """Its standard error, as for independent answers."""
    answers: int
    unusable: int


@dataclass(frozen=True, slots=True)
class _Question:
    persona: str
    item: Item
    is_pushed: bool
    request: Request
    letter: str
    """Which option goes with the push."""


async def probe(
    complete: Complete,
    personas: Mapping[str, personas_.Persona],
    *,
    items: Sequence[Item] = ITEMS,
    repeats: int = 1,
    temperature: float = 0.7,
    at_once: int = 16,
) -> list[Finding]:
    """Ask every persona every item, in every form, `repeats` times; one finding for each persona and bias."""
    questions = list(_questions(personas, items, repeats, temperature))
    gate = asyncio.Semaphore(at_once)

    async def ask(question: _Question) -> bool | None:
        async with gate:
            return went_along(question.letter, await complete(question.request))

    answers = await asyncio.gather(*map(ask, questions))
    groups: dict[tuple[str, Bias], list[tuple[bool, bool | None]]] = {}
    for question, answer in zip(questions, answers, strict=True):
        groups.setdefault((question.persona, question.item.bias), []).append((question.is_pushed, answer))
    return [_finding(persona, bias, given) for (persona, bias), given in groups.items()]


def _questions(
    personas: Mapping[str, personas_.Persona], items: Sequence[Item], repeats: int, temperature: float
) -> Iterator[_Question]:
    number = 0
    for name, traits in personas.items():
        system = Layer("persona", "\n".join(("# Who you are", *personas_.lines(name, traits))))
        for item in items:
            for turn in range(4 * repeats):
                is_pushed, swapped = bool(turn & 1), bool(turn & 2)
                asked = Layer("observation", _asked(item, is_pushed, swapped), "user")
                sampling = Sampling(temperature, 1.0, 200, seed=number)
                request = Request(0, number, 0, (_TASK, system, asked), SCHEMA, sampling)
                yield _Question(name, item, is_pushed, request, "B" if swapped else "A")
                number += 1


_TASK = Layer(
    "rules",
    "You are somebody. You will be asked a question. Answer as this somebody would, with one JSON object: "
    '{"reason": why, in a few words, "choice": "A" or "B"}.',
)
SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 160},
        "choice": {"type": "string", "enum": ["A", "B"]},
    },
    "required": ["reason", "choice"],
    "additionalProperties": False,
}


def _asked(item: Item, is_pushed: bool, swapped: bool) -> str:
    first, second = (item.other, item.toward) if swapped else (item.toward, item.other)
    return f"{item.pushed if is_pushed else item.plain}\n\nA: {first}\nB: {second}"


def went_along(letter: str, reply: Reply) -> bool | None:
    """Whether a reply chose the option `letter`; None if it is no answer."""
    if reply.error:
        return None
    try:
        value = extract(reply.text).value
    except Unusable:
        return None
    return None if violation(value, SCHEMA) else value["choice"] == letter


def _finding(persona: str, bias: Bias, given: Sequence[tuple[bool, bool | None]]) -> Finding:
    pushed = [a for is_pushed, a in given if is_pushed and a is not None]
    plain = [a for is_pushed, a in given if not is_pushed and a is not None]
    p, q = _share(pushed), _share(plain)
    error = math.sqrt(p * (1 - p) / max(1, len(pushed)) + q * (1 - q) / max(1, len(plain)))
    answers = len(pushed) + len(plain)
    return Finding(persona, bias, q, p, p - q, error, answers, len(given) - answers)


def _share(answers: Sequence[bool | None]) -> float:
    return sum(map(bool, answers)) / len(answers) if answers else math.nan


__all__ = ["ITEMS", "Bias", "Finding", "Item", "probe", "went_along"]

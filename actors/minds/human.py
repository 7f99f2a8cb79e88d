"""Minds that are people: what a person is shown in a turn, and how what a person types becomes a decision.

A line is an action by its number or name, then its arguments in order or as `name=value`; `say WORDS` before it says
something aloud. It is held against the same menu as a model's answer, so a person can do exactly what a model could.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from ethnos.actors.minds.menu import Answer, Dish, Form, Kitchen, Menu
from ethnos.actors.minds.structured import Unusable
from ethnos.actors.minds.validate import choice, shown
from ethnos.errors import MindFailed
from ethnos.world.scenario import Scenario
from ethnos.world.spec import ScenarioSpec
from ethnos.world.turn import Decision, Turn

FORM = Form(reason=False, notes=False, playbook=False, message_chars=1000, text_chars=4000)
LONGEST = 10_000
"""Characters of a line."""
MOST = 12
"""Of long lists of choices, so many are shown."""
HELP = "an action's number or name, then its arguments; say WORDS; help; pass (do nothing); quit (leave)"

Show = Callable[[str], None]
"""Puts some lines in front of the person."""
Read = Callable[[], Awaitable[str | None]]
"""Waits for a line from the person; None if there will be no more."""


class EmptySeat:
    """In the place of a person who is not there: waits until the world has given up."""

    async def decide(self, turn: Turn) -> Any:
        await asyncio.Event().wait()


class Left(Exception):
    """The person does not want to go on."""


class HumanMind:
    """One person's mind. A turn that is not decided when the next one comes is given up: it was too late."""

    def __init__(self, scenario: Scenario[Any, Any], show: Show, read: Read, leave: Callable[[], None]) -> None:
        """`leave` is called once when the person wants to go; the turn under way is then left to others."""
        self._scenario = scenario
        self._kitchen = Kitchen(ScenarioSpec(type(scenario)), FORM)
        self._show = show
        self._read = read
        self._leave = leave
        self._deciding: asyncio.Task[Any] | None = None

    async def decide(self, turn: Turn) -> Decision:
        if self._deciding is not None and not self._deciding.done():
            self._deciding.cancel()
            self._show("Too late: that tick went on without you.")
        self._deciding = asyncio.ensure_future(self._ask(turn))
        try:
            decision: Decision = await self._deciding
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise MindFailed("the person had not decided when the next tick came", late=True) from None
        except Left:
            self._leave()
            await asyncio.Event().wait()
            raise
        return decision

    async def _ask(self, turn: Turn) -> Decision:
        menu = self._kitchen.menu(self._scenario.options(turn.observation))
        self._show(screen(self._scenario, turn, menu))
        said = ""
        while True:
            line = await self._read()
            if line is None or line.strip() == "quit":
                raise Left
            if line.strip() == "help":
                self._show("\n".join([HELP, *self._kitchen.actions()]))
            elif line.strip() == "pass":
                return Decision(self._scenario.neutral, message=said)
            elif line.startswith("say "):
                said = line.removeprefix("say ").strip()[: FORM.message_chars]
                self._show(f"You will say: {said}")
            elif line.strip():
                try:
                    answer = understood(menu, line)
                    return Decision(answer.action, message=said)
                except Unusable as unusable:
                    self._show(f"{unusable}. Type help to see what you may do.")


def screen(scenario: Scenario[Any, Any], turn: Turn, menu: Menu) -> str:
    """One turn as its agent sees it, and what it may do."""
    return "\n".join(
        [
            f"--- tick {turn.tick}: you are {turn.agent.name}",
            scenario.show(turn.observation, repr),
            "You may:",
            *(f"  {i} {_offer(dish)}" for i, dish in enumerate(menu.dishes.values(), 1)),
        ]
    )


def _offer(dish: Dish) -> str:
    """A kind of action with its arguments, and what is open for them now."""
    return " ".join([dish.spec.kind, *(_slot(dish, name) for name in _arguments(dish))])


def _slot(dish: Dish, name: str) -> str:
    allowed = dish.choices.get(name) or dish.schema["properties"][name].get("enum")
    words = f"{name} ({choice(allowed, MOST)})" if allowed else name
    return words if name in dish.schema["required"] else f"[{words}]"


def understood(menu: Menu, line: str) -> Answer:
    """The answer that a line stands for. Raises Unusable with what is wrong, in words for a person."""
    if len(line) > LONGEST:
        raise Unusable(f"a line of {len(line)} characters; at most {LONGEST} are read")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Unusable(f"a quotation mark is open ({error})") from None
    dish = _dish(menu, words[0])
    act = {"action": dish.spec.kind, **dict(_given(dish, words[1:]))}
    return menu.check({"act": act})


def _dish(menu: Menu, word: str) -> Dish:
    dishes = list(menu.dishes.values())
    if word.isdecimal() and 1 <= int(word) <= len(dishes):
        return dishes[int(word) - 1]
    if word in menu.dishes:
        return menu.dishes[word]
    raise Unusable(f"{shown(word)} is not open to you now; there are {', '.join(menu.dishes)}")


def _given(dish: Dish, words: list[str]) -> Iterator[tuple[str, Any]]:
    """Arguments by name or by place, each as the kind of value that is asked for."""
    names = _arguments(dish)
    places = iter(names)
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name in names):
            name, value = next(places, ""), word
        if not name:
            raise Unusable(f"{dish.spec.kind} takes {', '.join(names) or 'no arguments'}, not {shown(word)} as well")
        yield name, _value(dish.schema["properties"][name], value)


def _arguments(dish: Dish) -> list[str]:
    return [name for name in dish.schema["properties"] if name != "action"]


def _value(schema: dict[str, Any], word: str) -> Any:
    """A word as the number, the yes or no, or the text that a schema asks for; as it is if it does not fit."""
    kinds = {s.get("type") for s in (schema, *schema.get("anyOf", ()))}
    if "null" in kinds and word in ("", "none"):
        return None
    for kind, convert in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return convert(word)
            except ValueError:
                continue
    if "boolean" in kinds and word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    return word


__all__ = ["HELP", "EmptySeat", "HumanMind", "Left", "screen", "understood"]

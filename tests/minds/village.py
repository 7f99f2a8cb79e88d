"""A village for tests of minds: a world that is all text, names and numbers, and models that answer as told."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds import LayerStore, LLMMind, Settings
from ethnos.actors.minds.menu import Form, Kitchen
from ethnos.world.scenario import Agent, Cohort, Message, News, Option, Params, Scenario, Tick, Turn
from ethnos.world.spec import ScenarioSpec


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Go somewhere."""

    to: Literal["well", "inn", "mill"]


@dataclass(frozen=True, slots=True)
class Give:
    """Give coins to somebody who is here."""

    target: Annotated[str, Meta(max_length=40, description="who gets it")]
    amount: Annotated[int, Meta(ge=1, description="whole coins")]


@dataclass(frozen=True, slots=True)
class Place:
    """A place and how sure you are."""

    name: str
    sure: float = 1.0


@dataclass(frozen=True, slots=True)
class Write:
    """Write something on the wall."""

    text: Annotated[str, Meta(max_length=2000)]
    about: list[Place] = field(default_factory=list)
    days: Annotated[int, Meta(ge=1, le=9)] | None = None


@dataclass(slots=True)
class Seen:
    """What a villager is shown."""

    coins: int = 5
    mood: float = 0.5
    here: list[str] = field(default_factory=list)
    wall: list[str] = field(default_factory=list)
    heard: Sequence[Message] = ()
    outcome: str = ""


@dataclass
class Nothing:
    """No state at all."""


class Village(Scenario[Params, Nothing]):
    """People live together, talk, give each other coins and write on a wall."""

    State = Nothing
    Observation = Seen
    actions = (Wait, Walk, Give, Write)
    neutral = Wait()
    minds = {}

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> Nothing:
        return Nothing()

    def observe(self, state: Nothing, agents: Sequence[Agent], news: News) -> list[Any]:
        return [Seen() for _ in agents]

    def options(self, observation: Seen) -> Sequence[Option]:
        coins = range(1, observation.coins + 1)
        return [Option(Wait), Option(Walk), Option(Give, {"target": observation.here, "amount": coins}), Option(Write)]

    def act(self, state: Nothing, agent: Agent, action: Any, tick: Tick) -> str | None:
        return None

    def advance(self, state: Nothing, tick: Tick) -> None:
        pass


VILLAGE = Village(Params())
SPEC = ScenarioSpec(Village)
PERSONA: dict[str, float | str] = {"motivation": "You want to be liked.", "honesty": 0.9, "openness": -0.5}


def agent(number: int = 1, name: str = "Ann", memory: bytes = b"", **rest: Any) -> Agent:
    return Agent(number, name, "villagers", dict(PERSONA), memory=memory, **rest)


def turn(seen: Seen | None = None, tick: int = 1, who: Agent | None = None, seed: int = 7) -> Turn:
    return Turn(who or agent(), tick, seen or Seen(), seed)


def kitchen(**form: Any) -> Kitchen:
    return Kitchen(SPEC, Form(**form))


def answered(act: Any = None, **rest: Any) -> str:
    """A model's reply."""
    return json.dumps({"reason": "why not", "act": act or {"action": "wait"}, **rest})


@dataclass
class Model:
    """Gives the replies it was given, one after the other, the last one for ever; keeps what it was asked."""

    replies: Sequence[str | Reply]
    asked: list[Request] = field(default_factory=list)

    async def __call__(self, request: Request) -> Reply:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(request)
        return reply if isinstance(reply, Reply) else Reply(reply, model="parrot", engine="e0", prompt_tokens=100)


def mind(*replies: str | Reply, store: LayerStore | None = None, **settings: Any) -> tuple[LLMMind, Model]:
    model = Model(replies or (answered(),))
    return LLMMind(VILLAGE, model, Settings(**settings), store=store or LayerStore()), model


async def lived(
    thinker: LLMMind, who: Agent, days: Mapping[int, Seen], each: Callable[[Any], None] | None = None
) -> None:
    """Let an agent live through days, its memory handed back as the world does."""
    for tick, seen in days.items():
        decision = await thinker.decide(turn(seen, tick, who))
        who.memory = decision.memory or who.memory
        if each:
            each(decision)


def memory_of(data: bytes) -> dict[str, Any]:
    """A memory as SQL sees it."""
    found: dict[str, Any] = msgspec.json.decode(data)
    return found

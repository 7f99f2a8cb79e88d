"""The interface a world is written against.

A scenario is plain functions over plain data. Its state, actions, events and observation are dataclasses; from
their fields and docstrings the platform derives the JSON schema that constrains a model, the encoding on the
wire, the validation at the world's edge, the snapshots and the columns in SQL.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from ethnos.errors import Refused
from ethnos.world.events import Event
from ethnos.world.interventions import Intervention
from ethnos.world.prose import Quote, outline
from ethnos.world.turn import Agent, Decision, Turn


class Params(BaseModel):
    """Base of a scenario's parameters: unknown keys and values out of range are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Cohort:
    """A group of founders that share a mind configuration and whatever `persona` sets for them."""

    name: str
    count: int
    persona: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flow:
    """How one kind of event changes a conserved quantity: by `sign` times the event's `field`."""

    event: type[Event]
    field: str = "amount"
    sign: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """A picture of this world: the rows of a query over its record (see docs/record.md), and how they are drawn."""

    title: str
    sql: str
    """May name `$tick`, the tick that is looked at."""
    x: str
    """A column of the query; of a network the one with where a tie begins."""
    y: str
    """Another; of a network where the tie ends, or NULL for a node without ties."""
    mark: Literal["line", "bars", "points", "heat", "network"] = "line"
    colour: str = ""
    """A column that tells lines, bars or nodes apart; of a heat map the one that is shown as heat."""


@dataclass(frozen=True, slots=True)
class Option:
    """One kind of action that is open to an agent now."""

    action: type[Any]
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """For some of its arguments, what they may be now: names, numbers, or a `range` of whole numbers. If
    nothing is left for one of them, the action is not open at all."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something heard: who said it, and what."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class News:
    """What the platform tells each agent beside what the scenario shows it."""

    heard: Mapping[int, Sequence[Message]]
    """What it heard since it was last asked, in the order of the record."""
    outcome: Mapping[int, str]
    """What became of its last action, in words; absent before its first."""


class Mind(Protocol):
    """Anything that turns a turn into a decision. May be a coroutine function where it has to wait."""

    def decide(self, turn: Turn) -> Any:
        """Return an action, a `Decision`, or an awaitable of either."""
        ...


class Tick(Protocol):
    """One tick under way, as a scenario sees it."""

    number: int

    changes: int
    """How many changes from outside there were in this tick before the one under way: an address for chance."""

    @property
    def agents(self) -> Mapping[int, Agent]:
        """The living, by id, in order of birth."""
        ...

    @property
    def said(self) -> Sequence[tuple[int, str]]:
        """(agent id, text) of what was said so far in this tick, in order."""
        ...

    def emit(self, event: Event) -> int:
        """Put an event on the record; returns its `seq`."""
        ...

    def find(self, name: str) -> Agent:
        """The living agent of that name. Raises Refused if there is none."""
        ...

    def who(self, ref: int | str) -> Agent:
        """The living agent of that id or name. Raises Refused if there is none."""
        ...

    def rng(self, purpose: str, agent: int = 0) -> np.random.Generator:
        """Chance for one purpose in this tick; the same call gives the same draws."""
        ...

    def uniforms(self, purpose: str, places: Sequence[int] | np.ndarray) -> np.ndarray:
        """One number in [0, 1) for each place (an id, a cell index), whatever other places are asked for."""
        ...

    def born(
        self,
        *,
        cohort: str,
        persona: Mapping[str, float | str],
        name: str = "",
        parent: Agent | None = None,
        x: float | None = None,
        y: float | None = None,
    ) -> Agent:
        """Add an agent, record its birth, return it. Without a name it is called `<name_prefix><id>`.

        It is asked for its first decision in the next tick. Raises Refused if the name is not fit or taken.
        """
        ...

    def died(self, agent: int, cause: str) -> None:
        """Remove an agent and record its death."""
        ...


P = TypeVar("P", bound=Params)
S = TypeVar("S")


class Scenario(ABC, Generic[P, S]):
    """The rules of one kind of world.

    A tick: the agents `due` are shown what they `observe`; their decisions are resolved one after the other by
    `act`, in an order drawn for the tick; what was said reaches its `audience`; then the world moves on by
    itself in `advance`. Methods get the state and may change it in place; they keep nothing in `self` but the
    parameters, use no clock and no generator but the tick's, and never iterate over a set.
    """

    Params: ClassVar[type[Any]] = Params
    """Parameters: a subclass of `Params`; each field with default, range, and a docstring with unit and source."""
    State: ClassVar[type[Any]]
    """A dataclass of numbers, texts, lists, dicts, dataclasses and numpy arrays. It is what snapshots hold."""
    Observation: ClassVar[type[Any]]
    """A dataclass: all that an agent is shown in one turn."""
    actions: ClassVar[tuple[type[Any], ...]]
    """The dataclasses an agent chooses from; constraints as `Annotated[int, msgspec.Meta(ge=1)]`."""
    neutral: ClassVar[Any]
    """What an agent does that is late, fails or asks for what the rules refuse: an action that cannot fail."""
    events: ClassVar[tuple[type[Event], ...]] = ()
    """The kinds of event this world adds to the platform's."""
    minds: ClassVar[Mapping[str, type[Any]]]
    """Scripted minds by name: dataclasses whose fields are their settings, with a `decide(turn)`."""
    conserved: ClassVar[Mapping[str, Sequence[Flow]]] = {}
    """For each conserved quantity the flows that account for every change of its stock."""
    views: ClassVar[Sequence[View]] = ()
    """How this world is pictured, beside what every society has."""
    validations: ClassVar[str] = ""
    """The module whose `VALIDATIONS` say what must come out of this world (see `ethnos.validation`). Only named here,
    so that nobody who merely runs the world imports it."""
    name_prefix: ClassVar[str] = "agent"
    fixed: ClassVar[Sequence[str]] = ()
    """Parameters that only the making of the world reads, such as `width` or `food.initial`: they cannot change
    later, neither by an intervention nor in a branch."""

    def __init__(self, params: P) -> None:
        self.params = params

    def impossible(self, cohorts: Sequence[Cohort]) -> Iterable[str]:
        """What makes these parameters and founders impossible together, in words; nothing if they are fine."""
        return ()

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> S:
        """Make the world of tick 0: call `tick.born` for each founder, emit what is there, return the state.

        Unless overridden, the founders are born with their cohort's persona into a `State()` of defaults.
        """
        for cohort in (c for c in cohorts for _ in range(c.count)):
            tick.born(cohort=cohort.name, persona=cohort.persona)
        state: S = self.State()
        return state

    def due(self, state: S, agents: Mapping[int, Agent]) -> Iterable[int]:
        """Ids of the agents to be asked in the coming tick. All of them, unless the scenario takes turns."""
        return agents.keys()

    def observe(self, state: S, agents: Sequence[Agent], news: News) -> list[Any]:
        """An `Observation` for each of `agents`, in that order. Called once a tick for all: vectorise here.

        Unless overridden, everybody sees all of the state: for worlds whose `Observation` is their `State`.
        """
        return [state] * len(agents)

    def told(self) -> str:
        """The rules, as all members are told them, these parameters included. It goes before every turn of
        everybody, so it names nobody and never changes. The class's docstring, unless overridden."""
        return cleandoc(type(self).__doc__ or "")

    def show(self, observation: Any, quote: Quote) -> str:
        """An `Observation` in words. All that agents may have written goes through `quote`."""
        return outline(observation, quote)

    def options(self, observation: Any) -> Sequence[Option]:
        """What is open to an agent that is shown `observation`, as far as it can know: all, unless narrowed.

        Minds choose among these; the rules still decide, in `act`.
        """
        return [Option(action) for action in self.actions]

    @abstractmethod
    def act(self, state: S, agent: Agent, action: Any, tick: Tick) -> str | None:
        """Carry out one agent's action; may return what became of it, in words for the agent.

        Raise `Refused(reason)` before changing anything if the rules forbid it: the refusal is recorded and
        the neutral action is carried out instead.
        """

    def audience(self, state: S, speaker: Agent, agents: Mapping[int, Agent]) -> Iterable[int]:
        """Who hears what `speaker` says, in ascending order of id. Everybody else, unless the scenario narrows it."""
        return (i for i in agents if i != speaker.id)

    @abstractmethod
    def advance(self, state: S, tick: Tick) -> None:
        """What the world does by itself once all have acted: growth, decay, ageing, deaths, prices."""

    def intervene(self, state: S, change: Intervention, tick: Tick) -> None:
        """Carry out a change from outside: resources, agents that come or go, artifacts.

        All other kinds are the platform's. Raise Refused for what this world does not know or allow; changes
        are tried out on a copy of the world first.
        """
        raise Refused(f"{type(self).__name__} knows no {change.do}")

    def stocks(self, state: S) -> Mapping[str, float]:
        """The present total of each conserved quantity."""
        return {}

    def over(self, state: S, agents: Mapping[int, Agent]) -> bool:
        """Whether the world has come to an end before its last tick. When nobody lives, unless overridden."""
        return not agents

    def reach(self) -> float | None:
        """How far one tick's influence can spread, in the scenario's own distance; None: to anybody.

        A scheduler may run agents ahead of each other that are farther apart than this per tick.
        """
        return None


__all__ = [
    "Agent",
    "Cohort",
    "Decision",
    "Event",
    "Flow",
    "Message",
    "Mind",
    "News",
    "Option",
    "Params",
    "Quote",
    "Scenario",
    "Tick",
    "Turn",
]

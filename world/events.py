"""Events every world has, and the base of those a scenario adds.

An event is what happened, never what was wanted. Fields named like a column of the `events` table fill that
column; all others go to `data` and come back, typed, in the view of the event's kind.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

COLUMNS = ("agent_id", "target_id", "artifact_id", "x", "y", "amount", "text")
"""Field names that have a column of their own."""


class Event:
    """Base of all events. A subclass is a frozen, slotted dataclass; its docstring is its meaning in SQL."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Born(Event):
    """An agent entered the world; founders have no parent."""

    agent_id: int
    text: Annotated[str, Meta(description="the agent's name")]
    cohort: str
    generation: int
    persona: dict[str, float | str]
    target_id: Annotated[int | None, Meta(description="its parent")] = None
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Died(Event):
    """An agent left the world for good."""

    agent_id: int
    text: Annotated[str, Meta(description="the cause")]
    age: Annotated[int, Meta(description="ticks lived", extra_json_schema={"unit": "ticks"})]


@dataclass(frozen=True, slots=True)
class Said(Event):
    """An agent said something, or somebody from outside did; `heard` tells who perceived it."""

    agent_id: Annotated[int | None, Meta(description="the speaker; null: from outside the world")]
    text: str


@dataclass(frozen=True, slots=True)
class Heard(Event):
    """An agent perceived what another said in this tick; it knows it from its next observation on."""

    agent_id: Annotated[int, Meta(description="the listener")]
    target_id: Annotated[int | None, Meta(description="the speaker; null: from outside the world")]
    said: Annotated[int, Meta(description="seq of the `said` event")]


@dataclass(frozen=True, slots=True)
class Rejected(Event):
    """The rules refused what an agent asked for; it did the neutral thing instead."""

    agent_id: int
    text: Annotated[str, Meta(description="the reason, as the agent is told")]
    action: Annotated[str, Meta(description="the kind of action asked for")]


@dataclass(frozen=True, slots=True)
class Late(Event):
    """An agent did not decide in time; it did the neutral thing instead."""

    agent_id: int


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """An agent's mind failed; it did the neutral thing instead."""

    agent_id: int
    text: Annotated[str, Meta(description="what went wrong")]


@dataclass(frozen=True, slots=True)
class Intervened(Event):
    """Somebody changed the world from outside; the events that follow say what came of it."""

    agent_id: Annotated[int | None, Meta(description="the agent concerned")]
    text: Annotated[str, Meta(description="which kind of intervention")]
    change: Annotated[dict[str, Any], Meta(description="what was asked for: a replay takes it up again")]
    x: float | None = None
    y: float | None = None
    amount: float | None = None


@dataclass(frozen=True, slots=True)
class InterventionRefused(Event):
    """A change from outside was impossible when its time came; nothing was changed."""

    text: Annotated[str, Meta(description="the reason")]
    change: Annotated[dict[str, Any], Meta(description="what was asked for")]


PLATFORM_EVENTS: tuple[type[Event], ...] = (
    Born,
    Died,
    Said,
    Heard,
    Rejected,
    Late,
    Failed,
    Intervened,
    InterventionRefused,
)

"""A world that must never change: records that earlier versions wrote of it are executed again by later ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np

from ethnos import Agent, Cohort, Decision, Event, Flow, Meta, News, Params, Refused, Scenario, Tick, Turn


class WellParams(Params):
    """Parameters."""

    rain: float = 2.5
    """Water that falls in a tick."""


@dataclass
class WellState:
    water: float = 10.0
    drunk: dict[int, float] = field(default_factory=dict)
    depth: np.ndarray = field(default_factory=lambda: np.zeros(3))


@dataclass
class WellSeen:
    water: float
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Drink:
    """Drink from the well."""

    amount: Annotated[float, Meta(ge=0, le=100)] = 1.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Rained(Event):
    """Rain fell into the well."""

    amount: Annotated[float, Meta(description="how much", extra_json_schema={"unit": "litres"})]


@dataclass(frozen=True, slots=True)
class Drunk(Event):
    """Somebody drank."""

    agent_id: int
    amount: float
    x: float
    sip: str
    thirst: list[int]


@dataclass(frozen=True, slots=True)
class Thirsty:
    """Drinks by chance, counts, and talks about it."""

    most: int = 4

    def decide(self, turn: Turn) -> Decision:
        count = msgspec.json.decode(turn.agent.memory) + 1 if turn.agent.memory else 1
        wanted = float(turn.rng.integers(0, self.most + 1))
        message = f"That was my {count}. drink — ☃" if count % 3 == 0 else ""
        action = Drink(wanted) if wanted else Wait()
        return Decision(action, message=message, memory=msgspec.json.encode(count), how={"stage": "clean", "tokens": 3})


class Well(Scenario[WellParams, WellState]):
    """A well that rain fills and people empty."""

    Params, State, Observation = WellParams, WellState, WellSeen
    actions, neutral = (Drink, Wait), Wait()
    events = (Rained, Drunk)
    minds = {"thirsty": Thirsty}
    conserved = {"water": (Flow(Rained), Flow(Drunk, "amount", -1))}

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> WellState:
        for cohort in cohorts:
            for _ in range(cohort.count):
                tick.born(cohort=cohort.name, persona=dict(cohort.persona))
        tick.emit(Rained(10.0))
        return WellState()

    def observe(self, state: WellState, agents: Sequence[Agent], news: News) -> list[Any]:
        return [WellSeen(state.water, [m.text for m in news.heard.get(a.id, ())]) for a in agents]

    def act(self, state: WellState, agent: Agent, action: Any, tick: Tick) -> str | None:
        if isinstance(action, Wait):
            return None
        if action.amount > state.water:
            raise Refused("the well is low")
        state.water -= action.amount
        state.drunk[agent.id] = state.drunk.get(agent.id, 0.0) + action.amount
        state.depth[agent.id % 3] += action.amount
        tick.emit(Drunk(agent.id, action.amount, float(state.depth[0]), "small" if action.amount < 2 else "large", [1]))
        return f"you drank {action.amount:g}"

    def advance(self, state: WellState, tick: Tick) -> None:
        state.water += self.params.rain
        tick.emit(Rained(self.params.rain))
        eldest = next(iter(tick.agents.values()), None)
        if eldest is not None and tick.number % 4 == 0:
            tick.born(cohort=eldest.cohort, persona={"kind": "young"}, parent=eldest)
            tick.died(eldest.id, "old age")

    def stocks(self, state: WellState) -> Mapping[str, float]:
        return {"water": state.water}

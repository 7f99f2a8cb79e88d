"""A mind of two: routine turns go to a small model, novel and costly ones to a large one, by a stated rule.

The rule looks at nothing but the turn, so which mind thinks depends neither on chance nor on load, and a replay
takes the same way. Why a turn went where is in the record.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

from ethnos.actors.minds.memory import MISHAPS
from ethnos.errors import MindFailed
from ethnos.world.scenario import Mind, Scenario
from ethnos.world.spec import kind_of
from ethnos.world.turn import Decision, Turn


@dataclass(frozen=True, slots=True)
class Rule:
    """When a turn is not routine. Each of these is reason enough."""

    first_turns: Annotated[int, Field(ge=0)] = 1
    """Novel: an agent's first turns after its birth."""
    heard: bool = True
    """Novel: somebody was heard."""
    mishap: bool = True
    """Novel: the last action was refused, or there was none in time."""
    offers: tuple[str, ...] = ()
    """Costly: one of these kinds of action is open, such as `reproduce`."""
    scarce: Mapping[str, float] = field(default_factory=dict)
    """Costly: one of these numbers in the observation is below its bound, such as `energy: 15`."""
    every: Annotated[int, Field(ge=0)] = 0
    """Every so many ticks in any case, counted from the agent's birth; 0: never."""

    def reasons(self, turn: Turn, scenario: Scenario[Any, Any]) -> list[str]:
        """Why a turn is not routine; nothing if it is."""
        seen, age = turn.observation, turn.tick - turn.agent.born
        found = ["first turns"] if age <= self.first_turns else []
        found += ["heard"] if self.heard and getattr(seen, "heard", None) else []
        found += ["mishap"] if self.mishap and str(getattr(seen, "outcome", "")).startswith(MISHAPS) else []
        found += [f"{name} is scarce" for name, bound in self.scarce.items() if _below(seen, name, bound)]
        found += [f"{kind} is open" for kind in self._offered(seen, scenario)]
        found += ["regular"] if self.every and age % self.every == 0 else []
        return found

    def _offered(self, seen: Any, scenario: Scenario[Any, Any]) -> Sequence[str]:
        if not self.offers:
            return ()
        open_now = {
            kind_of(o.action) for o in scenario.options(seen) if all(len(allowed) for allowed in o.choices.values())
        }
        return [kind for kind in self.offers if kind in open_now]


def _below(seen: Any, name: str, bound: float) -> bool:
    value = getattr(seen, name, None)
    return isinstance(value, int | float) and value < bound


@dataclass(frozen=True)
class Router:
    """Sends each turn to one of two minds. They share the agent's memory, so both must read the same kind."""

    small: Mind
    large: Mind
    scenario: Scenario[Any, Any]
    rule: Rule = field(default_factory=Rule)

    async def decide(self, turn: Turn) -> Decision:
        """Raises MindFailed if the mind it went to came to no decision."""
        reasons = self.rule.reasons(turn, self.scenario)
        route = {"to": "large" if reasons else "small", "because": reasons or ["routine"]}
        mind = self.large if reasons else self.small
        try:
            decided = mind.decide(turn)
            decided = await decided if inspect.isawaitable(decided) else decided
        except MindFailed as failure:
            raise MindFailed(str(failure), {**failure.how, "route": route}, late=failure.late) from None
        decision = decided if isinstance(decided, Decision) else Decision(decided)
        return replace(decision, how={**decision.how, "route": route})


__all__ = ["Router", "Rule"]

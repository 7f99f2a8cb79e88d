"""Minds from a society file: the one place that knows all kinds."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds.human import EmptySeat
from ethnos.actors.minds.llm import LLMMind, Settings
from ethnos.actors.minds.router import Router, Rule
from ethnos.errors import SocietyError
from ethnos.society import HumanMind, MindSpec, RoutedMind, ScriptedMind, Society, make_scripted
from ethnos.society import LLMMind as LLMSpec
from ethnos.world.scenario import Mind, Scenario

Ask = Callable[[str, Request], Awaitable[Reply]]
"""Puts a request to the model of that name: what the inference pool offers an actor."""

IN_TIME = 0.95
"""Share of the decision deadline that a model gets, so that a late one can still say so itself."""

T = TypeVar("T")


Tokens = Mapping[str, Sequence[str]]
"""For each model the texts that its chat template takes for its own; they are taken out of what agents wrote."""


def make_mind(society: Society, cohort: str, ask: Ask, special: Tokens | None = None) -> Mind:
    """The mind of a cohort's members; one serves any number of them."""
    return _Maker(society, ask, special or {}).make(society.mind_of(cohort))


class _Maker:
    """What all minds of a society have in common."""

    def __init__(self, society: Society, ask: Ask, special: Tokens) -> None:
        self._scenario: Scenario[Any, Any] = society.make_scenario()
        self._deadline = society.decision_deadline * IN_TIME
        self._ask = ask
        self._special = special

    def make(self, spec: MindSpec) -> Mind:
        if isinstance(spec, ScriptedMind):
            return make_scripted(type(self._scenario), spec)
        if isinstance(spec, RoutedMind):
            return Router(self.make(spec.small), self.make(spec.large), self._scenario, rule(spec.rule))
        if isinstance(spec, HumanMind):
            return EmptySeat()
        return self._thinking(spec)

    def _thinking(self, spec: LLMSpec) -> Mind:
        asked = settings(spec.settings)
        special = tuple(sorted({*asked.special_tokens, *self._special.get(spec.model, ())}))
        how = replace(asked, special_tokens=special)
        return LLMMind(self._scenario, partial(self._ask, spec.model), how, deadline=self._deadline)


def settings(given: Mapping[str, Any]) -> Settings:
    """How a mind thinks, from a society file. Raises SocietyError, pydantic.ValidationError."""
    return _strictly(Settings, given)


def rule(given: Mapping[str, Any]) -> Rule:
    """What is not routine, from a society file. Raises SocietyError, pydantic.ValidationError."""
    return _strictly(Rule, given)


def _strictly(cls: type[T], given: Mapping[str, Any]) -> T:
    """An instance of a dataclass, nested ones included; a key that it does not have is refused."""
    _refuse_unknown(cls, given)
    return TypeAdapter(cls).validate_python(given)


def _refuse_unknown(cls: Any, given: Mapping[str, Any], place: str = "") -> None:
    known = {f.name: f.type for f in fields(cls)}
    for key, value in given.items():
        if key not in known:
            raise SocietyError(f"unknown setting {place + key!r}; there are {', '.join(known)}")
        inner = known[key]
        if isinstance(value, Mapping) and isinstance(inner, type) and hasattr(inner, "__dataclass_fields__"):
            _refuse_unknown(inner, value, f"{place}{key}.")


__all__ = ["Ask", "Tokens", "make_mind", "rule", "settings"]

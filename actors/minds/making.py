"""Minds from a society file: the one place that knows all kinds."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from pydantic import TypeAdapter

from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds.llm import LLMMind, Settings
from ethnos.actors.minds.router import Router, Rule
from ethnos.errors import SocietyError
from ethnos.society import LLMMind as LLMSpec
from ethnos.society import MindSpec, RoutedMind, ScriptedMind, Society, make_scripted
from ethnos.world.scenario import Mind, Scenario

Ask = Callable[[str, Request], Awaitable[Reply]]
"""Puts a request to the model of that name: what the inference pool offers an actor."""

IN_TIME = 0.95
"""Share of the decision deadline that a model gets, so that a late one can still say so itself."""

T = TypeVar("T")


def make_mind(society: Society, cohort: str, ask: Ask) -> Mind:
    """The mind of a cohort's members; one serves any number of them."""
    return _make(society.mind_of(cohort), society.make_scenario(), ask, society.decision_deadline * IN_TIME)


def _make(spec: MindSpec, scenario: Scenario[Any, Any], ask: Ask, deadline: float) -> Mind:
    if isinstance(spec, ScriptedMind):
        return make_scripted(type(scenario), spec)
    if isinstance(spec, RoutedMind):
        small = _make(spec.small, scenario, ask, deadline)
        return Router(small, _make(spec.large, scenario, ask, deadline), scenario, rule(spec.rule))
    return _thinking(spec, scenario, ask, deadline)


def _thinking(spec: LLMSpec, scenario: Scenario[Any, Any], ask: Ask, deadline: float) -> Mind:
    return LLMMind(scenario, partial(ask, spec.model), settings(spec.settings), deadline=deadline)


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


__all__ = ["Ask", "make_mind", "rule", "settings"]

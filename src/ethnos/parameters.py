"""What can be set in a society, field by field: for forms that are made from a scenario rather than for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import yaml
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ethnos.society import Society


@dataclass(frozen=True)
class Parameter:
    """One value that can be set."""

    path: str
    """As `--set` takes it, such as `world.food.spawn_rate`."""
    kind: str
    """whole, real, yes, choice, words, or yaml for anything with parts."""
    value: Any
    """What it is now; for yaml its text."""
    meaning: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def parameters(society: Society) -> Iterator[Parameter]:
    """The scenario's parameters, in its order."""
    yield from _of(society.scenario_class().Params, society.world, "world")


def _of(model: type[BaseModel], values: Mapping[str, Any], prefix: str) -> Iterator[Parameter]:
    for name, field in model.model_fields.items():
        path, value = f"{prefix}.{name}", values.get(name, field.get_default(call_default_factory=True))
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            inside = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
            yield from _of(field.annotation, inside or {}, path)
        else:
            yield _parameter(path, field, value)


_KINDS = {bool: "yes", int: "whole", float: "real", str: "words"}


def _parameter(path: str, field: FieldInfo, value: Any) -> Parameter:
    meaning = " ".join((field.description or "").split())
    hint = field.annotation
    if get_origin(hint) is Literal:
        return Parameter(path, "choice", str(value), meaning, tuple(map(str, get_args(hint))))
    kind = _KINDS.get(hint) if isinstance(hint, type) else None
    if kind is None or value is None:
        return Parameter(path, "yaml", _yaml(value), meaning)
    low, high = _bounds(field)
    return Parameter(path, kind, value, meaning, (), low, high)


def _bounds(field: FieldInfo) -> tuple[float | None, float | None]:
    lows = [m.ge if isinstance(m, Ge) else m.gt for m in field.metadata if isinstance(m, Ge | Gt)]
    highs = [m.le if isinstance(m, Le) else m.lt for m in field.metadata if isinstance(m, Le | Lt)]
    return max((float(str(v)) for v in lows), default=None), min((float(str(v)) for v in highs), default=None)


def _yaml(value: Any) -> str:
    return (
        yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000).removesuffix("...\n").strip()
    )


def change(parameter: Parameter, value: Any) -> str | None:
    """The change that sets it, as `--set` takes it; None if it is what it was.

    >>> change(Parameter("world.width", "whole", 50, ""), 60)
    'world.width=60'
    """
    if value == parameter.value:
        return None
    return f"{parameter.path}={value if parameter.kind == 'yaml' else _yaml(value)}"


__all__ = ["Parameter", "change", "parameters"]

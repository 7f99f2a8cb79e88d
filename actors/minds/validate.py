"""Holds a value against a JSON schema of the kind that menus make, and says in words what is wrong.

It knows exactly the keywords that `ethnos.actors.minds.menu` writes; a schema with others is a mistake of ours.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ethnos.actors.minds.text import clean, neutralise

Schema = Mapping[str, Any]

KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf", "const", "enum"),
        *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
    }
)


def violation(value: Any, schema: Schema, place: str = "") -> str:
    """What is wrong with `value` by `schema`, with the place; empty if it fits."""
    if "anyOf" in schema:
        return _choices(value, schema["anyOf"], place)
    if "const" in schema:
        return "" if same(value, schema["const"]) else _cannot(place, value, [schema["const"]])
    if "enum" in schema:
        return "" if any(same(value, v) for v in schema["enum"]) else _cannot(place, value, schema["enum"])
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        return f"{_at(place)}{shown(value)} is not {_ARTICLES.get(kind, kind)}"
    if isinstance(value, dict):
        return _object(value, schema, place)
    if isinstance(value, list):
        return _list(value, schema, place)
    return _size(value, schema, place)


def _choices(value: Any, options: Sequence[Schema], place: str) -> str:
    """The only option that its tag leaves, or any that fits."""
    tag = (
        next((name for name, s in options[0].get("properties", {}).items() if "const" in s), None) if options else None
    )
    if tag is None or not isinstance(value, dict):
        wrong = [violation(value, s, place) for s in options]
        return "" if "" in wrong else wrong[0] if len(wrong) == 1 else f"{_at(place)}{shown(value)} is not allowed here"
    tags = [s["properties"][tag]["const"] for s in options]
    chosen = next((s for s, t in zip(options, tags, strict=True) if same(value.get(tag), t)), None)
    if chosen is None:
        return _cannot(f"{place}.{tag}".lstrip("."), value.get(tag), tags)
    return violation(value, chosen, place)


def _object(value: Mapping[str, Any], schema: Schema, place: str) -> str:
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties", False)
    if missing := [k for k in schema.get("required", ()) if k not in value]:
        return f"{_at(place)}the key {missing[0]} is missing"
    for key, inner in value.items():
        allowed = properties.get(key, extra)
        if allowed is False:
            return f"{_at(place)}no such key as {shown(key)}; there are {', '.join(properties) or 'none'}"
        if isinstance(allowed, Mapping) and (wrong := violation(inner, allowed, f"{place}.{key}".lstrip("."))):
            return wrong
    return ""


def _list(value: Sequence[Any], schema: Schema, place: str) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        return f"{_at(place)}{len(value)} items, where {least} to {most} are allowed"
    first = schema.get("prefixItems", ())
    for i, inner in enumerate(value):
        allowed = first[i] if i < len(first) else schema.get("items", True)
        if isinstance(allowed, Mapping) and (wrong := violation(inner, allowed, f"{place}.{i}".lstrip("."))):
            return wrong
    return ""


def _size(value: Any, schema: Schema, place: str) -> str:
    if isinstance(value, str):
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if not least <= len(value) <= most:
            return f"{_at(place)}{len(value)} characters, where {least} to {most} are allowed"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not least <= value <= most:
            return f"{_at(place)}{shown(value)} is not between {least} and {most}"
    return ""


def _is(value: Any, kind: str | Sequence[str]) -> bool:
    """Types as JSON has them: true is no number, 1.0 no whole one, and every number is finite."""
    if not isinstance(kind, str):
        return any(_is(value, k) for k in kind)
    if kind == "number":
        return type(value) is int or (type(value) is float and math.isfinite(value))
    return type(value) is _TYPES[kind]


_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def same(value: Any, other: Any) -> bool:
    """Equality as JSON has it."""
    return type(value) is type(other) and value == other


def choice(allowed: Sequence[Any], most: int = 12) -> str:
    """What something can be, in words, the first `most` by name: spelled as they have to be in an answer."""
    if isinstance(allowed, range):
        return f"{allowed.start} to {allowed.stop - 1}" if len(allowed) > 1 else str(allowed.start)
    named = [neutralise(json.dumps(a, ensure_ascii=False)) for a in allowed[:most]]
    more = [f"{len(allowed) - most} more"] if len(allowed) > most else []
    return ", ".join((*named, *more))


def shown(value: Any) -> str:
    """A model's own value, as a reason quotes it: short, and on one line."""
    text = clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:59] + "\u2026"


def _at(place: str) -> str:
    return f"{place}: " if place else ""


def _cannot(place: str, value: Any, allowed: Sequence[Any]) -> str:
    return f"{place or 'the answer'} cannot be {shown(value)}; it can be {choice(allowed)}"


__all__ = ["KEYWORDS", "choice", "same", "shown", "violation"]

"""What an agent is shown, in words: for minds that read, models and people alike.

All words that agents may have written go through a `quote` that the reader supplies, so that nothing in them
can be taken for a word of the world.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

Quote = Callable[[str], str]


def outline(observation: Any, quote: Quote) -> str:
    """An observation field by field, in the order its class declares; every text in it quoted."""
    fields: Mapping[str, Any] = msgspec.to_builtins(observation)
    return "\n".join(line for name, value in fields.items() for line in _lines(name, value, quote))


def _lines(name: str, value: Any, quote: Quote) -> Iterator[str]:
    label = name.replace("_", " ")
    if isinstance(value, list) and value:
        yield f"{label}:"
        yield from (f"- {_inline(item, quote)}" for item in value)
    else:
        yield f"{label}: {_inline(value, quote)}"


def _inline(value: Any, quote: Quote) -> str:
    if isinstance(value, str):
        return quote(value) if value else "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{_key(k, quote)} {_inline(v, quote)}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_inline(v, quote) for v in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _key(key: Any, quote: Quote) -> str:
    """Field names are the scenario's; keys of a dict may be an agent's."""
    text = str(key)
    return text.replace("_", " ") if text.isidentifier() else quote(text)


def gist(observation: Any) -> str:
    """The plain numbers of an observation in one line: what is worth remembering of it, and bounded."""
    fields: Mapping[str, Any] = msgspec.to_builtins(observation)
    numbers = {n: v for n, v in fields.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    return ", ".join(f"{name.replace('_', ' ')} {_inline(v, str)}" for name, v in numbers.items())


def texts(value: Any) -> Iterator[str]:
    """Every text in an observation, in order: what it is about, as far as words go."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)
    elif not isinstance(value, int | float | bytes | None):
        yield from texts(msgspec.to_builtins(value))


__all__ = ["Quote", "gist", "outline", "texts"]

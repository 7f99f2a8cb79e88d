"""From a model's reply to one JSON object, or the reason why there is none.

The rules, after what goes wrong in the field. As it stands, a reply that is one JSON object is `clean`. One step of
repair takes it out of prose, code fences or a reasoning block, drops trailing commas, and lets lines break inside
texts. Refused are: no object, a truncated one, several different ones, anything else that is no JSON. Nothing is
guessed: a repair never adds, renames or converts what the model wrote. And nothing is ever evaluated.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ethnos.errors import EthnosError

MAX_REPLY_CHARS = 64_000
MAX_DEPTH = 40

Object = dict[str, Any]


class Unusable(EthnosError):
    """A reply that is no answer; the text says why, in words that help a model to do better."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The object in a reply."""

    value: Object
    repairs: tuple[str, ...] = ()
    """What had to be done to get at it; nothing for a clean one."""


def extract(reply: str) -> Extracted:
    """The one JSON object in `reply`. Raises Unusable."""
    if len(reply) > MAX_REPLY_CHARS:
        raise Unusable(f"a reply of {len(reply)} characters, at most {MAX_REPLY_CHARS} are read")
    text = reply.strip()
    if not text:
        raise Unusable("an empty reply")
    value = _parsed(text)
    if value is None:
        return _repaired(text)
    if not isinstance(value, dict):
        raise Unusable(f"{_article(value)}, where one JSON object was asked for")
    return Extracted(value)


def _repaired(text: str) -> Extracted:
    repairs: list[str] = []
    without = re.sub(r"^\s*<think>.*?</think>", "", text, count=1, flags=re.DOTALL)
    if without != text:
        repairs.append("reasoning dropped")
    pieces = list(_objects(without))
    found = [v for p in pieces if (v := _mended(p)) is not None]
    if not found:
        raise Unusable("no JSON object in the reply" if not pieces else "what stands between { and } is no JSON")
    if any(v.value != found[0].value for v in found):
        raise Unusable("several different JSON objects in the reply, where one was asked for")
    if len(found) > 1:
        repairs.append("repetition dropped")
    if without.strip() != pieces[0]:
        repairs.append("prose around it dropped")
    return Extracted(found[0].value, (*repairs, *found[0].repairs))


def _mended(piece: str) -> Extracted | None:
    """The object a piece of text is, with small faults mended. None for braces in prose. Raises Unusable."""
    for text, strict, repairs in (
        (piece, True, ()),
        (piece, False, ("line break in a text",)),
        (without_trailing_commas(piece), True, ("trailing comma dropped",)),
        (without_trailing_commas(piece), False, ("trailing comma dropped", "line break in a text")),
    ):
        value = _parsed(text, strict=strict)
        if isinstance(value, dict):
            return Extracted(value, repairs)
    if '"' in piece:
        raise Unusable("what stands between { and } is no valid JSON")
    return None


def _objects(text: str) -> Iterator[str]:
    """Every {...} at the outermost level. Raises Unusable if the last one does not end."""
    start, depth, in_text, escaped = 0, 0, False, False
    for i, character in enumerate(text):
        if in_text:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_text = False
        elif character == "{":
            if depth == 0:
                start = i
            depth += 1
        elif depth and character == '"':
            in_text = True
        elif depth and character == "}":
            depth -= 1
            if depth == 0:
                yield text[start : i + 1]
    if depth:
        raise Unusable("the JSON object does not end: the reply is cut off")


def without_trailing_commas(text: str) -> str:
    """`text` without commas that stand before } or ], except inside texts."""
    return re.sub(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[}\]])', lambda m: m[1] or "", text, flags=re.DOTALL)


def _parsed(text: str, *, strict: bool = True) -> Any:
    """The value that a text is in JSON, else None. Raises Unusable for JSON with a double meaning."""
    try:
        value = json.loads(text, strict=strict, object_pairs_hook=_unambiguous, parse_constant=_not_a_number)
    except (ValueError, RecursionError):
        return None
    if _too_deep(value):
        raise Unusable(f"JSON nested more than {MAX_DEPTH} deep")
    return value


def _too_deep(value: Any, left: int = MAX_DEPTH) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left <= 0 or any(_too_deep(v, left - 1) for v in inner)


def _unambiguous(pairs: list[tuple[str, Any]]) -> Object:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unusable("a JSON object that has the same key twice")
    return found


def _not_a_number(name: str) -> NoReturn:
    raise Unusable(f"{name} is no number that JSON knows")


def _article(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")


__all__ = ["Extracted", "Unusable", "extract", "without_trailing_commas"]

"""What is derived from a scenario's dataclasses: kinds, validation at the edge, JSON schema, rows of the record."""

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from hashlib import sha256
from inspect import cleandoc
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from ethnos.errors import Refused
from ethnos.world.events import COLUMNS, PLATFORM_EVENTS, Event
from ethnos.world.limits import MAX_ACTION_BYTES, MAX_NAME_CHARS
from ethnos.world.scenario import Scenario

_encode = msgspec.json.Encoder(order="deterministic").encode
_FORBIDDEN_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NAME = re.compile(rf"\w[\w \-]{{0,{MAX_NAME_CHARS - 1}}}")

Row = tuple[Any, ...]
"""(seq, kind, actor_id, *COLUMNS, data): one event as it goes to the record."""


def rules_digest(spec: "ScenarioSpec") -> str:
    """A digest of all that a scenario declares: parameters, actions, observation, events; not of its prose."""
    scenario = spec.scenario
    declared = {
        "params": scenario.Params.model_json_schema(),
        "actions": {kind: action.schema for kind, action in spec.actions.items()},
        "observation": msgspec.json.schema(scenario.Observation),
        "events": {e.kind: {n: repr(h) for n, h in get_type_hints(e.cls).items()} for e in spec.events.values()},
    }
    return sha256(_encode(_without_prose(declared))).hexdigest()


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_prose(v) for k, v in value.items() if k not in _PROSE or not isinstance(v, str)}
    return [_without_prose(v) for v in value] if isinstance(value, list) else value


_PROSE = ("description", "title")


def kind_of(cls: type[Any]) -> str:
    """`FoodEaten` is called `food_eaten` wherever a kind is named."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def fit_name(name: str) -> str:
    """Return `name` if it may name a thing: up to 40 letters, digits, spaces, `-` and `_`. Raises Refused."""
    if not _NAME.fullmatch(name) or name != name.strip():
        raise Refused(f"a name has 1 to {MAX_NAME_CHARS} letters, digits, spaces, - or _ and starts with one of them")
    return name


def fit_text(text: str, limit: int) -> str:
    """Return `text` if it is at most `limit` characters without control or direction marks. Raises Refused."""
    if len(text) > limit:
        raise Refused(f"a text of {len(text)} characters, at most {limit} are allowed")
    if found := _FORBIDDEN_IN_TEXT.search(text):
        raise Refused(f"a text with the control character U+{ord(found[0]):04X}")
    return text


class ActionSpec:
    """One kind of action: decodes and validates what an agent asks for."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self.kind = kind_of(cls)
        self.doc = cleandoc(cls.__doc__ or "")
        self._decode = msgspec.json.Decoder(cls, strict=True).decode
        self._values = _getter([f.name for f in fields(cls)])

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the action's arguments, self-contained, closed to further properties."""
        schema = msgspec.json.schema(self.cls)
        definitions = schema["$defs"]
        body = definitions.pop(self.cls.__name__)
        body["additionalProperties"] = False
        return {**body, "$defs": definitions} if definitions else dict(body)

    def decode(self, args: bytes) -> Any:
        """The action that `args`, a JSON object, describes. Raises Refused with the place and the reason."""
        if len(args) > MAX_ACTION_BYTES:
            raise Refused(f"an action of {len(args)} bytes, at most {MAX_ACTION_BYTES} are allowed")
        try:
            action = self._decode(args)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(f"{self.kind}: {error}") from None
        for value in self._values(action):
            if isinstance(value, str):
                fit_text(value, MAX_ACTION_BYTES)
        return action


class EventSpec:
    """One kind of event: lays an instance out as a row of the `events` table."""

    def __init__(self, cls: type[Event]) -> None:
        self.cls = cls
        self.kind = kind_of(cls)
        self.doc = cleandoc(cls.__doc__ or "")
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        self.columns = [n for n in names if n in COLUMNS]
        self.extra = [n for n in names if n not in COLUMNS]
        self.hints = get_type_hints(cls, include_extras=True)
        self._positions = [3 + COLUMNS.index(n) for n in self.columns]
        self._values = _getter(self.columns)
        self._extra_values = _getter(self.extra)

    def row(self, event: Event, seq: int, actor: int | None) -> Row:
        row: list[Any] = [seq, self.kind, actor, None, None, None, None, None, None, None, None]
        for position, value in zip(self._positions, self._values(event), strict=True):
            row[position] = value
        if self.extra:
            row[10] = _encode(dict(zip(self.extra, self._extra_values(event), strict=True))).decode()
        return tuple(row)

    def describe(self, name: str) -> tuple[str, str]:
        """(meaning, unit) of a field, empty where its annotation states none."""
        hint = self.hints[name]
        notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        metas = [m for m in notes if isinstance(m, msgspec.Meta)]
        meaning = next((m.description for m in metas if m.description), "")
        units = (m.extra_json_schema["unit"] for m in metas if m.extra_json_schema and "unit" in m.extra_json_schema)
        return meaning, next(units, "")


def _getter(names: Sequence[str]) -> Any:
    if not names:
        return lambda event: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda event: (get(event),)


class ScenarioSpec:
    """All that is derived from one scenario class."""

    def __init__(self, scenario: type[Scenario[Any, Any]]) -> None:
        self.scenario = scenario
        self.actions = {kind_of(a): ActionSpec(a) for a in scenario.actions}
        self.events = {e: EventSpec(e) for e in (*PLATFORM_EVENTS, *scenario.events)}
        kinds = [e.kind for e in self.events.values()]
        if len(set(kinds)) != len(kinds):
            raise TypeError(f"{scenario.__name__} declares a kind of event twice: {sorted(kinds)}")
        self.encode_observation = msgspec.json.Encoder().encode
        self.decode_observation = msgspec.json.Decoder(scenario.Observation).decode

    def decode_action(self, kind: str, args: bytes) -> Any:
        """Validate an action at the world's edge. Raises Refused."""
        spec = self.actions.get(kind)
        if spec is None:
            raise Refused(f"no such action: {kind[:40]!r}; there are {', '.join(self.actions)}")
        return spec.decode(args)

    def encode_action(self, action: Any) -> tuple[str, bytes]:
        """(kind, arguments as JSON) of an action instance."""
        return kind_of(type(action)), _encode(action)

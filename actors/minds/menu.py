"""What an agent may answer now: as a JSON schema for the engine, as words for the model, as a check on return.

All three come from the same options, so that a model is told what its grammar lets it say, and what comes back is
held against the same bounds whatever the engine made of the schema. The schema keeps to what grammars for
constrained decoding agree on (XGrammar, llama.cpp): `type`, `properties`, `required`, `additionalProperties`,
`items`, `anyOf`, `const`, `enum`, bounds of whole numbers, lengths of texts and lists; no references.

An answer looks like this; all but `act` may be missing, except the reason if one is asked for:

    {"reason": "...", "act": {"action": "move", "direction": "north"}, "message": "...", "note": "...",
     "playbook": {"op": "add", "text": "..."}}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any

import msgspec
from pydantic import Field

from ethnos.actors.minds.memory import Thought
from ethnos.actors.minds.playbook import Change
from ethnos.actors.minds.structured import Object, Unusable
from ethnos.actors.minds.text import clean
from ethnos.actors.minds.validate import choice, violation
from ethnos.errors import Refused
from ethnos.world.limits import MAX_ACTION_BYTES, MAX_MESSAGE_CHARS
from ethnos.world.scenario import Option
from ethnos.world.spec import ActionSpec, ScenarioSpec

Schema = dict[str, Any]

_COPIED = frozenset({"type", "required", "const", "enum", "minItems", "maxItems", "minLength"})


_Chars = Annotated[int, Field(ge=1, le=2000)]


@dataclass(frozen=True, slots=True)
class Form:
    """What beside an action a mind may or must answer with, and how long."""

    reason: bool = True
    """Whether it has to give its reason first, in a few words; small models decide better for it."""
    speak: bool = True
    """Whether it may say something aloud."""
    notes: bool = True
    """Whether it may write a note to itself."""
    playbook: bool = True
    """Whether it may change its playbook."""
    reason_chars: _Chars = 160
    message_chars: Annotated[int, Field(ge=1, le=MAX_MESSAGE_CHARS)] = 240
    note_chars: _Chars = 200
    strategy_chars: _Chars = 160
    text_chars: Annotated[int, Field(ge=1, le=MAX_ACTION_BYTES)] = 600
    """Longest text in an action's arguments, where the scenario allows longer ones."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that passed: an action of the world, and what goes with it."""

    action: Any
    reason: str = ""
    message: str = ""
    thought: Thought = field(default_factory=Thought)
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dish:
    """One kind of action, narrowed to what is open now."""

    spec: ActionSpec
    schema: Schema
    choices: Mapping[str, Sequence[Any]]

    def words(self, most: int) -> str:
        """Its kind, and the choices that are not always the same."""
        parts = [f"{name} {choice(allowed, most)}" for name, allowed in self.choices.items()]
        return f"- {self.spec.kind}" + (f": {'; '.join(parts)}" if parts else "")


@dataclass(frozen=True)
class Menu:
    """All an agent may answer in one turn."""

    dishes: Mapping[str, Dish]
    form: Form
    items: Sequence[int]
    """Ids of the items in its playbook."""

    @cached_property
    def schema(self) -> Schema:
        """The JSON schema of an answer."""
        return _object(
            {
                **({"reason": _text(self.form.reason_chars)} if self.form.reason else {}),
                "act": {"anyOf": [d.schema for d in self.dishes.values()]},
                **({"message": _text(self.form.message_chars)} if self.form.speak else {}),
                **({"note": _text(self.form.note_chars)} if self.form.notes else {}),
                **({"playbook": self._changes()} if self.form.playbook else {}),
            },
            ["reason", "act"] if self.form.reason else ["act"],
        )

    def _changes(self) -> Schema:
        text, item = _text(self.form.strategy_chars), {"type": "integer", "enum": list(self.items)}
        add = _object({"op": _word("add"), "text": text}, ["op", "text"])
        if not self.items:
            return add
        prune = _object({"op": _word("prune"), "item": item}, ["op", "item"])
        if len(self.items) < 2:
            return {"anyOf": [add, prune]}
        two = {"type": "array", "items": item, "minItems": 2, "maxItems": 2}
        merge = _object({"op": _word("merge"), "items": two, "text": text}, ["op", "items", "text"])
        return {"anyOf": [add, merge, prune]}

    def check(self, value: Object) -> Answer:
        """The answer that an object is. Raises Unusable."""
        given = {k: v for k, v in value.items() if v is not None or k in ("reason", "act")}
        if wrong := violation(given, self.schema):
            raise Unusable(wrong)
        return Answer(
            action=self._action(given["act"]),
            reason=clean(given.get("reason", "")).strip(),
            message=clean(given.get("message", "")).strip(),
            thought=Thought(clean(given.get("note", "")).strip(), _change(given.get("playbook"))),
            repairs=("null dropped",) if len(given) < len(value) else (),
        )

    def _action(self, act: Object) -> Any:
        arguments = {k: v for k, v in act.items() if k != "action"}
        try:
            return self.dishes[act["action"]].spec.decode(msgspec.json.encode(arguments))
        except (Refused, msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise Unusable(str(error)) from None

    def words(self, most: int = 30) -> list[str]:
        """What is open now, a line for each kind of action; of long lists of choices the first `most`."""
        return [dish.words(most) for dish in self.dishes.values()]


def _change(value: Object | None) -> Change | None:
    if value is None:
        return None
    items = value.get("items", [value["item"]] if "item" in value else [])
    return Change(value["op"], value.get("text", ""), tuple(items))


class Kitchen:
    """Makes menus for one scenario and form."""

    def __init__(self, spec: ScenarioSpec, form: Form) -> None:
        self.spec = spec
        self.form = form
        self._full = {a.cls: (a, flat(a.schema, form.text_chars)) for a in spec.actions.values()}
        if taken := [a.kind for a, schema in self._full.values() if "action" in schema["properties"]]:
            raise TypeError(f"{taken[0]}: an action's argument cannot be called `action`")

    def menu(self, options: Sequence[Option], items: Sequence[int] = ()) -> Menu:
        """The menu of one turn. `items` are the ids in the agent's playbook."""
        dishes = (self._dish(o) for o in options)
        return Menu({d.spec.kind: d for d in dishes if d is not None}, self.form, tuple(items))

    def _dish(self, option: Option) -> Dish | None:
        """None if nothing is left to choose for one of its arguments."""
        spec, full = self._full[option.action]
        if any(len(allowed) == 0 for allowed in option.choices.values()):
            return None
        narrowed = {name: _narrow(full["properties"][name], allowed) for name, allowed in option.choices.items()}
        properties = {"action": _word(spec.kind), **full["properties"], **narrowed}
        return Dish(spec, _object(properties, ["action", *full["required"]]), dict(option.choices))

    def neutral(self, action: Any, items: Sequence[int] = ()) -> Menu:
        """The menu of a turn in which nothing is open but the neutral action, exactly as it is."""
        kind = type(action)
        choices = {f.name: [getattr(action, f.name)] for f in fields(kind)}
        return self.menu([Option(kind, choices)], items)

    def actions(self) -> list[str]:
        """All kinds of action in words, for the rules: the same for everybody."""
        return [_described(spec) for spec in self.spec.actions.values()]


def flat(schema: Mapping[str, Any], longest: int, definitions: Mapping[str, Any] | None = None, left: int = 8) -> Any:
    """A schema without references and without what grammars do not agree on. Texts get a greatest length."""
    definitions = definitions or schema.get("$defs", {})
    if left == 0:
        raise TypeError("an action's arguments may not contain themselves, or be nested more than 8 deep")
    if "$ref" in schema:
        return flat(definitions[schema["$ref"].rpartition("/")[2]], longest, definitions, left - 1)

    def inner(value: Any) -> Any:
        return flat(value, longest, definitions, left - 1) if isinstance(value, Mapping) else value

    kept = {k: v for k, v in schema.items() if k in _COPIED}
    kept |= {k: inner(schema[k]) for k in ("items", "additionalProperties") if isinstance(schema.get(k), Mapping)}
    kept |= {k: [inner(v) for v in schema[k]] for k in ("anyOf", "prefixItems") if k in schema}
    if "properties" in schema:
        properties = {k: inner(v) for k, v in schema["properties"].items()}
        return {**kept, **_object(properties, schema.get("required", ()))}
    if "enum" in kept and all(isinstance(v, str) for v in kept["enum"]):
        kept["type"] = "string"
    if kept.get("type") == "integer":
        return kept | _bounds(schema)
    if kept.get("type") == "string" and not kept.keys() & {"enum", "const"}:
        kept["maxLength"] = min(longest, schema.get("maxLength", longest))
    return kept


def _bounds(schema: Mapping[str, Any]) -> Schema:
    """A whole number's bounds, both inclusive."""
    low = [schema["minimum"]] if "minimum" in schema else []
    low += [schema["exclusiveMinimum"] + 1] if "exclusiveMinimum" in schema else []
    high = [schema["maximum"]] if "maximum" in schema else []
    high += [schema["exclusiveMaximum"] - 1] if "exclusiveMaximum" in schema else []
    return {**({"minimum": max(low)} if low else {}), **({"maximum": min(high)} if high else {})}


def _narrow(schema: Schema, allowed: Sequence[Any]) -> Schema:
    if isinstance(allowed, range):
        return {"type": "integer", "minimum": allowed.start, "maximum": allowed.stop - 1}
    kind = {"type": schema["type"]} if "type" in schema else {}
    return {**kind, "enum": list(allowed)}


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> Schema:
    closed = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {**closed, "additionalProperties": False}


def _word(word: str) -> Schema:
    return {"type": "string", "const": word}


def _text(longest: int) -> Schema:
    return {"type": "string", "maxLength": longest}


def _described(spec: ActionSpec) -> str:
    schema = spec.schema
    required = schema.get("required", ())
    arguments = [
        f"`{name}` ({'' if name in required else 'optional, '}{_kind(part, schema.get('$defs', {}))})"
        for name, part in schema["properties"].items()
    ]
    doc = " ".join(spec.doc.split())
    return f"- {spec.kind}: {doc}" + (f" Arguments: {', '.join(arguments)}." if arguments else "")


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """A type in words, with what its author says about it."""
    if "$ref" in schema:
        return _kind(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    about = f": {schema['description']}" if "description" in schema else ""
    if "enum" in schema:
        return f"one of {', '.join(json.dumps(v) for v in schema['enum'])}{about}"
    if "anyOf" in schema:
        return " or ".join(_kind(s, definitions) for s in schema["anyOf"]) + about
    names = {"integer": "whole number", "string": "text", "boolean": "true or false", "array": "list"}
    kind = str(schema.get("type", "any"))
    return names.get(kind, kind) + _range_in_words(schema) + about


def _range_in_words(schema: Mapping[str, Any]) -> str:
    bounds = _bounds(schema)
    words = [f" from {bounds['minimum']}"] if "minimum" in bounds else []
    words += [f" to {bounds['maximum']}"] if "maximum" in bounds else []
    words += [f" of at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    return "".join(words)


__all__ = ["Answer", "Dish", "Form", "Kitchen", "Menu", "Schema", "flat"]

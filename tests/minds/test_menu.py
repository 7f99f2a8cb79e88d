"""What may be answered: the schema, the words and the check say the same, and nothing passes that is not on it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from ethnos.actors.minds.menu import Form, Kitchen, Menu, flat
from ethnos.actors.minds.structured import Unusable
from ethnos.actors.minds.validate import KEYWORDS, violation
from ethnos.world.scenario import Option
from ethnos.world.scenarios.terra import Terra
from ethnos.world.spec import ScenarioSpec
from tests.minds.village import SPEC, VILLAGE, Give, Place, Seen, Wait, Walk, Write, kitchen

HERE = Seen(coins=5, here=["Bob", "Cem O2"])


def menu(seen: Seen = HERE, items: tuple[int, ...] = (1, 4), **form: Any) -> Menu:
    return kitchen(**form).menu(VILLAGE.options(seen), items)


def check(act: Any, **rest: Any) -> Any:
    return menu().check({"reason": "x", "act": act, **rest})


def keywords(schema: Any, place: str = "") -> set[str]:
    """All keywords in a schema; names of properties are none."""
    if isinstance(schema, list):
        return set().union(*(keywords(s, place) for s in schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    inner = (keywords(v, k) for k, v in schema.items() if k not in ("enum", "const"))
    return set().union(*inner, set() if place == "properties" else set(schema))


@pytest.mark.parametrize("scenario", [VILLAGE.__class__, Terra])
def test_the_schema_is_one_of_the_common_kind(scenario: Any) -> None:
    made = Kitchen(ScenarioSpec(scenario), Form()).menu([Option(a) for a in scenario.actions], [1, 2])
    Draft202012Validator.check_schema(made.schema)
    assert keywords(made.schema) <= KEYWORDS


def test_what_is_open_is_what_the_schema_lists() -> None:
    branches = {
        b["properties"]["action"]["const"]: b["properties"] for b in menu().schema["properties"]["act"]["anyOf"]
    }
    assert list(branches) == ["wait", "walk", "give", "write"]
    assert branches["give"]["target"] == {"type": "string", "enum": ["Bob", "Cem O2"]}
    assert branches["give"]["amount"] == {"type": "integer", "minimum": 1, "maximum": 5}


def test_an_action_with_nothing_to_choose_is_not_open() -> None:
    assert "give" not in menu(Seen(here=[])).dishes
    assert "give" not in menu(Seen(coins=0, here=["Bob"])).dishes


def test_the_words_name_what_is_open() -> None:
    words = menu().words()
    assert words == ["- wait", "- walk", '- give: target "Bob", "Cem O2"; amount 1 to 5', "- write"]


def test_an_answer_becomes_an_action() -> None:
    answer = check({"action": "give", "target": "Bob", "amount": 3}, message=" hi\x00 ", note="n")
    assert answer.action == Give("Bob", 3)
    assert (answer.reason, answer.message, answer.thought.note) == ("x", "hi", "n")
    wall = {"action": "write", "text": "t", "about": [{"name": "well", "sure": 0.5}], "days": None}
    assert check(wall).action == Write("t", [Place("well", 0.5)])


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ({"action": "fly"}, 'act.action cannot be "fly"; it can be "wait"'),
        ({"action": None}, "cannot be null"),
        ({"action": ["wait"]}, "cannot be"),
        ({}, "cannot be null"),
        ("wait", "cannot|not an object|not allowed"),
        ({"action": "give", "target": "Zed", "amount": 1}, 'act.target cannot be "Zed"; it can be "Bob"'),
        ({"action": "give", "target": "bob", "amount": 1}, "target"),
        ({"action": "give", "target": ["Bob"], "amount": 1}, "target"),
        ({"action": "give", "target": "Bob", "amount": "3 coins"}, '"3 coins" is not a whole number'),
        ({"action": "give", "target": "Bob", "amount": "3"}, "whole number"),
        ({"action": "give", "target": "Bob", "amount": -1000}, "not between 1 and 5"),
        ({"action": "give", "target": "Bob", "amount": 6}, "not between 1 and 5"),
        ({"action": "give", "target": "Bob", "amount": 1.5}, "whole number"),
        ({"action": "give", "target": "Bob", "amount": True}, "whole number"),
        ({"action": "give", "target": "Bob", "amount": 10**400}, "not between"),
        ({"action": "give", "target": "Bob", "amount": [3]}, "whole number"),
        ({"action": "give", "target": "Bob"}, "the key amount is missing"),
        ({"action": "wait", "for": "rain"}, "no such key"),
        ({"action": "write", "text": "x" * 601}, "601 characters"),
        ({"action": "write", "text": "x", "about": [{"name": "y", "sure": 1e999}]}, "not a number"),
        ({"action": "write", "text": "x", "about": [{"name": "y" * 601}]}, "601 characters"),
        ({"action": "write", "text": "x", "days": 10}, "not allowed"),
        ({"action": "write", "text": "bell \x07"}, "control character"),
    ],
)
def test_what_is_not_open_is_refused_with_a_reason(act: Any, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        check(act)


@pytest.mark.parametrize(
    "rest",
    [
        {"mood": "good"},
        {"message": 7},
        {"message": "x" * 241},
        {"note": ["n"]},
        {"playbook": {"op": "burn"}},
        {"playbook": "add"},
        {"playbook": {"op": "add"}},
        {"playbook": {"op": "prune", "item": 2}},
        {"playbook": {"op": "merge", "items": [1], "text": "t"}},
        {"playbook": {"op": "merge", "items": [1, 9], "text": "t"}},
        {"playbook": {"op": "add", "text": "t", "items": [1]}},
        {"reason": None},
    ],
)
def test_what_goes_with_an_action_is_held_to_the_schema_too(rest: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        check({"action": "wait"}, **rest)


def test_null_stands_for_nothing() -> None:
    answer = check({"action": "wait"}, message=None, playbook=None)
    assert answer.action == Wait() and answer.repairs == ("null dropped",)


def test_a_form_leaves_out_what_it_does_not_want() -> None:
    bare = menu(reason=False, speak=False, notes=False, playbook=False)
    assert list(bare.schema["properties"]) == ["act"]
    assert bare.check({"act": {"action": "walk", "to": "inn"}}).action == Walk("inn")


def test_the_playbook_offers_what_can_be_done_with_it() -> None:
    def ops(*items: int) -> list[str]:
        changes = menu(items=items).schema["properties"]["playbook"]
        return [c["properties"]["op"]["const"] for c in changes.get("anyOf", [changes])]

    assert ops() == ["add"]
    assert ops(1) == ["add", "prune"]
    assert ops(1, 2) == ["add", "merge", "prune"]


def test_an_action_that_contains_itself_is_refused() -> None:
    with pytest.raises(TypeError, match="nested"):
        flat({"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [{"$ref": "#/$defs/T"}]}}}, 100)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Bob", "add", "inn"])
)
anything = st.recursive(
    scalars, lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=4), s, max_size=3)
)
acts = st.fixed_dictionaries(
    {"action": st.sampled_from(["wait", "walk", "give", "write", "fly"])},
    optional={
        "to": st.sampled_from(["well", "moon"]) | anything,
        "target": st.sampled_from(["Bob", "Zed"]) | anything,
        "amount": st.integers(-2, 8) | anything,
        "text": st.text(max_size=8) | anything,
        "days": st.integers(-2, 12) | anything,
        "about": st.lists(st.fixed_dictionaries({"name": st.text(max_size=3), "sure": anything}), max_size=2)
        | anything,
    },
)
answers = st.fixed_dictionaries(
    {"reason": st.text(max_size=170) | anything, "act": acts | anything},
    optional={
        "message": st.text(max_size=5) | anything,
        "playbook": st.fixed_dictionaries({"op": st.sampled_from(["add", "prune"])}, optional={"text": anything}),
    },
)


@given(answers)
def test_the_check_agrees_with_an_independent_validator(value: Any) -> None:
    """What passes obeys the schema, and what obeys it is refused for a control character or a number at most."""
    made = menu()
    valid = Draft202012Validator(made.schema).is_valid
    try:
        answer = made.check(value)
    except Unusable as error:
        if valid(value):
            assert any(
                word in str(error) for word in ("control", "whole number", "a number", "64", "Expected", "surrog")
            )
        return
    assert valid({k: v for k, v in value.items() if v is not None})
    assert type(answer.action) in VILLAGE.actions
    kind, args = SPEC.encode_action(answer.action)
    assert SPEC.decode_action(kind, args) == answer.action


@given(anything)
def test_a_validator_never_raises(value: Any) -> None:
    assert isinstance(violation(value, menu().schema), str)


def test_grammars_take_the_schema() -> None:
    grammars = pytest.importorskip("xgrammar")
    grammars.Grammar.from_json_schema(json.dumps(menu().schema))

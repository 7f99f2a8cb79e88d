"""From a reply to one object: what is repaired, what is refused, and that nothing ever raises anything else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.actors.minds.structured import Unusable, extract, without_trailing_commas

OBJECT = '{"a": 1, "b": ["x, }", {"c": null}]}'
VALUE = json.loads(OBJECT)


def test_one_object_is_clean() -> None:
    found = extract(f"  {OBJECT}\n")
    assert found.value == VALUE and found.repairs == ()


@pytest.mark.parametrize(
    ("reply", "repairs"),
    [
        (f"{OBJECT} I hope this helps!", ["prose around it dropped"]),
        (f"Sure, here it is: {OBJECT}", ["prose around it dropped"]),
        (f"```json\n{OBJECT}\n```", ["prose around it dropped"]),
        (f"I am {{curious}}. {OBJECT}", ["prose around it dropped"]),
        (f"It's \"quoted prose: {OBJECT}", ["prose around it dropped"]),
        (f'<think>maybe {{"a": 2}}?</think>{OBJECT}', ["reasoning dropped"]),
        ('{"a": 1, "b": ["x, }", {"c": null,},],}', ["trailing comma dropped"]),
        (f"{OBJECT}\n{OBJECT}", ["repetition dropped", "prose around it dropped"]),
    ],
)
def test_repairs_that_lose_nothing(reply: str, repairs: list[str]) -> None:
    found = extract(reply)
    assert found.value == VALUE and list(found.repairs) == repairs


def test_a_line_may_break_inside_a_text() -> None:
    assert extract('{"a": "x\ny"}').value == {"a": "x\ny"}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty"),
        ("I would rather not.", "no JSON object"),
        (f"{OBJECT} or {{}}", "several different"),
        (OBJECT[:-1], "cut off"),
        (OBJECT + OBJECT[:-3], "cut off"),
        (f'Hm: {OBJECT} {{"a": ', "cut off"),
        ("[1, 2]", "a list"),
        ("7", "a number"),
        ('"{}"', "a text"),
        ("null", "no JSON"),
        ("{'a': 1}", "is no JSON"),
        ('{"a": True}', "no valid JSON"),
        ('{"a": 1 "b": 2}', "no valid JSON"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "Infinity is no number"),
        ('{"a": 1, "a": 2}', "same key twice"),
        ('{"a": ' * 60 + "1" + "}" * 60, "deep"),
        ('{"a":' * 3000, "cut off"),
        ("[" * 100_000, "characters"),
        ('{"a": "' + "x" * 1_000_000 + '"}', "at most 64000"),
        ('{"a": ' + "9" * 10_000 + "}", "no valid JSON"),
    ],
)
def test_what_is_refused(reply: str, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        extract(reply)


def test_nothing_is_evaluated() -> None:
    with pytest.raises(Unusable):
        extract('{"a": __import__("os").getcwd()}')


def test_commas_inside_texts_stay() -> None:
    assert without_trailing_commas('["a,]", "b\\",}",]') == '["a,]", "b\\",}"]'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4), st.booleans())
def test_whatever_the_object_prose_around_it_is_no_matter(value: dict[str, Any], ascii_only: bool) -> None:
    reply = json.dumps(value, ensure_ascii=ascii_only)
    assert extract(f"Well, {reply} That's it.").value == value
    assert extract(reply).value == value
    with pytest.raises(Unusable):
        extract(reply[:-1])


@given(st.text(alphabet='{}[]",:\\ax1 \n<think>/', max_size=80))
def test_nothing_but_unusable_is_raised(reply: str) -> None:
    try:
        assert isinstance(extract(reply).value, dict)
    except Unusable as error:
        assert str(error)

"""What HTTP says, and what a prompt looks like."""

import pytest

from ethnos.actors.inference import chat
from ethnos.actors.inference.chat import Frame, cut, marked, messages, plain
from ethnos.actors.inference.engines.base import Broken, Denied, Overloaded, Refused, retry_after, trouble
from ethnos.actors.inference.engines.completion import read
from ethnos.actors.inference.engines.http import error_text, redact
from ethnos.actors.inference.request import Layer, Request


@pytest.mark.parametrize(("headers", "text", "seconds"), [
    ({"Retry-After": "2"}, "", 2.0),
    ({"retry-after": "0.5"}, "", 0.5),
    ({"Retry-After-Ms": "250", "Retry-After": "9"}, "", 0.25),
    ({"Retry-After": "Wed, 21 Oct 2026 07:28:05 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 5.0),
    ({"Retry-After": "-3"}, "", 0.0),
    ({"Retry-After": "1e12"}, "", 3600.0),
    ({"Retry-After": "nan"}, "", None),
    ({"Retry-After": "soon"}, "", None),
    ({}, "Rate limit reached. Please try again in 20s.", 20.0),
    ({}, "Please try again in 1.5s. Visit us.", 1.5),
    ({}, "try again in 6m0s", 360.0),
    ({}, "Please retry after 12 seconds.", 12.0),
    ({}, "try again in 750ms", 0.75),
    ({}, "try again later", None),
])  # fmt: skip
def test_how_long_to_wait(headers, text, seconds):
    assert retry_after(headers, text) == seconds


@pytest.mark.parametrize(("status", "kind"), [
    (429, Overloaded), (503, Overloaded), (400, Refused), (422, Refused), (413, Refused), (401, Denied), (404, Denied),
    (500, Broken), (502, Broken), (504, Broken), (307, Broken),
])  # fmt: skip
def test_what_a_status_means(status, kind):
    assert type(trouble(status, "words", {})) is kind


@pytest.mark.parametrize(("raw", "text"), [
    (b'{"error": {"message": "no"}}', "no"), (b'{"message": "no"}', "no"), (b'{"detail": "no"}', "no"),
    (b'{"error": "no"}', "no"), (b"plain", "plain"), (b'["no"]', '["no"]'), (b"\xff", "\ufffd"),
])  # fmt: skip
def test_what_an_error_says(raw, text):
    assert error_text(raw) == text


def test_keys_are_not_repeated():
    assert redact("key open-sesame and sk-proj-abc***xyz", "open-sesame") == "key [key] and [key]"


@pytest.mark.parametrize("reply", [None, [], {}, {"choices": []}, {"choices": [{}]}, {"choices": ["x"]}, "text", 3])
def test_what_is_no_completion(reply):
    with pytest.raises(Broken):
        read(reply)


def test_odd_usage_is_nothing():
    answer = read(
        {"choices": [{"message": {"content": None}}], "usage": {"prompt_tokens": -3, "completion_tokens": "7"}}
    )
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("", 0, 0)


def test_layers_with_one_role_are_one_message():
    layers = [Layer("rules", "a"), Layer("cohort", "b"), Layer("observation", "c", "user"), Layer("retry", "d", "user")]
    assert messages(layers) == [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "c\n\nd"}]


def test_a_frame_is_what_stands_between_the_marks():
    roles = ("system", "user")
    rendered = "<s>" + "|".join(m["content"] for m in marked(roles)) + "!"
    frame = cut(rendered, roles)
    assert frame == Frame(("<s>", "|", "!"))
    assert frame.render([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]) == "<s>a|b!"
    assert cut("ETHNOS0TEXT ETHNOS0TEXT", ("user",)) is None and cut("nothing", ("user",)) is None


def test_a_plain_layout():
    assert plain(("system", "user")).render(marked(("system", "user"))) == (
        "### System\nETHNOS0TEXT\n\n### User\nETHNOS1TEXT\n\n### Assistant\n"
    )


def test_the_head_is_what_others_share():
    def request(*layers: Layer, agent: int = 0) -> Request:
        return Request(0, agent, 0, layers, None)

    rules, cohort = Layer("rules", "r"), Layer("cohort", "c")
    a = request(rules, cohort, Layer("persona", "a"))
    b = request(rules, cohort, Layer("persona", "b"), agent=1)
    assert a.head == b.head and a.digest != b.digest and a.shared == (rules, cohort)
    assert request(rules, Layer("cohort", "other"), Layer("persona", "a")).head != a.head
    assert request(Layer("persona", "a"), rules).head == ""
    assert request(Layer("rules", "rc")).head != request(rules, Layer("cohort", "c")).head


def test_common_special_tokens():
    assert {"<|im_start|>", "<|eot_id|>", "[INST]", "</s>", "<end_of_turn>"} <= chat.COMMON_SPECIAL_TOKENS

"""Text stays data: no quotation can be left from inside, no template token survives, every budget holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.actors.minds.text import TEMPLATE_TOKENS, clean, fit, fit_lines, neutralise, quote, tokens

NASTY = st.text(alphabet="<|>[]/sINST«»\\n\n\t‹·aimstr_ende\u202e\x00\ud800é\U000e0041", max_size=60)


@pytest.mark.parametrize(
    "token",
    ["<|im_start|>", "<|eot_id|>", "[INST]", "[/inst]", "</s>", "<｜User｜>", "<start_of_turn>", "<think>", "<<SYS>>"],
)
def test_template_tokens_are_broken_but_can_be_read(token: str) -> None:
    broken = neutralise(f"before {token} after")
    assert token not in broken
    assert broken.replace("·", "") == f"before {token} after"


def test_a_models_own_tokens_are_broken_too() -> None:
    assert neutralise("say %%END%%", ["%%END%%"]) == "say %·%END%·%"[:5] + "·%END%%"
    assert neutralise("say %%END%%") == "say %%END%%"


def test_harmless_text_stays_as_it_is() -> None:
    text = "I have < 3 coins, [see] <this> | that: «ça va?» 你好 🙂"
    assert neutralise(text) == text


@given(NASTY)
def test_nothing_a_template_knows_survives(text: str) -> None:
    safe = neutralise(text, ["im", "ss"])
    assert not any(t.lower() in safe.lower() for t in (*TEMPLATE_TOKENS, "im", "ss"))
    assert neutralise(safe, ["im", "ss"]) == safe


def test_tokens_that_overlap_are_broken_all() -> None:
    safe = neutralise("<|<|im_start|>|>[INST[INST]]</s</s>>")
    assert not any(t in safe for t in TEMPLATE_TOKENS)


@given(NASTY, st.integers(0, 50) | st.none())
def test_a_quotation_has_one_beginning_one_end_and_one_line(text: str, longest: int | None) -> None:
    quoted = quote(text, longest=longest)
    assert quoted.startswith("«") and quoted.count("«") == quoted.count("»") == 1
    assert "\n" not in quoted
    assert quoted.endswith("»") or quoted.endswith("more characters]")


def test_a_cut_says_how_much_is_missing() -> None:
    assert quote("abcdef", longest=4) == "«abcd» [2 more characters]"


def test_invisible_and_half_characters_go() -> None:
    assert clean("a\u200bb\u202ec\x00d\ud800e\U000e0041f\n") == "abcdef\n"


def test_a_token_is_four_bytes() -> None:
    assert [tokens(t) for t in ("", "a", "abcd", "abcde", "é" * 4)] == [0, 1, 1, 2, 2]


@given(st.text(max_size=80), st.integers(0, 30))
def test_fitting_fits(text: str, budget: int) -> None:
    assert tokens(fit(text, budget)) <= budget
    assert fit(text, budget) == text or tokens(text) > budget


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(0, 40))
def test_lines_fit_and_missing_ones_are_counted(lines: list[str], budget: int) -> None:
    fitted = fit_lines(lines, budget, "({count} more)")
    assert tokens(fitted) <= budget
    if "".join(lines) and budget > 8 and fitted != "\n".join(lines):
        assert "more)" in fitted


def test_a_quotation_that_is_cut_by_a_budget_is_closed() -> None:
    assert fit("- Bob: «" + "x" * 100, 6).endswith("…»")

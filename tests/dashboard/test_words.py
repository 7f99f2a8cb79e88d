"""Untrusted words stay words."""

import doctest

import pytest

from ethnos.dashboard import words
from ethnos.dashboard.words import escaped, plain

HOSTILE = {
    "html": "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "markdown image": "![pixel](http://127.0.0.1:9/track.png)",
    "markdown link": "[click](javascript:alert(1)) https://example.org",
    "streamlit colour": ":red[alarm] :material/delete: :streamlit:",
    "formula": "$\\frac{1}{0}$",
    "heading": "# big\n- list\n> quote\n| a | b |",
    "terminal": "\x1b[31mred\x1b[0m\x07\x00",
    "right to left": "\u202egnp.exe \u2066isolated\u2069",
    "invisible": "a\u200bb\ufeffc\U000e0041",
    "sql": "'; DROP TABLE events; --",
    "file": "file:///etc/passwd",
    "long": "x" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_invisible_and_nothing_too_long_is_left(name: str) -> None:
    shown = plain(HOSTILE[name])
    assert all(c.isprintable() or c in "\n\t" or c == "\u3000" for c in shown)
    assert len(shown) <= words.LONG + 100


@pytest.mark.parametrize("name", HOSTILE)
def test_every_mark_that_markdown_reads_is_escaped(name: str) -> None:
    line = escaped(HOSTILE[name])
    assert "\n" not in line
    bare = line.replace("\\\\", "")
    for mark in "*_`[]()!<>$:#|":
        assert all(bare[i - 1] == "\\" for i, c in enumerate(bare) if c == mark), line


def test_examples() -> None:
    assert doctest.testmod(words).failed == 0

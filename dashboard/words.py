r"""Words that agents wrote, as text and nothing else.

Streamlit reads Markdown in most of what it is given, also in labels and headings: `![](http://...)` would load an
image, `[a](http://...)` make a link, `:red[...]` colour, `$...$` formulas. Whatever comes from a record goes through
one of these, or into `st.text`, `st.code` and tables, which read nothing into it.
"""

import re
import unicodedata

LONG = 20_000
"""Characters of one text that a page shows; the record has the rest."""

_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:@&^=/])")
_KEPT = {"\n", "\t"}


def plain(value: object, limit: int = LONG) -> str:
    r"""As it is, but for control characters, direction marks and other invisible ones, which are spelled out.

    >>> plain("red \x1b[31m, turned \u202e round")
    'red \\x1b[31m, turned \\u202e round'
    """
    text = "" if value is None else str(value)
    cut = f"{text[:limit]}\n… {len(text) - limit:,} more characters" if len(text) > limit else text
    return cut if cut.isprintable() else "".join(c if _shows(c) else _spelled(c) for c in cut)


def _shows(character: str) -> bool:
    return character.isprintable() or character in _KEPT or unicodedata.category(character) == "Zs"


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def escaped(value: object, limit: int = 120) -> str:
    r"""One line of it for where Markdown is read, such as a label or a heading: every mark is escaped.

    >>> escaped("![x](http://y) <b>")
    '\\!\\[x\\]\\(http\\:\\/\\/y\\) \\<b\\>'
    """
    line = " ".join(plain(value, limit).split())
    return _MARKS.sub(r"\\\1", line)


def number(value: float | None) -> str:
    """With spaces between thousands; a dash for none.

    >>> number(1234567), number(0.256), number(None)
    ('1 234 567', '0.256', '–')
    """
    if value is None:
        return "–"
    whole = value == int(value) or abs(value) >= 100
    return (f"{value:,.0f}" if whole else f"{value:.3g}").replace(",", " ")

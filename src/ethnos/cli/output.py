"""What commands print. Texts that agents wrote never reach a terminal as anything but text."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

MAX_CELL = 120
"""Characters of a value that a table shows."""

PIPE_WIDTH = 250
"""Columns of output that goes to no terminal."""


def safe(value: object, limit: int | None = None) -> str:
    r"""A text in which control characters, escapes and direction marks are spelled out.

    >>> safe("red \x1b[31m alert")
    'red \\x1b[31m alert'
    """
    text = str(value)
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return text if text.isprintable() else "".join(c if _shows(c) else _spelled(c) for c in text)


def _shows(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def console(*, error: bool = False) -> Console:
    """Where to print: as wide as the terminal, or wide enough for a file."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(value: Mapping[str, Any]) -> None:
    """One object, in ASCII: the same bytes in any locale, and harmless on a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, indent=indent, allow_nan=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[str] = (), title: str = ""
) -> None:
    """A table; columns in `right` are aligned to the right."""
    table = Table(box=SIMPLE_HEAD, title=Text(safe(title)) if title else None, title_justify="left")
    right = set(right)
    for name in columns:
        table.add_column(Text(safe(name)), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else safe(value, MAX_CELL)) for value in row))
    console().print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    grid = Table.grid(padding=(0, 2))
    for name, value in facts:
        grid.add_row(Text(name, style="bold"), Text(safe(value), overflow="fold"))
    console().print(grid)


def print_line(text: str = "", *, error: bool = False) -> None:
    """One line of our own, in which what came from elsewhere is made safe."""
    console(error=error).print(Text(safe(text)), soft_wrap=True)


def number(value: float) -> str:
    """With spaces between thousands.

    >>> number(1234567)
    '1 234 567'
    """
    return f"{value:,.0f}".replace(",", " ")

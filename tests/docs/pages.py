"""The documentation as data: its pages, the blocks of code in them, and what readers are told to type."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Typed:
    """A command that a reader is told to type, and what it is said to print."""

    words: list[str]
    prints: list[str]


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text("utf-8")
    name = str(page.relative_to(ROOT))
    found = [Block(name, text[: m.start()].count("\n") + 1, m[1], m[2]) for m in _BLOCK.finditer(text)]
    return [b for b in found if b.language in languages]


def all_blocks(*languages: str) -> list[Block]:
    return [b for page in PAGES for b in blocks(page, *languages)]


def typed(block: Block) -> Iterator[Typed]:
    """The commands of a console block: lines after `$`, and more of them while a quotation is open."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        count = next(n for n in range(1, len(lines) + 1) if _is_whole("\n".join(lines[:n])))
        yield Typed(shlex.split("\n".join(lines[:count]), comments=True), lines[count:])


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True

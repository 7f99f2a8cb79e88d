"""A text store: every text told, who told it, and out of which others it was made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Text:
    """One text. It never changes; a retelling is another one."""

    id: int
    text: str
    author: int | None
    """Who told it; None: it was there from the beginning."""
    tick: int
    parents: list[int] = field(default_factory=list)
    """The texts it was made of, ascending."""


@dataclass(slots=True)
class TextStore:
    """Texts by id, dense from 0 in the order in which they were told."""

    texts: list[Text] = field(default_factory=list)

    def add(self, text: str, author: int | None, tick: int, parents: Iterable[int] = ()) -> Text:
        """Keep a text. Its parents have to be there already: so ancestry has no circles."""
        above = sorted(dict.fromkeys(parents))
        if above and not 0 <= above[0] <= above[-1] < len(self.texts):
            raise ValueError(f"no such texts: {above}; there are {len(self.texts)}")
        made = Text(len(self.texts), text, author, tick, above)
        self.texts.append(made)
        return made

    def __getitem__(self, number: int) -> Text:
        return self.texts[number]

    def __len__(self) -> int:
        return len(self.texts)

    def ancestors(self, number: int) -> list[int]:
        """All texts that went into one, ascending; itself not counted."""
        found: dict[int, None] = {}
        open_ = list(self.texts[number].parents)
        while open_:
            at = open_.pop()
            if at not in found:
                found[at] = None
                open_ += self.texts[at].parents
        return sorted(found)

    def origins(self, number: int) -> list[int]:
        """The texts without parents that one goes back to; itself if it has none."""
        return [i for i in [*self.ancestors(number), number] if not self.texts[i].parents]

    def depth(self, number: int) -> int:
        """Retellings between a text and its farthest origin."""
        depths: dict[int, int] = {}
        for i in [*self.ancestors(number), number]:
            depths[i] = 1 + max((depths[p] for p in self.texts[i].parents), default=-1)
        return depths[number]


def sentences(text: str) -> list[str]:
    """A text cut behind `.`, `!` and `?`: the items that a teller keeps or loses.

    >>> sentences("A ghost came. Who saw it?  Nobody")
    ['A ghost came.', 'Who saw it?', 'Nobody']
    """
    found, start = [], 0
    for end, sign in enumerate(text, 1):
        if sign in ".!?" and (end == len(text) or text[end].isspace()):
            found.append(text[start:end].strip())
            start = end
    return [s for s in [*found, text[start:].strip()] if s]


def word_count(texts: Sequence[str]) -> int:
    """Words in all of `texts`, as separated by blanks."""
    return sum(len(t.split()) for t in texts)


__all__ = ["Text", "TextStore", "sentences", "word_count"]

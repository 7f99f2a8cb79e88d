"""A playbook: what an agent has learned to do, item by item.

It is never rewritten whole, since a model that rewrites a long text loses what it does not think of at the moment.
An item is added, two are merged into one, one is pruned; that is all. When there is no room for a new item, the
one that has proved itself least goes: the lowest weight, among equals the oldest. An item that is added once more
is not doubled but gains weight, and a merged one weighs what its parts weighed.
"""

from typing import Literal

from msgspec import Struct

from ethnos.actors.minds.text import clean, tokens


class Strategy(Struct, omit_defaults=True):
    """One item of a playbook."""

    id: int
    text: str
    tick: int
    """When it was written, in this form."""
    weight: int = 1
    """How often it was found worth writing."""
    inherited: bool = False
    """Whether the agent was born with it."""


class Change(Struct, frozen=True):
    """One change to a playbook, as a mind asks for it."""

    op: Literal["add", "merge", "prune"]
    text: str = ""
    """The new item; with `merge`, what the two become."""
    items: tuple[int, ...] = ()
    """Two different ids with `merge`, one with `prune`."""


def changed(book: list[Strategy], change: Change, tick: int, limit: int, budget: int) -> list[Strategy]:
    """The playbook after a change, within `limit` items and `budget` tokens. What makes no sense changes nothing."""
    known = {s.id for s in book}
    named = set(change.items) & known
    text = clean(change.text).strip()
    if change.op == "prune" and len(named) == 1:
        return [s for s in book if s.id not in named]
    if change.op == "merge" and len(named) == 2 and text:
        return pruned(_merged(book, named, text, tick), limit, budget)
    if change.op == "add" and text:
        return pruned(_added(book, text, tick), limit, budget)
    return book


def _added(book: list[Strategy], text: str, tick: int) -> list[Strategy]:
    same = next((s for s in book if _sense(s.text) == _sense(text)), None)
    if same is None:
        return [*book, Strategy(_next_id(book), text, tick)]
    again = Strategy(same.id, same.text, same.tick, same.weight + 1, same.inherited)
    return [again if s is same else s for s in book]


def _merged(book: list[Strategy], named: set[int], text: str, tick: int) -> list[Strategy]:
    weight = sum(s.weight for s in book if s.id in named)
    return [*(s for s in book if s.id not in named), Strategy(_next_id(book), text, tick, weight)]


def pruned(book: list[Strategy], limit: int, budget: int) -> list[Strategy]:
    """What stays within the bounds: the least proved go, the newest last."""
    kept = list(book)
    while kept and (len(kept) > limit or sum(tokens(s.text) for s in kept) > budget):
        candidates = kept[:-1] if len(kept) > 1 else kept
        kept.remove(min(candidates, key=lambda s: (s.weight, s.tick, s.id)))
    return kept


def _next_id(book: list[Strategy]) -> int:
    return max((s.id for s in book), default=0) + 1


def _sense(text: str) -> str:
    """Two texts that differ in spaces and capitals say the same."""
    return " ".join(text.casefold().split())


__all__ = ["Change", "Strategy", "changed", "pruned"]

"""Which of its past an agent thinks of now: by recency, importance and similarity, after Park et al. (2023).

Similarity is lexical (BM25 over the agent's own past), so that it costs microseconds, needs no model, and comes
out the same on every machine.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

DECAY = 0.995
"""Per tick: what is 139 ticks old counts half as recent."""
TOP_WEIGHT = 10
K1, B = 1.2, 0.75
"""The usual constants of BM25."""

_WORD = re.compile(r"\w\w+")
_COMMON = frozenset(
    _WORD.findall(
        "the and for you your are was were with that this have has had not but from they them their what when who "
        "will can one all there here just into out about more than then its his her our she him did does heard "
        "said came tick"
    )
)
"""Words that tell nothing apart, among them those that every memento has."""


class Memento(Struct, omit_defaults=True):
    """Something of an agent's past, in one line."""

    tick: int
    text: str
    weight: int = 1
    """How important it seemed, from 1 to 10."""


@lru_cache(maxsize=8192)
def terms(text: str) -> Counter[str]:
    """The words of a text that can tell it from others, with how often it has them."""
    return Counter(w for w in _WORD.findall(text.casefold()) if w not in _COMMON)


def recalled(past: Sequence[Memento], cue: Iterable[str], now: int, count: int) -> list[Memento]:
    """The `count` things of the past that fit `cue` best, oldest first."""
    if not past or count <= 0:
        return []
    alike = similarities([m.text for m in past], cue)
    scores = [
        round(DECAY ** max(0, now - m.tick) + m.weight / TOP_WEIGHT + s, 9) for m, s in zip(past, alike, strict=True)
    ]
    best = sorted(range(len(past)), key=lambda i: (-scores[i], -past[i].tick, i))[:count]
    return [past[i] for i in sorted(best, key=lambda i: (past[i].tick, i))]


def similarities(texts: Sequence[str], cue: Iterable[str]) -> list[float]:
    """How well each text fits the words of `cue`, from 0 to 1: BM25 as a share of the best."""
    documents = [terms(t) for t in texts]
    wanted = sorted({w for c in cue for w in terms(c)})
    lengths = [sum(d.values()) for d in documents]
    mean = sum(lengths) / len(lengths) or 1.0
    rarity = {w: _rarity(sum(w in d for d in documents), len(documents)) for w in wanted}
    scores = [
        sum(rarity[w] * _saturated(d[w], length / mean) for w in wanted if w in d)
        for d, length in zip(documents, lengths, strict=True)
    ]
    best = max(scores)
    return [s / best for s in scores] if best > 0 else scores


def _rarity(holders: int, documents: int) -> float:
    return math.log(1 + (documents - holders + 0.5) / (holders + 0.5))


def _saturated(frequency: int, length: float) -> float:
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length))


def spared(past: list[Memento], limit: int) -> list[Memento]:
    """At most `limit` things: what is least important, with age counted in, is forgotten first."""
    if len(past) <= limit:
        return past
    lasting = sorted(range(len(past)), key=lambda i: (-_worth(past[i]), -past[i].tick, -i))[: max(0, limit)]
    return [past[i] for i in sorted(lasting)]


def _worth(memento: Memento) -> float:
    """Weight that decays with age; comparing two does not depend on when it is done, so ticks do instead."""
    return round(math.log(memento.weight) - memento.tick * math.log(DECAY), 9)


__all__ = ["Memento", "recalled", "similarities", "spared", "terms"]

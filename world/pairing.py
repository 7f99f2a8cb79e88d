"""Who meets whom: pairs drawn at random, within groups, across two roles, or by a round robin."""

from collections.abc import Iterable, Sequence

import numpy as np

Pair = tuple[int, int]


def shuffled(ids: Sequence[int], rng: np.random.Generator) -> list[int]:
    """`ids` in an order drawn from `rng`."""
    return [ids[k] for k in rng.permutation(len(ids))]


def at_random(ids: Sequence[int], rng: np.random.Generator) -> list[Pair]:
    """Everybody meets one other, each partner equally likely; with an odd number one meets nobody."""
    order = shuffled(ids, rng)
    return list(zip(order[::2], order[1::2], strict=False))


def within(groups: Iterable[Sequence[int]], rng: np.random.Generator) -> list[Pair]:
    """Pairs at random within each group, none between groups."""
    return [pair for group in groups for pair in at_random(group, rng)]


def across(first: Sequence[int], second: Sequence[int], rng: np.random.Generator) -> list[Pair]:
    """Each of `first` meets one of `second`, as far as they reach; each combination equally likely."""
    return list(zip(shuffled(first, rng), shuffled(second, rng), strict=False))


def round_robin(ids: Sequence[int], turn: int) -> list[Pair]:
    """The pairs of one turn of a tournament in which all meet all: the circle method.

    In as many turns as there are others (one more with an odd number) everybody meets everybody once.

    >>> round_robin([1, 2, 3, 4], 0), round_robin([1, 2, 3, 4], 1)
    ([(1, 4), (2, 3)], [(1, 3), (4, 2)])
    """
    ring: list[int | None] = [*ids] if len(ids) % 2 == 0 else [*ids, None]
    if not ring:
        return []
    shift = turn % max(1, len(ring) - 1)
    seats = [ring[0], *_turned(ring[1:], shift)]
    half = len(seats) // 2
    return [
        (a, b) for a, b in zip(seats[:half], seats[: -half - 1 : -1], strict=True) if a is not None and b is not None
    ]


def _turned(ring: Sequence[int | None], by: int) -> list[int | None]:
    return [*ring[len(ring) - by :], *ring[: len(ring) - by]]


__all__ = ["Pair", "across", "at_random", "round_robin", "shuffled", "within"]

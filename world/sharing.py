"""A shared pool: what becomes of demands that are more than there is, and how what is left grows back."""

from collections.abc import Callable, Mapping

Rule = Callable[[Mapping[int, int], int], dict[int, int]]
"""(what each wants, what there is) -> what each gets."""


def proportionally(wanted: Mapping[int, int], pool: int) -> dict[int, int]:
    """Everybody the same share of what it wants, in whole units.

    What rounding leaves goes to the largest fractions first, among equals in the order of `wanted`.
    """
    total = sum(wanted.values())
    if total <= pool:
        return dict(wanted)
    got = {i: amount * pool // total for i, amount in wanted.items()}
    left = pool - sum(got.values())
    for i in sorted(wanted, key=lambda i: -(wanted[i] * pool % total))[:left]:
        got[i] += 1
    return got


def first_come(wanted: Mapping[int, int], pool: int) -> dict[int, int]:
    """Everybody what it wants, in the order of `wanted`, as long as there is some."""
    got = {}
    for i, amount in wanted.items():
        got[i] = min(amount, pool)
        pool -= got[i]
    return got


def growth(pool: int, factor: float, capacity: int) -> int:
    """By how much a pool grows that is multiplied by `factor`, rounded down, and never exceeds its capacity.

    >>> growth(30, 2.0, 100), growth(80, 2.0, 100), growth(3, 0.5, 100)
    (30, 20, -2)
    """
    return min(int(pool * factor), capacity) - pool


__all__ = ["Rule", "first_come", "growth", "proportionally"]

"""Who meets whom: nobody twice at a time, nobody forgotten, everybody equally likely."""

from collections import Counter
from math import sqrt

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ethnos.world.pairing import across, at_random, round_robin, within

ids = st.lists(st.integers(0, 10**6), unique=True, max_size=25)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(ids, st.integers(0, 2**32))
def test_everybody_meets_one_other(who: list[int], seed: int) -> None:
    pairs = at_random(who, rng(seed))
    met = [i for pair in pairs for i in pair]
    assert len(met) == len(set(met)) == len(who) // 2 * 2
    assert set(met) <= set(who)
    assert pairs == at_random(who, rng(seed)), "the same chance, the same pairs"


@given(ids, ids, st.integers(0, 2**32))
def test_across_roles(first: list[int], second: list[int], seed: int) -> None:
    pairs = across(first, second, rng(seed))
    assert len(pairs) == min(len(first), len(second))
    assert {a for a, _ in pairs} <= set(first) and {b for _, b in pairs} <= set(second)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


@given(st.lists(ids, max_size=4), st.integers(0, 2**32))
def test_groups_do_not_mix(groups: list[list[int]], seed: int) -> None:
    labelled = [[(g, i) for i in group] for g, group in enumerate(groups)]
    numbered = {label: n for n, label in enumerate(label for group in labelled for label in group)}
    group_of = {n: label[0] for label, n in numbered.items()}
    pairs = within([[numbered[x] for x in group] for group in labelled], rng(seed))
    assert all(group_of[a] == group_of[b] for a, b in pairs)
    assert len(pairs) == sum(len(g) // 2 for g in groups)


@given(st.integers(2, 15))
def test_in_a_round_robin_everybody_meets_everybody_once(count: int) -> None:
    turns = count - 1 if count % 2 == 0 else count
    met = Counter(frozenset(pair) for turn in range(turns) for pair in round_robin(range(count), turn))
    assert len(met) == count * (count - 1) // 2
    assert set(met.values()) == {1}


def test_a_round_robin_of_few() -> None:
    assert round_robin([], 3) == [] == round_robin([7], 1)


def test_each_partner_is_equally_likely() -> None:
    """Six meet 3,000 times: each meets each other with chance 1/5."""
    draws = rng(1)
    met = Counter(frozenset(p) for _ in range(3_000) for p in at_random(range(6), draws))
    assert len(met) == 15
    assert all(abs(n - 600) < 4 * sqrt(3_000 * 0.2 * 0.8) for n in met.values())

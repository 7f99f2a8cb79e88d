"""The double-entry ledger: whatever is asked of it, nothing comes from nowhere."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.errors import Refused
from ethnos.world.ledger import OUTSIDE, Ledger

amounts = st.one_of(st.floats(-10, 1e6), st.sampled_from([math.nan, math.inf, -math.inf]))
transfers = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), amounts), max_size=60)


def opened() -> Ledger:
    ledger = Ledger()
    for account in range(4):
        ledger.open(account, 100.0)
    return ledger


@given(transfers)
def test_whatever_is_moved_the_books_balance(moves: list[tuple[int, int, float]]) -> None:
    ledger = opened()
    for source, target, amount in moves:
        before = dict(ledger.balances)
        try:
            ledger.transfer(source, target, amount)
        except Refused:
            assert ledger.balances == before, "what is refused moves nothing"
    assert all(ledger[a] >= 0 for a in ledger.accounts())
    scale = max(1.0, abs(ledger[OUTSIDE]), sum(abs(m[2]) for m in moves if math.isfinite(m[2])))
    assert abs(ledger.circulating + ledger[OUTSIDE]) <= 1e-9 * scale


@given(st.dictionaries(st.integers(1, 3), st.integers(-5, 80), max_size=3))
def test_shares_are_paid_all_or_none(shares: dict[int, float]) -> None:
    ledger = opened()
    before = dict(ledger.balances)
    possible = sum(shares.values()) <= 100 and all(s >= 0 for s in shares.values())
    if possible:
        ledger.distribute(0, shares)
        assert ledger[0] == 100 - sum(shares.values())
        assert all(ledger[i] == 100 + s for i, s in shares.items())
    else:
        with pytest.raises(Refused):
            ledger.distribute(0, shares)
        assert ledger.balances == before


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_who_leaves_takes_along_what_it_has(amounts: list[int]) -> None:
    ledger = Ledger()
    for i, amount in enumerate(amounts):
        ledger.open(i, amount)
    assert ledger.circulating == sum(amounts) == -ledger[OUTSIDE]
    assert ledger.close(0) == amounts[0]
    assert ledger.circulating == sum(amounts[1:]) == -ledger[OUTSIDE]
    with pytest.raises(KeyError):
        ledger.transfer(OUTSIDE, 0, 1)


def test_an_account_is_opened_once() -> None:
    with pytest.raises(ValueError, match="already"):
        opened().open(2)

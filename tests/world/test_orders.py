"""The order book against what must hold of any order book, and its call price against a search of all prices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.world.orders import Book, Order, Side, call_price, demand_at, supply_at, surplus

sides: st.SearchStrategy[Side] = st.sampled_from(("buy", "sell"))
limits = st.tuples(st.integers(0, 5), sides, st.integers(0, 30), st.integers(1, 9))
flow = st.lists(st.one_of(limits, st.tuples(st.just("cancel"), st.integers(0, 40))), max_size=50)


def check(book: Book) -> None:
    assert not book.crossed
    assert [o.price for o in book.bids] == sorted((o.price for o in book.bids), reverse=True)
    assert [o.price for o in book.asks] == sorted(o.price for o in book.asks)
    for side in (book.bids, book.asks):
        assert all(o.amount > 0 for o in side)
        for a, b in zip(side, side[1:], strict=False):
            assert a.price != b.price or a.id < b.id, "first come, first served at a price"


@given(flow)
def test_whatever_comes_it_is_never_crossed_and_no_unit_is_lost(orders: list[tuple[object, ...]]) -> None:
    book = Book()
    wanted = {"buy": 0, "sell": 0}
    traded = 0
    for one in orders:
        if one[0] == "cancel":
            gone = book.cancel(int(str(one[1])))
            if gone is not None:
                wanted[gone.side] -= gone.amount
                assert book.cancel(gone.id) is None, "cancelling twice is cancelling once"
            continue
        trader, side, price, amount = one
        mine = sum(o.amount for o in book.of(int(str(trader))) if o.side != side)
        order, fills = book.submit(int(str(trader)), side, int(str(amount)), int(str(price)))  # type: ignore[arg-type]
        wanted[str(side)] += int(str(amount))
        wanted["sell" if side == "buy" else "buy"] -= mine - sum(
            o.amount for o in book.of(int(str(trader))) if o.side != side
        )
        for fill in fills:
            traded += fill.amount
            assert fill.buyer != fill.seller
            assert fill.price <= int(str(price)) if side == "buy" else fill.price >= int(str(price))
            assert fill.maker != side
        assert order.amount + sum(f.amount for f in fills) == amount
        check(book)
    assert wanted["buy"] == traded + sum(o.amount for o in book.bids)
    assert wanted["sell"] == traded + sum(o.amount for o in book.asks)


@given(st.lists(limits, max_size=30), sides, st.integers(1, 60))
def test_a_market_order_takes_what_there_is_best_price_first(orders: list[tuple], side: Side, amount: int) -> None:
    book = Book()
    for trader, way, price, units in orders:
        book.submit(trader, way, units, price)
    others = book.asks if side == "buy" else book.bids
    there = sum(o.amount for o in others)
    order, fills = book.submit(99, side, amount)
    assert sum(f.amount for f in fills) == min(amount, there)
    prices = [f.price for f in fills]
    assert prices == sorted(prices, reverse=side == "sell")
    assert not book.of(99), "what is left of it vanishes"
    check(book)
    assert order.amount == max(0, amount - there)


def test_first_come_first_served_at_a_price() -> None:
    book = Book()
    first, _ = book.submit(1, "sell", 5, 10)
    second, _ = book.submit(2, "sell", 5, 10)
    _, fills = book.submit(3, "buy", 7, 12)
    assert [(f.sell, f.amount, f.price) for f in fills] == [(first.id, 5, 10), (second.id, 2, 10)]


def test_nobody_trades_with_itself() -> None:
    book = Book()
    book.submit(1, "sell", 5, 10)
    book.submit(2, "sell", 5, 11)
    _, fills = book.submit(1, "buy", 3, 12)
    assert [(f.seller, f.price) for f in fills] == [(2, 11)]
    assert [o.trader for o in book.asks] == [2]


def gathered(orders: list[tuple[int, Side, int, int]]) -> Book:
    book = Book()
    for trader, side, price, amount in orders:
        book.place(trader, side, price, amount)
    return book


@given(st.lists(limits, max_size=25), st.integers(0, 30), st.integers(0, 30))
def test_the_call_price_trades_as_much_as_any(orders: list[tuple], a: int, b: int) -> None:
    """Against a search of every whole price in the range."""
    low, high = sorted((a, b))
    book = gathered(orders)

    def volume(price: int) -> int:
        wanted = sum(o.amount for o in book.bids if o.price >= price)
        return min(wanted, sum(o.amount for o in book.asks if o.price <= price))

    most = max(volume(p) for p in range(low, high + 1))
    price, traded = call_price(book.bids, book.asks, low, high, reference=15)
    assert traded == most
    assert (price is None) == (most == 0)
    if price is not None:
        assert low <= price <= high and volume(price) == most


@given(st.lists(limits, max_size=25))
def test_a_call_serves_by_price_then_by_arrival(orders: list[tuple]) -> None:
    book = gathered(orders)
    before = {o.id: replace(o) for side in (book.bids, book.asks) for o in side}
    price, fills = book.call(reference=15)
    assert len({f.price for f in fills} | ({price} if fills else set())) <= 1
    got: dict[int, int] = {}
    for f in fills:
        assert before[f.buy].price >= f.price >= before[f.sell].price, "within both limits"
        got[f.buy] = got.get(f.buy, 0) + f.amount
        got[f.sell] = got.get(f.sell, 0) + f.amount
    for side in ("buy", "sell"):
        queue = sorted((o for o in before.values() if o.side == side), key=lambda o: _rank(o))
        served = [got.get(o.id, 0) == o.amount for o in queue]
        last = max((i for i, o in enumerate(queue) if got.get(o.id)), default=-1)
        assert all(served[: max(last, 0)]), "nobody behind is served before who comes first has all it wants"
    left = {o.id: o.amount for s in (book.bids, book.asks) for o in s}
    assert all(left.get(i, 0) + got.get(i, 0) == o.amount for i, o in before.items())


def _rank(order: Order) -> tuple[int, int]:
    return (-order.price if order.side == "buy" else order.price, order.id)


def test_among_equal_volumes_the_smallest_surplus_then_the_nearest() -> None:
    book = gathered([(1, "buy", 10, 5), (2, "sell", 6, 5)])
    assert call_price(book.bids, book.asks, reference=8) == (8, 5)
    assert call_price(book.bids, book.asks, reference=100) == (10, 5)
    assert call_price(book.bids, book.asks, reference=0) == (6, 5)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=20), st.integers(0, 31))
def test_demand_and_supply_at_a_price(orders: list[tuple[int, int]], price: int) -> None:
    table = np.array(orders, dtype=np.int64).reshape(-1, 2)
    at = np.array([price])
    assert demand_at(table, at)[0] == sum(n for p, n in orders if p >= price)
    assert supply_at(table, at)[0] == sum(n for p, n in orders if p <= price)


@pytest.mark.parametrize(("amount", "price"), [(0, 5), (-1, 5), (1, -1)])
def test_orders_for_nothing_are_errors(amount: int, price: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        Book().submit(1, "buy", amount, price)


@given(st.lists(st.integers(0, 50), max_size=6), st.lists(st.integers(0, 50), max_size=6))
def test_the_surplus_is_the_best_there_is(values: list[int], costs: list[int]) -> None:
    """Against all ways to let the k highest values meet the k lowest costs."""
    most = min(len(values), len(costs))
    ways = [sum(sorted(values)[::-1][:k]) - sum(sorted(costs)[:k]) for k in range(most + 1)]
    assert surplus(values, costs) == max(ways)

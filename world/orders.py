"""An order book: a continuous double auction with price-time priority, and a call auction.

Prices are whole ticks of money, amounts whole units, so that nothing is lost to rounding. The book knows no traders'
purses: what it returns are `Fill`s, which a world settles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Side = Literal["buy", "sell"]


@dataclass(slots=True)
class Order:
    """An order, or what is left of it."""

    id: int
    trader: int
    side: Side
    price: int
    """The limit: at most for a buyer, at least for a seller."""
    amount: int
    """Units still wanted."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A trade between two orders."""

    buy: int
    sell: int
    """Ids of the orders."""
    buyer: int
    seller: int
    price: int
    amount: int
    maker: Side
    """Whose order was there first and set the price; in a call auction the seller's, by convention."""


@dataclass(slots=True)
class Book:
    """Resting orders. Bids come highest first, asks lowest first, at one price whoever came first."""

    bids: list[Order] = field(default_factory=list)
    asks: list[Order] = field(default_factory=list)
    next_id: int = 0

    @property
    def best_bid(self) -> int | None:
        return self.bids[0].price if self.bids else None

    @property
    def best_ask(self) -> int | None:
        return self.asks[0].price if self.asks else None

    @property
    def crossed(self) -> bool:
        """Whether somebody would pay at least what somebody asks: never, after matching."""
        return bool(self.bids and self.asks and self.bids[0].price >= self.asks[0].price)

    def of(self, trader: int) -> list[Order]:
        """A trader's resting orders, bids first."""
        return [o for side in (self.bids, self.asks) for o in side if o.trader == trader]

    def place(self, trader: int, side: Side, price: int, amount: int) -> Order:
        """Let an order rest in the book without matching it: what a call auction gathers."""
        order = self._made(trader, side, price, amount)
        self._rest(order)
        return order

    def submit(self, trader: int, side: Side, amount: int, limit: int | None = None) -> tuple[Order, list[Fill]]:
        """Match an order against the book at the prices of those who came first; what is left of it rests.

        `limit` None is a market order: it takes what there is, and what is left of it vanishes. Nobody trades with
        itself: its own resting orders on the other side that would match are cancelled first.
        """
        worst = limit if limit is not None else (2**62 if side == "buy" else 0)
        order = self._made(trader, side, worst, amount)
        others = self.asks if side == "buy" else self.bids
        others[:] = [o for o in others if o.trader != trader or not _meets(order, o)]
        fills = []
        while order.amount and others and _meets(order, others[0]):
            fills.append(self._fill(order, others[0]))
            if not others[0].amount:
                others.pop(0)
        if order.amount and limit is not None:
            self._rest(order)
        return order, fills

    def cancel(self, order: int) -> Order | None:
        """Take an order out of the book and return it; None if it is not there (any more): twice is once."""
        for side in (self.bids, self.asks):
            for position, resting in enumerate(side):
                if resting.id == order:
                    return side.pop(position)
        return None

    def cancel_all(self, trader: int | None = None) -> list[Order]:
        """Take all orders out, or all of one trader."""
        gone = [o for side in (self.bids, self.asks) for o in side if trader is None or o.trader == trader]
        for side in (self.bids, self.asks):
            side[:] = [o for o in side if trader is not None and o.trader != trader]
        return gone

    def call(self, low: int = 0, high: int = 2**62, reference: int = 0) -> tuple[int | None, list[Fill]]:
        """Clear the whole book at one price, the one that trades most (`call_price`); the rest stays in the book.

        Orders are served by price, then by arrival. Returns (price, fills); (None, []) if nothing can trade.
        """
        price, volume = call_price(self.bids, self.asks, low, high, reference)
        if price is None:
            return None, []
        fills = []
        while volume:
            buy, sell = self.bids[0], self.asks[0]
            amount = min(buy.amount, sell.amount, volume)
            fills.append(Fill(buy.id, sell.id, buy.trader, sell.trader, price, amount, "sell"))
            volume -= amount
            for order, side in ((buy, self.bids), (sell, self.asks)):
                order.amount -= amount
                if not order.amount:
                    side.pop(0)
        return price, fills

    def _made(self, trader: int, side: Side, price: int, amount: int) -> Order:
        if amount < 1 or price < 0:
            raise ValueError("an order is for at least one unit, at a price of at least 0")
        self.next_id += 1
        return Order(self.next_id - 1, trader, side, price, amount)

    def _rest(self, order: Order) -> None:
        side = self.bids if order.side == "buy" else self.asks
        sign = -1 if order.side == "buy" else 1
        position = next((i for i, o in enumerate(side) if sign * o.price > sign * order.price), len(side))
        side.insert(position, order)

    def _fill(self, taker: Order, maker: Order) -> Fill:
        amount = min(taker.amount, maker.amount)
        taker.amount -= amount
        maker.amount -= amount
        buy, sell = (taker, maker) if taker.side == "buy" else (maker, taker)
        return Fill(buy.id, sell.id, buy.trader, sell.trader, maker.price, amount, maker.side)


def _meets(taker: Order, maker: Order) -> bool:
    return taker.price >= maker.price if taker.side == "buy" else taker.price <= maker.price


def call_price(
    bids: Iterable[Order], asks: Iterable[Order], low: int = 0, high: int = 2**62, reference: int = 0
) -> tuple[int | None, int]:
    """(price, volume) that trades most within [low, high]; (None, 0) if nothing can trade.

    Among prices of the same volume the one that leaves the smallest surplus on one side, then the one nearest to
    `reference`, then the lowest. Only limits and the ends of the range can be such prices, or the reference itself.
    """
    buy = np.array([(o.price, o.amount) for o in bids], dtype=np.int64).reshape(-1, 2)
    sell = np.array([(o.price, o.amount) for o in asks], dtype=np.int64).reshape(-1, 2)
    if not len(buy) or not len(sell):
        return None, 0
    tried = np.unique(np.clip(np.concatenate([buy[:, 0], sell[:, 0], [reference]]), low, high))
    demand, supply = demand_at(buy, tried), supply_at(sell, tried)
    volume = np.minimum(demand, supply)
    if not volume.max():
        return None, 0
    best = np.lexsort((tried, np.abs(tried - reference), np.abs(demand - supply), -volume))[0]
    return int(tried[best]), int(volume[best])


def demand_at(bids: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Units wanted at each of `prices`; `bids` is (n, 2): limit, amount."""
    return _above(bids, prices)


def supply_at(asks: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Units offered at each of `prices`; `asks` is (n, 2): limit, amount."""
    return _above(asks * np.array([-1, 1]), -prices)


def _above(orders: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Sum of the amounts of all orders whose limit is at least each price."""
    order = np.argsort(orders[:, 0], kind="stable")
    limits, amounts = orders[order, 0], orders[order, 1]
    before = np.concatenate([[0], np.cumsum(amounts)])
    total: np.ndarray = before[-1] - before[np.searchsorted(limits, prices, side="left")]
    return total


def surplus(values: Sequence[int], costs: Sequence[int]) -> int:
    """The largest gain from trade among buyers' values and sellers' costs of one unit each.

    >>> surplus([10, 8, 3], [2, 7, 9])
    9
    """
    best = zip(sorted(values, reverse=True), sorted(costs), strict=False)
    return sum(v - c for v, c in best if v > c)


__all__ = ["Book", "Fill", "Order", "Side", "call_price", "demand_at", "supply_at", "surplus"]

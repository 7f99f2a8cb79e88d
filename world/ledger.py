"""A double-entry ledger: nothing is gained that is not lost elsewhere.

A world's state holds one `Ledger` per quantity. Its accounts belong to members, by id; all that comes into the world
or leaves it is a transfer from or to `OUTSIDE`, whose balance is minus what is in circulation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum, isfinite

from ethnos.errors import Refused

OUTSIDE = -1
"""The account of the rest of the universe: the only one that may be overdrawn."""


@dataclass(slots=True)
class Ledger:
    """Balances by account, in the ledger's own unit. The sum over all accounts is 0, `OUTSIDE` included."""

    balances: dict[int, float] = field(default_factory=lambda: {OUTSIDE: 0.0})

    def open(self, account: int, amount: float = 0.0) -> None:
        """Open an account, with `amount` from outside. Raises ValueError if there is one already."""
        if account in self.balances:
            raise ValueError(f"there is an account {account} already")
        self.balances[account] = 0.0
        self.transfer(OUTSIDE, account, amount)

    def close(self, account: int) -> float:
        """Close an account and return what was in it, which leaves the world."""
        left = self.balances[account]
        self.transfer(account, OUTSIDE, left)
        del self.balances[account]
        return left

    def __getitem__(self, account: int) -> float:
        return self.balances[account]

    def transfer(self, source: int, target: int, amount: float) -> None:
        """Move `amount` of at least 0. Raises Refused if the source does not have it; then nothing has moved."""
        if not (isfinite(amount) and amount >= 0):
            raise Refused(f"{amount} is no amount")
        held = self.balances[source]
        if source != OUTSIDE and amount > held:
            raise Refused(f"{amount:.6g} is more than there is: {held:.6g}")
        self.balances[source] = held - amount
        self.balances[target] += amount

    def distribute(self, source: int, shares: Mapping[int, float]) -> None:
        """Several transfers from one account: all of them, or none. Raises Refused."""
        total = fsum(shares.values())
        if source != OUTSIDE and total > self.balances[source]:
            raise Refused(f"{total:.6g} is more than there is: {self.balances[source]:.6g}")
        if any(not (isfinite(amount) and amount >= 0) for amount in shares.values()):
            raise Refused("a share that is no amount")
        for target, amount in shares.items():
            # what rounding in the sum above leaves over must not fail half-way
            self.transfer(source, target, amount if source == OUTSIDE else min(amount, self.balances[source]))

    @property
    def circulating(self) -> float:
        """What all members have together, by adding it up: a check on what flowed in and out."""
        return fsum(amount for account, amount in self.balances.items() if account != OUTSIDE)

    def accounts(self) -> Iterable[int]:
        """The members' accounts, in the order in which they were opened."""
        return (account for account in self.balances if account != OUTSIDE)


__all__ = ["OUTSIDE", "Ledger"]

"""What a run may spend on models, and what it has spent."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ethnos.actors.inference.engines.base import Answer, Prices
from ethnos.actors.inference.request import Request

TOKENS_PER_CHARACTER = 0.35
"""A first guess; how long a model's tokens really are is learned from its answers."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; None: no limit."""

    tokens: int | None = None
    money: float | None = None
    wall_s: float | None = None


@dataclass(slots=True)
class Spent:
    """What a run has spent. A resumed run starts with what it had spent before."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    wall_s: float = 0.0
    exhausted: str = ""
    """`tokens`, `money` or `wall time` once that is spent."""

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a request may come to."""

    tokens: float = 0.0
    money: float = 0.0


class Ledger:
    """Keeps a run inside its budget: what is in flight counts as if it came to its most.

    One for all pools of a society, so that none of them spends what another one has set aside.
    """

    def __init__(self, budget: Budget = Budget(), spent: Spent | None = None) -> None:  # noqa: B008 (frozen)
        """`spent` is what the run had spent before."""
        self.spent = spent or Spent()
        self._budget = budget
        self._reserved_tokens = 0.0
        self._reserved_money = 0.0
        self._open = 0
        self._started: float | None = None
        self._freed: list[Callable[[], None]] = []
        self._ratio = TOKENS_PER_CHARACTER

    def open(self, now: float, freed: Callable[[], None]) -> None:
        """A pool begins to work at `now`, and is told when something that was set aside becomes free."""
        if self._started is None:
            self._started = now - self.spent.wall_s
        self._freed.append(freed)

    def estimate(self, request: Request, prices: Prices) -> Estimate:
        if self._budget.tokens is None and self._budget.money is None:
            return Estimate()
        prompt = sum(len(layer.text) for layer in request.layers) * self._ratio
        most = request.sampling.max_tokens
        return Estimate(prompt + most, prices.most(prompt, most))

    def allows(self, estimate: Estimate) -> bool:
        """Whether it may start now. What cannot be known to fit goes alone, so a run ends close to its budget."""
        if self.spent.exhausted:
            return False
        return self._open == 0 or self._fits(estimate)

    def reserve(self, estimate: Estimate) -> None:
        self._open += 1
        self._reserved_tokens += estimate.tokens
        self._reserved_money += estimate.money

    def release(self, estimate: Estimate) -> None:
        self._open -= 1
        self._reserved_tokens -= estimate.tokens
        self._reserved_money -= estimate.money
        for freed in self._freed:
            freed()

    def pay(self, answer: Answer, cost: float, characters: int = 0) -> None:
        """Enter what an answer cost; `characters` of its prompt teach the length of a token."""
        spent = self.spent
        spent.prompt_tokens += answer.prompt_tokens
        spent.cached_tokens += answer.cached_tokens
        spent.completion_tokens += answer.completion_tokens
        spent.money += cost
        if characters and answer.prompt_tokens:
            self._ratio += 0.1 * (answer.prompt_tokens / characters - self._ratio)
        self._check()

    def tick(self, now: float) -> None:
        """Let time pass."""
        if self._started is not None:
            self.spent.wall_s = now - self._started
        self._check()

    def used_up(self) -> str:
        """The limit that was reached, in words; empty if there is none."""
        spent, budget = self.spent, self._budget
        limits = {
            "tokens": f"{spent.tokens:,} of {budget.tokens or 0:,} tokens",
            "money": f"{spent.money:,.2f} of {budget.money or 0:,.2f}",
            "wall time": f"{spent.wall_s:,.0f} of {budget.wall_s or 0:,.0f} seconds",
        }
        return limits.get(spent.exhausted, "")

    def wall_left(self, now: float) -> float | None:
        """Seconds until the wall time is spent; None if it has no limit or has not begun."""
        if self._budget.wall_s is None or self._started is None:
            return None
        return self._started + self._budget.wall_s - now

    def _fits(self, estimate: Estimate) -> bool:
        tokens, money = self._budget.tokens, self._budget.money
        if tokens is not None and self.spent.tokens + self._reserved_tokens + estimate.tokens > tokens:
            return False
        return money is None or self.spent.money + self._reserved_money + estimate.money <= money

    def _check(self) -> None:
        spent, budget = self.spent, self._budget
        if budget.tokens is not None and spent.tokens >= budget.tokens:
            spent.exhausted = spent.exhausted or "tokens"
        if budget.money is not None and spent.money >= budget.money:
            spent.exhausted = spent.exhausted or "money"
        if budget.wall_s is not None and spent.wall_s >= budget.wall_s:
            spent.exhausted = spent.exhausted or "wall time"

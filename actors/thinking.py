"""The models of one society: a pool for each, behind one budget."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from ethnos.actors.inference.budget import Budget, Spent
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.inference.specs import EngineSpec
from ethnos.errors import OutOfBudget
from ethnos.record.directory import RunDirectory
from ethnos.society import Society


class Models:
    """Answers requests to any of a society's models. `async with Models(society) as models: ...`"""

    def __init__(self, society: Society, spent: Spent | None = None) -> None:
        """`spent` is what the run had spent before."""
        limits = society.budget
        self._before = spent or Spent()
        self._budget = Budget(limits.tokens, limits.money, limits.wall_s)
        self._pools = {name: _pool(name, specs, self._budget) for name, specs in society.models.items()}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect to the engines; starts those that are ours to start."""
        for pool in self._pools.values():
            await self._stack.enter_async_context(pool)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def ask(self, model: str, request: Request) -> Reply:
        """The answer to a request, or a reply that says why there is none. Raises OutOfBudget."""
        if used := self._used_up():
            raise OutOfBudget(f"the budget is spent: {used}; raise it with --set and resume")
        reply = await self._pools[model].complete(request)
        if reply.error == "budget":
            raise OutOfBudget(f"the budget is spent: {self._used_up() or 'no more requests fit in it'}")
        return reply

    def _used_up(self) -> str:
        """Which limit was reached, all models together and what was spent before included."""
        spent = [self._before, *(pool.spent for pool in self._pools.values())]
        tokens, money = sum(s.tokens for s in spent), sum(s.money for s in spent)
        wall = self._before.wall_s + max((pool.spent.wall_s for pool in self._pools.values()), default=0.0)
        limits = self._budget
        if limits.tokens is not None and tokens >= limits.tokens:
            return f"{tokens:,} of {limits.tokens:,} tokens"
        if limits.money is not None and money >= limits.money:
            return f"{money:,.2f} of {limits.money:,.2f}"
        if limits.wall_s is not None and wall >= limits.wall_s:
            return f"{wall:,.0f} of {limits.wall_s:,.0f} seconds"
        return ""

    def special_tokens(self) -> dict[str, list[str]]:
        """For each model the texts that it takes for its own."""
        return {name: sorted(pool.special_tokens()) for name, pool in self._pools.items()}

    def stats(self) -> dict[str, Any]:
        """Figures of each pool, as plain data."""
        return {name: pool.stats() for name, pool in self._pools.items()}


def _pool(name: str, specs: Sequence[EngineSpec], budget: Budget) -> Pool:
    """The engines that serve one model. Raises EthnosError if one needs what is not installed."""
    from ethnos.actors.inference.engines.make import make_engines

    named = [spec.model_copy(update={"name": spec.name or f"{name}-{i}"}) for i, spec in enumerate(specs)]
    return Pool(make_engines(named), budget=budget)


def spent_before(run: RunDirectory) -> Spent:
    """What a run has on its record as spent on models."""
    from ethnos.record.reader import connect

    with connect(run) as con:
        row = con.sql(
            "SELECT sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(cost) FROM calls"
        ).fetchall()[0]
        wall = con.sql("SELECT sum(elapsed) / 1000 FROM ticks").fetchall()[0][0]
    prompt, cached, completion, money = (v or 0 for v in row)
    return Spent(int(prompt), int(cached), int(completion), float(money), float(wall or 0.0))

"""The models of one society: a pool for each, behind one budget."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Self

from ethnos.actors.inference.budget import Budget, Ledger, Spent
from ethnos.actors.inference.engines.make import make_engines
from ethnos.actors.inference.engines.managed import Serve, serve_here
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Reply, Request
from ethnos.engines import EngineSpec
from ethnos.errors import OutOfBudget
from ethnos.record.directory import RunDirectory
from ethnos.society import Society


class Models:
    """Answers requests to any of a society's models. `async with Models(society) as models: ...`"""

    def __init__(self, society: Society, spent: Spent | None = None, serve: Serve = serve_here) -> None:
        """`spent` is what the run had spent before; `serve` looks after the servers that are ours to start."""
        limits = society.budget
        self._ledger = Ledger(Budget(limits.tokens, limits.money, limits.wall_s), spent)
        self._pools = {n: Pool(make_engines(specs, serve), ledger=self._ledger) for n, specs in engines(society)}
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
        reply = await self._pools[model].complete(request)
        if reply.error == "budget":
            used = self._ledger.used_up() or "no more requests fit in it"
            raise OutOfBudget(f"the budget is spent: {used}; raise it with --set and resume")
        return reply

    def special_tokens(self) -> dict[str, list[str]]:
        """For each model the texts that it takes for its own."""
        return {name: sorted(pool.special_tokens()) for name, pool in self._pools.items()}

    def stats(self) -> dict[str, Any]:
        """Figures of each pool, as plain data."""
        return {name: pool.stats() for name, pool in self._pools.items()}


def engines(society: Society) -> Iterator[tuple[str, list[EngineSpec]]]:
    """Each model of a society with the engines that serve it, by the names that they have in the record."""
    for model, specs in society.models.items():
        yield model, [s.model_copy(update={"name": s.name or f"{model}-{i}"}) for i, s in enumerate(specs)]


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

"""An engine without a model: it answers at once, or after a delay, and fails when told to."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ethnos.actors.inference.engines.base import Answer, Call, Deliver, Prices, Traits, Trouble, Unreachable
from ethnos.actors.inference.request import Layer, Request, Sampling


@dataclass(eq=False)
class Stub:
    """Answers `to <request id>`. What happened to it is kept for tests to look at."""

    name: str = "stub"
    model: str = "stub-model"
    traits: Traits = Traits(batch=16, limit=16, max_limit=64)
    prices: Prices = Prices()
    delay: Callable[[Request], float] | None = None
    fault: Callable[["Stub", Request], Trouble | None] = lambda stub, request: None
    """Asked for every request of a call; what it gives is raised for the whole call."""
    alive: bool = True
    cached: int = 0
    asked: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    warmed: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    revived: int = 0
    at_work: int = 0
    peak: int = 0

    async def start(self) -> None:
        if not self.alive:
            raise Unreachable("nobody there")

    async def close(self) -> None:
        self.alive = False

    async def healthy(self) -> bool:
        return self.alive

    async def revive(self) -> None:
        self.revived += 1

    def special_tokens(self) -> frozenset[str]:
        return frozenset({"<|stub|>"})

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        self.calls.append([call.request.id for call in calls])
        self.asked += self.calls[-1]
        self.at_work += len(calls)
        self.peak = max(self.peak, self.at_work)
        try:
            for call in calls:
                if not self.alive:
                    raise Unreachable("nobody there")
                if (trouble := self.fault(self, call.request)) is not None:
                    raise trouble
            if self.delay is None:
                for call in calls:
                    self._serve(call, deliver)
            else:
                await asyncio.gather(*(self._slowly(call, deliver) for call in calls))
        finally:
            self.at_work -= len(calls)

    async def warm(self, request: Request) -> Answer:
        self.warmed.append(request.head)
        await asyncio.sleep(0)
        return Answer("", prompt_tokens=5, completion_tokens=1)

    async def abort(self, rids: Sequence[str]) -> None:
        self.aborted += rids

    async def _slowly(self, call: Call, deliver: Deliver) -> None:
        assert self.delay is not None
        await asyncio.sleep(self.delay(call.request))
        self._serve(call, deliver)

    def _serve(self, call: Call, deliver: Deliver) -> None:
        self.served.append(call.request.id)
        deliver(call.rid, Answer(f"to {call.request.id}", "stop", "", 100, self.cached, 10))


def ask(
    agent: int = 0, tick: int = 0, call: int = 0, *, head: str = "rules of the world", deadline: float = 20.0,
    priority: int = 0, most: int = 20, schema: dict | None = None, seed: int | None = None,
) -> Request:  # fmt: skip
    """A request of an agent. Its id stands in its observation, so that an answer shows whose it is."""
    layers = (
        Layer("rules", head),
        Layer("persona", f"You are agent {agent}."),
        Layer("observation", f"asked={tick}-{agent}-{call};", "user"),
    )
    return Request(tick, agent, call, layers, schema, Sampling(0.7, 1.0, most, seed), deadline, priority)

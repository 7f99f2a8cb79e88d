"""What the inference pool itself costs: no model, 1,000 agents.

    python bench/pool.py

Three engines that are none: one that answers at once in batches of 128, one that answers at once one by one, and one
that takes 50 ms to 5 s at random. For each: decisions a second, the platform's CPU time per decision, how much of the
engine's room stood empty while work was ready, and how memory grows from the first ticks to the last. Set against each
other are the CPU time of the process and the decisions, so that waiting for the engine costs nothing.
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from ethnos.actors.inference.engines.base import Answer, Call, Deliver, Prices, Traits
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Layer, Request, Sampling
from ethnos.actors.inference.settings import Settings
from ethnos.chance import uniforms

RULES = "You live on a grid of cells. Food grows, agents trade, and whoever starves dies. " * 30
"""About 600 tokens, the same for all."""
HISTORY = "You went north and found nothing; agent 12 gave you two food and asked for wood in return. " * 20
SCHEMA = {"type": "object", "properties": {"action": {"enum": ["eat", "move", "rest"]}}, "required": ["action"]}


class NoModel:
    """Answers after a delay."""

    model = "none"
    prices = Prices(1.0, 0.1, 2.0)

    def __init__(self, traits: Traits, delay: Callable[[Request], float] | None) -> None:
        self.name = "none"
        self.traits = traits
        self._delay = delay

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def revive(self) -> None: ...

    async def abort(self, rids: Sequence[str]) -> None: ...

    async def healthy(self) -> bool:
        return True

    def special_tokens(self) -> frozenset[str]:
        return frozenset()

    async def warm(self, request: Request) -> Answer:
        return Answer("")

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        if self._delay is None:
            for call in calls:
                deliver(call.rid, Answer('{"action": "eat"}', "stop", "", 1200, 700, 12))
            return
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        left = len(calls)

        def land(call: Call) -> None:
            nonlocal left
            deliver(call.rid, Answer('{"action": "eat"}', "stop", "", 1200, 700, 12))
            left -= 1
            if not left:
                done.set_result(None)

        for call in calls:
            loop.call_later(self._delay(call.request), land, call)
        await done


def at_random(agents: int) -> Callable[[Request], float]:
    """50 ms to 5 s, mostly short, as models' answers are."""
    draws: dict[int, Any] = {}

    def delay(request: Request) -> float:
        if request.tick not in draws:
            draws[request.tick] = uniforms(0, "bench delay", range(agents), tick=request.tick)
        return float(0.05 * 100 ** draws[request.tick][request.agent_id])

    return delay


def ask(agent: int, tick: int) -> Request:
    layers = (
        Layer("rules", RULES),
        Layer("cohort", "You are one of the founders."),
        Layer("persona", f"You are agent {agent}, patient and curious."),
        Layer("history", f"{HISTORY}{tick}"),
        Layer("observation", f"Tick {tick}: food lies to the north.", "user"),
    )
    return Request(tick, agent, 0, layers, SCHEMA, Sampling(seed=agent), 600.0)


async def measure(title: str, engine: NoModel, agents: int, ticks: int) -> dict[str, Any]:
    process = psutil.Process()
    memory: list[float] = []
    ready: list[list[Request]] = []
    async with Pool([engine], settings=Settings(memo_replies=5000)) as pool:
        cpu = wall = 0.0
        for tick in range(ticks):
            ready = [[ask(agent, tick) for agent in range(agents)]]
            began, used = time.perf_counter(), time.process_time()
            replies = await pool.complete_many(ready[0])
            wall += time.perf_counter() - began
            cpu += time.process_time() - used
            assert not any(r.error for r in replies)
            gc.collect()
            memory.append(process.memory_info().rss / 1e6)
        decisions = agents * ticks
        return {
            "engine": title, "agents": agents, "decisions": decisions, "decisions_per_s": round(decisions / wall),
            "platform_ms_per_decision": round(1000 * cpu / decisions, 4),
            "idle_share": round(pool.stats()["idle_share"], 4), "calls": pool.stats()["engines"]["none"]["calls"],
            "memory_mb": [round(memory[len(memory) // 4]), round(memory[-1])],
        }  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=60, help="for the engines that answer at once")
    parser.add_argument("--slow-ticks", type=int, default=4, help="for the engine that takes its time")
    given = parser.parse_args()
    n = given.agents
    batches, singles = Traits(128, 256, 1024, warms=True), Traits(1, 64, 256)
    runs = [
        ("at once, in batches of 128", NoModel(batches, None), given.ticks),
        ("at once, one by one", NoModel(singles, None), given.ticks),
        ("50 ms to 5 s, 256 in flight", NoModel(Traits(128, 256, 256), at_random(n)), given.slow_ticks),
    ]
    for title, engine, ticks in runs:
        print(json.dumps(await measure(title, engine, n, ticks)))


if __name__ == "__main__":
    asyncio.run(main())

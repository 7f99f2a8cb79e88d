"""Shared beginnings are read before the wave.

An engine that caches prefixes shares nothing inside a batch: a hundred agents with the same rules, sent together, have
them read a hundred times. So each new head goes first, once, in a request of one token.
"""

import asyncio
import logging
from collections.abc import Callable

from ethnos.actors.inference.engines.base import Answer, Trouble
from ethnos.actors.inference.job import Flight, Job
from ethnos.actors.inference.lane import Lane
from ethnos.actors.inference.request import Request
from ethnos.actors.inference.tasks import Tasks

log = logging.getLogger(__name__)

SHORT = 64
"""Tokens of a prompt below which nothing cached means nothing."""
GIVE_UP = 5
"""Heads read in vain, one after the other, after which an engine is not warmed any more: it caches nothing."""

Pay = Callable[[Lane, Answer], float]


class Warmth:
    """Warms the engines of a pool."""

    def __init__(self, timeout_s: float, tasks: Tasks, pay: Pay) -> None:
        self._timeout_s = timeout_s
        self._tasks = tasks
        self._pay = pay

    async def prepare(self, flight: Flight) -> None:
        """Returns when the engine has read the heads of a flight that others share."""
        lane = flight.lane
        by_head: dict[str, list[Job]] = {}
        for job in flight.jobs.values():
            by_head.setdefault(job.head, []).append(job)
        for head, jobs in by_head.items():
            if head and head not in lane.heads and len(jobs) + len(lane.waiting) > 1 and lane.in_vain < GIVE_UP:
                lane.remember(head, self._tasks.run(self._read(lane, head, jobs[0].request)))
            if (task := lane.heads.get(head)) is not None:
                await asyncio.shield(task)
            if head in lane.heads:
                flight.warm.add(head)

    def learn(self, flight: Flight, head: str, answer: Answer) -> None:
        """Learn from an answer whether its head is in the engine's cache."""
        lane = flight.lane
        if not head or not lane.engine.traits.warms:
            return
        if answer.cached_tokens:
            lane.in_vain = 0
        if head not in flight.warm:
            lane.remember(head, lane.heads.get(head))
        elif answer.cached_tokens == 0 and answer.prompt_tokens > SHORT and lane.heads.pop(head, self) is None:
            lane.in_vain += 1

    async def _read(self, lane: Lane, head: str, request: Request) -> None:
        """Never fails: if it was no use, the wave will tell."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await lane.engine.warm(request)
        except (Trouble, TimeoutError) as error:
            log.info("warm-up of %s: %s", lane.name, error or "timed out")
            lane.heads.pop(head, None)
            return
        lane.counts.warmups += 1
        self._pay(lane, answer)
        if head in lane.heads:
            lane.heads[head] = None

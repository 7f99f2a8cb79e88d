"""A request on its way through the pool."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ethnos.actors.inference.budget import Estimate
from ethnos.actors.inference.engines.base import Call
from ethnos.actors.inference.request import Reply, Request

if TYPE_CHECKING:
    from ethnos.actors.inference.lane import Lane
    from ethnos.actors.inference.waiting import Waiting

Key = tuple[str, bytes]


@dataclass(eq=False, slots=True)
class Job:
    """One request, and what has become of it so far."""

    request: Request
    key: Key
    number: int
    """In order of arrival."""
    head: str
    entered: float
    future: "asyncio.Future[Reply]"
    waiters: int = 0
    attempts: int = 0
    """Calls of an engine made for it."""
    failures: int = 0
    """Of those, the ones that count against it."""
    last_trouble: str = ""
    last_engine: str = ""
    excluded: set[str] = field(default_factory=set)
    """Engines that are not for it."""
    queue: "Waiting | None" = None
    estimate: Estimate = Estimate()
    timer: asyncio.TimerHandle | None = None
    flight: "Flight | None" = None
    rid: str = ""
    """Of the attempt that is under way."""

    @property
    def characters(self) -> int:
        return sum(len(layer.text) for layer in self.request.layers)


@dataclass(eq=False, slots=True)
class Flight:
    """One call of an engine, with the requests in it that are still waited for."""

    lane: "Lane"
    launched: float
    jobs: dict[str, Job] = field(default_factory=dict)
    task: "asyncio.Task[None] | None" = None
    warm: set[str] = field(default_factory=set)
    """Shared heads that its engine should have cached before."""

    def board(self, rid: str, job: Job) -> None:
        job.flight, job.rid = self, rid
        job.last_engine = self.lane.name
        self.jobs[rid] = job

    def calls(self) -> list[Call]:
        """What the engine is asked now. Who left while the call waited for its turn is not in it."""
        for job in self.jobs.values():
            job.attempts += 1
        return [Call(rid, job.request) for rid, job in self.jobs.items()]

    def leave(self, rid: str) -> Job | None:
        """Take out the job of a call; None if it has gone already, or never was here."""
        job = self.jobs.pop(rid, None)
        if job is not None:
            job.flight = None
        return job

"""The inference pool: every request of a society's minds goes through it, to whichever engine suits.

It groups what is ready by shared beginning, keeps each engine as full as it bears, waits where it is told to,
takes what is late back, goes elsewhere when an engine dies, and stops when the budget is spent. It knows nothing of
Ray and holds nothing that has to survive: the record does.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from ethnos.actors.inference.budget import Ledger, Spent
from ethnos.actors.inference.care import Care
from ethnos.actors.inference.engines.base import (
    Answer,
    Broken,
    Denied,
    Engine,
    Overloaded,
    Refused,
    Trouble,
    Unreachable,
)
from ethnos.actors.inference.job import Flight, Job, Key
from ethnos.actors.inference.lane import Lane
from ethnos.actors.inference.memo import Memo
from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.inference.routing import Routing
from ethnos.actors.inference.settings import Settings
from ethnos.actors.inference.tasks import Tasks
from ethnos.actors.inference.waiting import Waiting
from ethnos.actors.inference.warmth import Warmth
from ethnos.errors import EthnosError

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Totals:
    """What the pool has done since it began."""

    requests: int = 0
    answers: int = 0
    errors: int = 0
    late: int = 0
    over_budget: int = 0
    repeated: int = 0
    """Requests answered by an earlier or a running one with the same id."""
    retries: int = 0
    strays: int = 0
    """Answers that nobody waited for any more, or that no request belongs to."""


class Pool:
    """Answers requests. `async with Pool(engines) as pool: reply = await pool.complete(request)`."""

    def __init__(
        self,
        engines: Sequence[Engine],
        *,
        ledger: Ledger | None = None,
        settings: Settings = Settings(),  # noqa: B008 (frozen)
    ) -> None:
        """`ledger` is shared by all pools of a society; left out, there is no limit."""
        if len({e.name for e in engines}) != len(engines) or not engines:
            raise EthnosError("a pool needs engines, each with a name of its own")
        self._lanes = [Lane(engine) for engine in engines]
        self._settings = settings
        self._ledger = ledger or Ledger()
        self._tasks = Tasks()
        self._care = Care(settings, self._tasks, self._lane_changed)
        self._warmth = Warmth(settings.warm_timeout_s, self._tasks, self._pay)
        self._routing = Routing()
        self._memo = Memo(settings.memo_replies, settings.memo_bytes)
        self._jobs: dict[Key, Job] = {}
        self._totals = Totals()
        self._nonce = uuid4().hex[:8]
        self._calls = 0
        self._flights: set[Flight] = set()
        self._wake_handle: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._curfew: asyncio.TimerHandle | None = None
        self._closed = False
        self._batches = any(e.traits.batch > 1 for e in engines)

    async def start(self) -> None:
        """Connect to the engines. One that cannot be reached is tried again while the others work.

        Raises EthnosError if none of them can be reached: a run that nobody could think in should not begin.
        """
        self._loop = asyncio.get_running_loop()
        self._ledger.open(self._loop.time(), self._wake)
        for lane in self._lanes:
            lane.idle.since = self._loop.time()
        await asyncio.gather(*(self._care.connect(lane) for lane in self._lanes))
        if all(lane.down for lane in self._lanes):
            raise EthnosError("no engine answers: " + "; ".join(f"{n.name}: {n.why_down}" for n in self._lanes))
        if (left := self._ledger.wall_left(self._loop.time())) is not None:
            self._curfew = self._loop.call_later(max(left, 0.0), self._wake)

    async def close(self) -> None:
        """Stop everything. Who still waits gets the error `closed`."""
        self._closed = True
        for job in list(self._jobs.values()):
            self._give_up(job, "closed")
        self._send_aborts()
        for handle in (self._wake_handle, self._alarm, self._curfew):
            if handle is not None:
                handle.cancel()
        await self._tasks.end(grace_s=0.5)
        await self._end_flights()
        await asyncio.gather(*(lane.engine.close() for lane in self._lanes))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def complete(self, request: Request) -> Reply:
        """The answer to a request, or a reply that says why there is none. Cancelling it cancels the model's work."""
        self._totals.requests += 1
        key = (request.id, request.digest)
        if (known := self._memo.get(key)) is not None:
            self._totals.repeated += 1
            return known
        job = self._jobs.get(key)
        if job is not None:
            self._totals.repeated += 1
        elif (error := self._shut()) is not None:
            return Reply("", error=error, attempts=0)
        else:
            job = self._enter(request, key)
        return await self._wait(job)

    async def complete_many(self, requests: Iterable[Request]) -> list[Reply]:
        """The answers, in the order of the requests."""
        return await asyncio.gather(*(self.complete(request) for request in requests))

    @property
    def spent(self) -> Spent:
        """What the run has spent through all pools of its ledger; `exhausted` says which limit was reached, if any."""
        self._ledger.tick(self._loop.time())
        return self._ledger.spent

    def special_tokens(self) -> frozenset[str]:
        """Texts that some engine's model takes for its own: escape them in what agents wrote."""
        return frozenset[str]().union(*(lane.engine.special_tokens() for lane in self._lanes))

    def stats(self) -> dict[str, Any]:
        """Figures for people and dashboards, as plain data."""
        now = self._loop.time()
        self._advance(now)
        t = self._totals
        lanes = {lane.name: lane.stats(now) for lane in self._lanes}
        wanted = sum(lane.idle.wanted_s for lane in self._lanes)
        prompt = sum(lane.counts.prompt_tokens for lane in self._lanes)
        return {
            "waiting": self._backlog(), "in_flight": sum(lane.in_flight for lane in self._lanes),
            "requests": t.requests, "answers": t.answers, "errors": t.errors, "late": t.late,
            "over_budget": t.over_budget, "repeated": t.repeated, "retries": t.retries, "strays": t.strays,
            "idle_share": sum(lane.idle.empty_s for lane in self._lanes) / wanted if wanted else 0.0,
            "cached_share": sum(lane.counts.cached_tokens for lane in self._lanes) / prompt if prompt else 0.0,
            "remembered": len(self._memo), "spent": self.spent.as_dict(), "engines": lanes,
        }  # fmt: skip

    def _shut(self) -> str | None:
        """Why no request is taken, if so."""
        if self._closed:
            return "closed"
        self._ledger.tick(self._loop.time())
        if self._ledger.spent.exhausted:
            self._totals.over_budget += 1
            return "budget"
        return None

    def _enter(self, request: Request, key: Key) -> Job:
        now = self._loop.time()
        future: asyncio.Future[Reply] = self._loop.create_future()
        job = Job(request, key, self._totals.requests, request.head, now, future)
        job.timer = self._loop.call_at(now + request.deadline_s, self._late, job)
        self._jobs[key] = job
        self._advance(now)
        self._assign(job, now)
        self._wake()
        return job

    async def _wait(self, job: Job) -> Reply:
        job.waiters += 1
        try:
            return await asyncio.shield(job.future)
        finally:
            job.waiters -= 1
            if not job.waiters and not job.future.done():
                self._give_up(job, "cancelled")

    def _finish(self, job: Job, reply: Reply) -> None:
        if job.timer is not None:
            job.timer.cancel()
        del self._jobs[job.key]
        if reply.error:
            self._totals.errors += 1
        else:
            self._totals.answers += 1
            self._memo.put(job.key, reply)
        job.future.set_result(reply)

    def _fail(self, job: Job, error: str) -> None:
        detail = {"last": job.last_trouble} if job.last_trouble else {}
        latency = (self._loop.time() - job.entered) * 1000
        self._finish(
            job,
            Reply("", error, engine=job.last_engine, attempts=job.attempts, latency_ms=latency, detail=detail),
        )

    def _late(self, job: Job) -> None:
        """A deadline has come: nobody waits any more, and the engine need not go on."""
        self._totals.late += 1
        flight = job.flight
        if flight is not None:
            lane = flight.lane
            lane.counts.late += 1
            lane.take_less(flight.launched, self._loop.time())
            self._care.suspect(lane)
        self._give_up(job, "late")

    def _give_up(self, job: Job, error: str) -> None:
        self._advance(self._loop.time())
        if job.queue is not None:
            job.queue.discard(job)
        if job.flight is not None:
            self._call_back(job.flight, job)
        self._fail(job, error)
        self._wake()

    def _call_back(self, flight: Flight, job: Job) -> None:
        """Take a job out of a flight that is under way."""
        lane = flight.lane
        flight.leave(job.rid)
        lane.in_flight -= 1
        self._ledger.release(job.estimate)
        lane.to_abort.append(job.rid)
        if not flight.jobs and flight.task is not None:
            flight.task.cancel()

    def _assign(self, job: Job, now: float) -> None:
        lane = self._routing.choose(job, self._lanes, now)
        if lane is None:
            self._fail(job, job.last_trouble)
        else:
            lane.waiting.push(job)

    def _rehome(self, lane: Lane, now: float) -> None:
        """Give away what waits for a lane that cannot serve it now."""
        moving = []
        while (job := lane.waiting.pop()) is not None:
            moving.append(job)
        for job in moving:
            self._assign(job, now)

    def _wake(self) -> None:
        """Hand out work soon."""
        if self._wake_handle is None and not self._closed:
            if self._batches:
                self._wake_handle = self._loop.call_later(self._settings.linger_s, self._dispatch)
            else:
                self._wake_handle = self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._wake_handle = None
        now = self._loop.time()
        self._send_aborts()
        self._ledger.tick(now)
        if self._ledger.spent.exhausted:
            self._refuse_waiting()
            return
        self._advance(now)
        for lane in sorted(self._lanes, key=lambda lane: lane.load):
            self._fill(lane, lane.waiting, now)
        for lane in self._lanes:
            self._help_out(lane, now)
        self._set_alarm(now)

    def _help_out(self, lane: Lane, now: float) -> None:
        """An engine with room takes from the longest queue."""
        for donor in sorted(self._lanes, key=lambda other: -len(other.waiting)):
            if donor is not lane and donor.waiting and lane.room(now):
                self._fill(lane, donor.waiting, now)

    def _fill(self, lane: Lane, queue: Waiting, now: float) -> None:
        while (room := lane.room(now)) and queue:
            jobs = self._take(queue, min(room, lane.engine.traits.batch), lane)
            if not jobs:
                return
            self._launch(lane, jobs, now)

    def _take(self, queue: Waiting, most: int, lane: Lane) -> list[Job]:
        """The next jobs from a queue that this lane may serve and the budget allows."""
        jobs: list[Job] = []
        aside: list[Job] = []
        while len(jobs) < most and (job := queue.pop()) is not None:
            job.estimate = self._ledger.estimate(job.request, lane.engine.prices)
            if lane.name in job.excluded:
                aside.append(job)
            elif self._ledger.allows(job.estimate):
                self._ledger.reserve(job.estimate)
                jobs.append(job)
            else:
                aside.append(job)
                break
        for job in aside:
            queue.push(job)
        return jobs

    def _launch(self, lane: Lane, jobs: list[Job], now: float) -> None:
        flight = Flight(lane, now)
        for job in jobs:
            self._calls += 1
            self._totals.retries += job.attempts > 0
            flight.board(f"{self._nonce}.{job.request.id}.{self._calls}.", job)
        lane.in_flight += len(jobs)
        lane.counts.calls += 1
        self._flights.add(flight)
        flight.task = self._loop.create_task(self._fly(flight))
        flight.task.add_done_callback(lambda task: self._landed(flight, task))

    def _set_alarm(self, now: float) -> None:
        """Wake up when the first resting engine may go on, if something waits."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        resting = [lane.paused_until for lane in self._lanes if not lane.down and lane.paused_until > now]
        if resting and self._backlog():
            self._alarm = self._loop.call_at(min(resting) + 0.001, self._wake)

    def _refuse_waiting(self) -> None:
        """The budget is spent: what has not begun will not begin."""
        for lane in self._lanes:
            while (job := lane.waiting.pop()) is not None:
                self._totals.over_budget += 1
                self._fail(job, "budget")

    async def _fly(self, flight: Flight) -> None:
        if flight.lane.engine.traits.warms:
            await self._warmth.prepare(flight)
        if calls := flight.calls():
            await flight.lane.engine.answer(calls, lambda rid, result: self._deliver(flight, rid, result))

    def _deliver(self, flight: Flight, rid: str, result: Answer | Trouble) -> None:
        lane = flight.lane
        job = flight.leave(rid)
        if job is None:
            self._stray(lane, result)
            return
        self._advance(self._loop.time())
        if isinstance(result, Trouble):
            lane.in_flight -= 1
            self._ledger.release(job.estimate)
            if isinstance(result, Overloaded):
                self._blame(lane, result, flight.launched, self._loop.time())
            self._failed(lane, job, result)
        else:
            self._answered(flight, job, result.cut())
        self._wake()

    def _answered(self, flight: Flight, job: Job, answer: Answer) -> None:
        lane = flight.lane
        lane.went_well()
        lane.in_flight -= 1
        lane.counts.answers += 1
        self._ledger.release(job.estimate)
        cost = self._pay(lane, answer, job.characters)
        self._routing.served(job.request.agent_id, lane)
        self._warmth.learn(flight, job.head, answer)
        self._finish(job, _reply(job, lane, answer, cost, self._loop.time()))

    def _pay(self, lane: Lane, answer: Answer, characters: int = 0) -> float:
        cost = lane.engine.prices.cost(answer)
        self._ledger.pay(answer, cost, characters)
        counts = lane.counts
        counts.prompt_tokens += answer.prompt_tokens
        counts.cached_tokens += answer.cached_tokens
        counts.completion_tokens += answer.completion_tokens
        counts.money += cost
        return cost

    def _stray(self, lane: Lane, result: Answer | Trouble) -> None:
        """It came too late, or belongs to nobody. It is nobody's answer, but it was paid for."""
        self._totals.strays += 1
        if isinstance(result, Answer):
            self._pay(lane, result)

    def _failed(self, lane: Lane, job: Job, trouble: Trouble) -> None:
        """One attempt gave nothing: try again, here or elsewhere, if there is any sense in it."""
        lane.counts.troubles += 1
        job.last_trouble = f"{lane.name}: {trouble}"
        job.failures += not isinstance(trouble, Overloaded)
        if isinstance(trouble, Denied):
            job.excluded.add(lane.name)
        if isinstance(trouble, Refused) or job.failures >= self._settings.max_failures:
            self._fail(job, job.last_trouble)
        else:
            self._assign(job, self._loop.time())

    def _landed(self, flight: Flight, task: "asyncio.Task[None]") -> None:
        """A call is over. What it left unanswered has failed with it."""
        self._flights.discard(flight)
        if not task.cancelled() and (trouble := _trouble_of(task, flight)) is not None:
            self._call_failed(flight, trouble)
        self._wake()

    def _call_failed(self, flight: Flight, trouble: Trouble) -> None:
        lane, now = flight.lane, self._loop.time()
        self._advance(now)
        jobs = [flight.leave(rid) for rid in list(flight.jobs)]
        lane.in_flight -= len(jobs)
        self._blame(lane, trouble, flight.launched, now)
        for job in jobs:
            if job is not None:
                self._ledger.release(job.estimate)
                self._failed(lane, job, trouble)

    def _blame(self, lane: Lane, trouble: Trouble, launched: float, now: float) -> None:
        """What a failed call means for its engine."""
        if isinstance(trouble, Unreachable):
            self._care.bury(lane)
        elif isinstance(trouble, Denied):
            if len(self._lanes) > 1:
                lane.rest(now, self._settings.denied_rest_s)
        elif not isinstance(trouble, Refused):
            lane.went_wrong(trouble, launched, now)
        if not lane.open(now):
            self._rehome(lane, now)

    def _lane_changed(self, lane: Lane) -> None:
        """An engine died, or came back."""
        now = self._loop.time()
        self._advance(now)
        if lane.down:
            self._rehome(lane, now)
        self._wake()

    def _send_aborts(self) -> None:
        for lane in self._lanes:
            self._care.send_aborts(lane)

    async def _end_flights(self) -> None:
        tasks = [flight.task for flight in self._flights if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _backlog(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes)

    def _advance(self, now: float) -> None:
        waiting = self._backlog()
        for lane in self._lanes:
            lane.advance(now, waiting)


def _coroutine_name(task: "asyncio.Task[Any]") -> str:
    coroutine: Coroutine[Any, Any, Any] | Any = task.get_coro()
    return getattr(coroutine, "__qualname__", "?")


def _trouble_of(task: "asyncio.Task[None]", flight: Flight) -> Trouble | None:
    """How a call failed, if it did."""
    error = task.exception()
    if error is None:
        return Broken("no answer among the engine's replies") if flight.jobs else None
    if isinstance(error, Trouble):
        return error
    log.error("engine %s has a fault of its own", flight.lane.name, exc_info=error)
    return Broken(f"{type(error).__name__} in {_coroutine_name(task)}")


def _reply(job: Job, lane: Lane, answer: Answer, cost: float, now: float) -> Reply:
    return Reply(
        text=answer.text, engine=lane.name, model=answer.model or lane.engine.model,
        prompt_tokens=answer.prompt_tokens, cached_tokens=answer.cached_tokens,
        completion_tokens=answer.completion_tokens, latency_ms=(now - job.entered) * 1000,
        attempts=job.attempts, finish=answer.finish, cost=cost, detail=answer.detail,
    )  # fmt: skip

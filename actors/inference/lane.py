"""One engine as the pool sees it: how much it takes, when it rests, whether it lives, what it has cached."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from ethnos.actors.inference.engines.base import Engine, Overloaded, Trouble
from ethnos.actors.inference.waiting import Waiting

FIRST_BACKOFF = 0.25
LONGEST_BACKOFF = 30.0
HEADS = 1024
"""Shared heads remembered as cached, per engine."""


@dataclass(slots=True)
class Counts:
    """What an engine has done."""

    answers: int = 0
    troubles: int = 0
    overloads: int = 0
    late: int = 0
    deaths: int = 0
    warmups: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0


@dataclass(slots=True)
class IdleClock:
    """Measures how much of an engine's room stood empty while work was waiting for it."""

    since: float = 0.0
    wanted_s: float = 0.0
    empty_s: float = 0.0

    def advance(self, now: float, waiting: int, in_flight: int, limit: int, open_: bool) -> None:
        dt, self.since = now - self.since, now
        if open_ and (waiting or in_flight):
            self.wanted_s += dt
            self.empty_s += dt * min(waiting, max(limit - in_flight, 0)) / limit

    @property
    def share(self) -> float:
        return self.empty_s / self.wanted_s if self.wanted_s else 0.0


@dataclass(eq=False, slots=True)
class Lane:
    """An engine, the requests that wait for it, and what was learned about it."""

    engine: Engine
    waiting: Waiting = field(default_factory=Waiting)
    in_flight: int = 0
    down: bool = False
    why_down: str = ""
    paused_until: float = 0.0
    counts: Counts = field(default_factory=Counts)
    heads: "OrderedDict[str, asyncio.Task[None] | None]" = field(default_factory=OrderedDict)
    """Shared heads it has read, or is reading."""
    in_vain: int = 0
    """Shared heads that it read and did not keep."""
    probing: bool = False
    idle: IdleClock = field(default_factory=IdleClock)
    to_abort: list[str] = field(default_factory=list)
    """Calls at it that nobody waits for any more."""
    _limit: float = field(init=False)
    _cut_at: float = field(init=False, default=float("-inf"))
    _failed_at: float = field(init=False, default=float("-inf"))
    _rough: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._limit = float(min(self.engine.traits.limit, self.engine.traits.max_limit))

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def limit(self) -> int:
        """Requests it takes at one time, as far as is known."""
        return max(int(self._limit), 1)

    @property
    def load(self) -> float:
        """How busy it is, for what it takes."""
        return (len(self.waiting) + self.in_flight) / self.limit

    def open(self, now: float) -> bool:
        return not self.down and now >= self.paused_until

    def room(self, now: float) -> int:
        """Requests that may go to it now."""
        return max(self.limit - self.in_flight, 0) if self.open(now) else 0

    def went_well(self) -> None:
        """An answer came: it takes a little more, if it was full."""
        self._rough = 0
        if self.in_flight + 1 >= self.limit:
            self._limit = min(self._limit + 1 / self._limit, float(self.engine.traits.max_limit))

    def went_wrong(self, trouble: Trouble, launched: float, now: float) -> None:
        """A call failed: rest, and take less if that is what it asks for.

        Calls that were on their way together fail together; that counts once.
        """
        news = launched > self._failed_at
        if news:
            self._failed_at = now
            self._rough += 1
        if isinstance(trouble, Overloaded):
            self.counts.overloads += 1
            self.take_less(launched, now)
            self.rest(now, self._backoff(self._rough) if trouble.retry_after is None else trouble.retry_after)
        elif news and self._rough > 1:
            self.rest(now, self._backoff(self._rough - 1))

    def take_less(self, launched: float, now: float) -> None:
        """Halve what it takes; once for all calls that were on their way together."""
        if launched > self._cut_at:
            self._cut_at = now
            self._limit = max(self._limit / 2, 1.0)

    def rest(self, now: float, seconds: float) -> None:
        self.paused_until = max(self.paused_until, now + seconds)

    def died(self) -> None:
        self.down = True
        self.counts.deaths += 1
        self.heads.clear()

    def rose(self) -> None:
        """It is back, with an empty cache and the benefit of half the doubt."""
        self.down = False
        self.paused_until = 0.0
        self._rough = 0
        self._limit = max(self._limit / 2, 1.0)

    def remember(self, head: str, task: "asyncio.Task[None] | None") -> None:
        self.heads[head] = task
        self.heads.move_to_end(head)
        while len(self.heads) > HEADS:
            self.heads.popitem(last=False)

    def advance(self, now: float, waiting: int) -> None:
        """Let time pass while `waiting` requests waited for some engine."""
        self.idle.advance(now, waiting, self.in_flight, self.limit, self.open(now))

    def stats(self, now: float) -> dict[str, Any]:
        c = self.counts
        return {
            "model": self.engine.model, "down": self.down, "limit": self.limit, "in_flight": self.in_flight,
            "waiting": len(self.waiting), "paused_s": round(max(self.paused_until - now, 0.0), 3),
            "idle_share": round(self.idle.share, 4), "answers": c.answers, "calls": c.calls,
            "troubles": c.troubles, "overloads": c.overloads, "late": c.late, "deaths": c.deaths,
            "warmups": c.warmups, "prompt_tokens": c.prompt_tokens, "cached_tokens": c.cached_tokens,
            "completion_tokens": c.completion_tokens, "money": c.money,
        }  # fmt: skip

    def _backoff(self, failures: int) -> float:
        return min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 20), LONGEST_BACKOFF)

"""What an engine is to the pool.

Trouble                the engine gave no answer
├── Unreachable        nobody listens there, or the connection broke before a word came
├── Broken             it failed at this (500, a cut stream, bytes that are no reply): try again
├── Overloaded         it asks for time (429, 503), perhaps with how long
├── Refused            the request itself is at fault (a schema it cannot take, too long): never repeat it
└── Denied             we may not, or it is not there (401, 403, 404): this engine is set up wrongly
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from ethnos.actors.inference.request import Request
from ethnos.engines import PriceTable

MAX_TEXT = 200_000
"""Characters of an answer that are kept; what is longer is no decision."""
LONGEST_WAIT = 3600.0
"""Seconds that a Retry-After is believed."""
SEED_BITS = 31

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?)(?![a-z])")
_AGAIN = re.compile(r"(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at a request. No `rid` is the beginning of another one, in any run."""

    rid: str
    request: Request


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine said."""

    text: str
    finish: str = "stop"
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    detail: dict[str, Any] = field(default_factory=dict)

    def cut(self) -> "Answer":
        """With its text cut to what is kept."""
        if len(self.text) <= MAX_TEXT:
            return self
        detail = {**self.detail, "text_cut_from": len(self.text)}
        return Answer(self.text[:MAX_TEXT], "length", self.model, self.prompt_tokens, self.cached_tokens,
                      self.completion_tokens, detail)  # fmt: skip


class Trouble(Exception):
    """The engine gave no answer; the text says why, with no secret in it."""


class Unreachable(Trouble):
    """Nobody listens there."""


class Broken(Trouble):
    """The engine failed at it."""


class Overloaded(Trouble):
    """The engine asks for time."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(Trouble):
    """The request itself is at fault."""


class Denied(Trouble):
    """This engine is set up wrongly for us."""


Deliver = Callable[[str, Answer | Trouble], None]
"""Takes the rid of a call and what became of it, as soon as that is known."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What the pool may ask of an engine."""

    batch: int = 1
    """Most requests in one call."""
    limit: int = 8
    """Requests in flight to begin with."""
    max_limit: int = 64
    """Most requests in flight, however well it goes."""
    warms: bool = False
    """It caches prefixes but shares none inside a batch: a new head deserves a request of its own, first."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Money per million tokens. Cached tokens cost what the others do unless said otherwise."""

    prompt: float = 0.0
    cached: float | None = None
    completion: float = 0.0

    @classmethod
    def of(cls, table: PriceTable) -> "Prices":
        return cls(table.prompt, table.cached, table.completion)

    def cost(self, answer: Answer) -> float:
        cached = self.prompt if self.cached is None else self.cached
        fresh = max(answer.prompt_tokens - answer.cached_tokens, 0)
        return (fresh * self.prompt + answer.cached_tokens * cached + answer.completion_tokens * self.completion) / 1e6

    def most(self, prompt_tokens: float, completion_tokens: int) -> float:
        """What a request costs at most, as far as one can know before."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Engine(Protocol):
    """Runs a model. All methods but `special_tokens` may raise Trouble, and nothing else for what goes wrong there."""

    @property
    def name(self) -> str:
        """Its name in the record."""

    @property
    def model(self) -> str:
        """What it runs, as far as is known."""

    @property
    def traits(self) -> Traits: ...

    @property
    def prices(self) -> Prices: ...

    async def start(self) -> None:
        """Connect and learn what is there. May be called again after trouble."""

    async def close(self) -> None:
        """Let go of everything."""

    async def healthy(self) -> bool:
        """Whether it would answer now."""

    async def revive(self) -> None:
        """Start what has died, if it is this engine's to start."""

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        """Deliver each call's answer as soon as it is there. When cancelled, let the engine stop."""

    async def warm(self, request: Request) -> Answer:
        """Read the shared layers of a request into the prefix cache."""

    async def abort(self, rids: Sequence[str]) -> None:
        """Stop working at calls nobody waits for."""

    def special_tokens(self) -> frozenset[str]:
        """Texts that the model's template takes for its own; they must not come from an agent."""


def trouble(status: int, text: str, headers: Mapping[str, str]) -> Trouble:
    """What an HTTP status that is no success means."""
    message = f"HTTP {status}: {shorten(text)}" if text else f"HTTP {status}"
    if status in (429, 503, 529):
        return Overloaded(message, retry_after(headers, text))
    if status in (400, 413, 422):
        return Refused(message)
    if status in (401, 402, 403, 404, 405):
        return Denied(message)
    return Broken(message)


def shorten(text: str, length: int = 300) -> str:
    """One line of it."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def retry_after(headers: Mapping[str, str], text: str = "") -> float | None:
    """Seconds the server asks us to wait, from its headers or its words."""
    low = {k.lower(): v for k, v in headers.items()}
    if (ms := _number(low.get("retry-after-ms", ""))) is not None:
        return _believable(ms / 1000)
    if value := low.get("retry-after", ""):
        seconds = _number(value)
        return _believable(_until(value, low.get("date", "")) if seconds is None else seconds)
    if found := _AGAIN.search(text):
        return _believable(_duration(found[1]))
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _until(value: str, date: str) -> float | None:
    """Seconds to an HTTP date, by the server's own clock if it tells it."""
    try:
        then = parsedate_to_datetime(value)
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return (then - now).total_seconds()
    except (TypeError, ValueError):
        return None


def _duration(text: str) -> float | None:
    units = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = _DURATION.findall(text.lower())
    if not parts:
        return None
    return sum(float(n) * (60.0 if u.startswith("min") else units.get(u[:2], units.get(u[0], 1.0))) for n, u in parts)


def _believable(seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT)


def narrow_seed(seed: int) -> int:
    """A seed that every engine's sampler takes."""
    return seed % (1 << SEED_BITS)

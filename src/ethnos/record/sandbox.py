"""Strangers' SQL: one query in one process that may read one run, and nothing else, for a limited time.

What a database's own settings forbid is not enough: `repeat('x', 4000000000)` does not look at the memory limit, a
COPY may hide in a WITH, and a directory that may be read may be written. So a query gets a process of its own, with
limits that the kernel keeps (`ethnos.record.sandboxed`), which is killed at its deadline. Starting Python and loading
the libraries takes a second, so a process that has loaded them waits, and makes a child for each query.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import IO

import pyarrow as pa

from ethnos.errors import QueryError
from ethnos.record.directory import RunDirectory

READ = 1 << 20
SLACK = 8 << 20
"""What an answer takes beside its rows."""
ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",  # each reserves addresses, of which there is a limit
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Limits:
    """What one query may use."""

    seconds: float = 10.0
    """From question to answer; then its process is killed."""
    rows: int = 10_000
    """Rows of the answer; the rest is cut off."""
    answer_bytes: int = 32 << 20
    """Bytes of the answer."""
    memory_bytes: int = 512 << 20
    """For the query, beyond what the libraries take."""
    query_chars: int = 20_000
    """Length of the query."""
    at_once: int = 3
    """Queries that are answered at the same time; others wait for their turn."""


@dataclass(frozen=True)
class Answer:
    """What a query gave."""

    table: pa.Table
    more: bool
    """Whether there were more rows than the limit."""
    seconds: float


class Sandbox:
    """Answers queries, each in a process of its own. `close` it, or use it as a context manager."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._turns = threading.BoundedSemaphore(self.limits.at_once)
        self._lock = threading.Lock()
        self._idle: list[Nursery] = []

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for nursery in idle:
            nursery.end()

    def warm(self) -> None:
        """Have a process ready for the next query; returns at once."""
        self._put(self._take())

    def ask(self, runs: Sequence[RunDirectory], sql: str) -> Answer:
        """The answer to one query over these runs. Raises QueryError that says what was wrong or too much."""
        if len(sql) > self.limits.query_chars:
            raise QueryError(f"the query has {len(sql):,} characters; at most {self.limits.query_chars:,} are taken")
        asked = {"runs": [str(r.path.resolve()) for r in runs], "sql": sql, "limits": asdict(self.limits)}
        with self._turns:
            nursery = self._take()
            try:
                began = time.monotonic()
                said = nursery.ask(json.dumps(asked).encode(), self.limits)
            except BaseException:
                nursery.end()
                raise
            self._put(nursery)
        more, table = _understood(said, self.limits)
        return Answer(table, more, time.monotonic() - began)

    def _take(self) -> "Nursery":
        with self._lock:
            return self._idle.pop() if self._idle else Nursery()

    def _put(self, nursery: "Nursery") -> None:
        with self._lock:
            self._idle.append(nursery)


class Nursery:
    """A process that has the libraries loaded and makes a child for each query; a session of its own.

    It inherits nothing: no environment, no files, no terminal.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ethnos.record.sandboxed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, asked: bytes, limits: Limits) -> bytes:
        """What a child of it answers. Raises QueryError if there is no answer, or not in time."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        if not self._ready:
            back.read(1)  # it has loaded its libraries; the time counts from here
            self._ready = True
        late = threading.Event()
        timer = threading.Timer(limits.seconds, self._stop, (late,))
        timer.daemon = True
        timer.start()
        try:
            said = _exchange(to, back, asked, limits)
        finally:
            timer.cancel()
        if late.is_set():
            raise QueryError(f"the query took longer than {limits.seconds:g} seconds and was stopped")
        if not said:
            raise QueryError("the query used more memory or processor time than it may and was stopped")
        return said

    def _stop(self, late: threading.Event) -> None:
        late.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """End it and its children."""
        self._stop(threading.Event())
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()


def _exchange(to: IO[bytes], back: IO[bytes], asked: bytes, limits: Limits) -> bytes:
    """Ask, and read what comes back: each a length in 8 bytes, then so many. Empty if nothing comes."""
    with contextlib.suppress(BrokenPipeError):
        to.write(len(asked).to_bytes(8, "big") + asked)
    size = int.from_bytes(_exactly(back, 8), "big")
    if size > limits.answer_bytes + SLACK:
        raise QueryError(f"the answer has more than {limits.answer_bytes >> 20} MB; ask for fewer or shorter rows")
    return _exactly(back, size)


def _exactly(back: IO[bytes], size: int) -> bytes:
    """So many bytes; fewer only where the stream ends."""
    said = bytearray()
    while len(said) < size and (piece := back.read(min(READ, size - len(said)))):
        said += piece
    return bytes(said)


def _understood(said: bytes, limits: Limits) -> tuple[bool, pa.Table]:
    """First a line of JSON, then the rows as an Arrow stream. The process may have been led astray: read with care."""
    head, _, rest = said.partition(b"\n")
    try:
        told = json.loads(head)
        if "error" in told:
            raise QueryError(str(told["error"])[:4_000])
        table = pa.ipc.open_stream(rest).read_all()
        table.validate()
    except (ValueError, TypeError, pa.ArrowException):
        raise QueryError("the query gave no answer that can be read") from None
    return bool(told.get("more")), table.slice(0, limits.rows)


__all__ = ["Answer", "Limits", "Sandbox"]

"""Strangers' SQL: one query in one process that may read one run, and nothing else, for a limited time.

What a database's own settings forbid is not enough: `repeat('x', 4000000000)` does not look at the memory limit, a
COPY may hide in a WITH, and a directory that may be read may be written. So a query gets a process of its own, with
limits that the kernel keeps (`ethnos.record.sandboxed`), which is killed at its deadline. Starting Python and loading
the libraries takes most of a second, so one process waits ready for the next query.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

import pyarrow as pa

from ethnos.errors import QueryError
from ethnos.record.directory import RunDirectory

READ = 1 << 20
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
        self._lock = threading.Lock()
        self._ready: subprocess.Popen[bytes] | None = None
        self._closed = False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that waits."""
        with self._lock:
            self._closed = True
            if self._ready is not None:
                _end(self._ready)
                self._ready = None

    def warm(self) -> None:
        """Have a process ready for the next query."""
        with self._lock:
            if self._ready is None and not self._closed:
                self._ready = _start()

    def ask(self, runs: Sequence[RunDirectory], sql: str) -> Answer:
        """The answer to one query over these runs. Raises QueryError that says what was wrong or too much."""
        if len(sql) > self.limits.query_chars:
            raise QueryError(f"the query has {len(sql):,} characters; at most {self.limits.query_chars:,} are taken")
        began = time.monotonic()
        process = self._take()
        try:
            said = self._converse(process, {"runs": [str(r.path.resolve()) for r in runs], "sql": sql})
        finally:
            _end(process)
            self.warm()
        more, table = _understood(said, self.limits)
        return Answer(table, more, time.monotonic() - began)

    def _take(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            process, self._ready = self._ready, None
        return process if process is not None and process.poll() is None else _start()

    def _converse(self, process: "subprocess.Popen[bytes]", asked: dict[str, Any]) -> bytes:
        """Ask, and read the answer while the time lasts."""
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()
        process.stdout.readline()  # it is ready: from here on the time counts
        timer = threading.Timer(self.limits.seconds, _stop, (process, late))
        timer.daemon = True
        timer.start()
        try:
            said = _exchange(process.stdin, process.stdout, {**asked, "limits": asdict(self.limits)}, self.limits)
            code = process.wait()
        finally:
            timer.cancel()
        if late.is_set():
            raise QueryError(f"the query took longer than {self.limits.seconds:g} seconds and was stopped")
        if code or not said:
            raise QueryError(_why(code))
        return said


def _start() -> "subprocess.Popen[bytes]":
    """A process that waits for one query. It inherits nothing: no environment, no files, no terminal."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ethnos.record.sandboxed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,
        close_fds=True,
    )


def _stop(process: "subprocess.Popen[bytes]", late: threading.Event) -> None:
    late.set()
    process.kill()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    process.wait()


def _exchange(to: IO[bytes], back: IO[bytes], asked: dict[str, Any], limits: Limits) -> bytes:
    """Everything that came back. Raises QueryError if that is more than an answer may be."""
    try:
        to.write(json.dumps(asked).encode())
        to.close()
    except BrokenPipeError:
        return b""
    said = bytearray()
    most = limits.answer_bytes + READ
    while piece := back.read(READ):
        said += piece
        if len(said) > most:
            raise QueryError(f"the answer has more than {limits.answer_bytes >> 20} MB; ask for fewer or shorter rows")
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


def _why(code: int) -> str:
    """Why a process ended without an answer."""
    if -code in (9, 24):  # SIGKILL by the kernel, SIGXCPU
        return "the query used more processor time or memory than it may and was stopped"
    return "the query used more memory than it may and was stopped"


__all__ = ["Answer", "Limits", "Sandbox"]

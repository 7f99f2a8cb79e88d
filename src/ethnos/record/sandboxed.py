"""The process behind `ethnos.record.sandbox`: reads questions and answers each in a child of its own.

It starts no thread before it forks.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn


class _WithoutPandas:
    """Nobody here needs it, but Arrow would load it where it is installed: half a second more to start."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, _WithoutPandas())

import duckdb
import pyarrow as pa
import pyarrow.dataset
from duckdb import DuckDBPyConnection

from ethnos.errors import EthnosError, QueryError
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect, stream_query

BATCH = 1_024
NO_NEW_PRIVILEGES = 38
"""PR_SET_NO_NEW_PRIVS of prctl(2)."""
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000


def main() -> None:
    """Answer questions until there are no more, each in a child."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(b"!")
    answers.flush()
    while asked := questions.read(int.from_bytes(questions.read(8), "big")):
        said = _in_a_child(json.loads(asked))
        answers.write(len(said).to_bytes(8, "big") + said)
        answers.flush()


def _in_a_child(asked: dict[str, Any]) -> bytes:
    """What a child with nothing but its limits says; nothing if they end it, or if that is too much to say."""
    back, to = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(back)
        for ours in (0, 1):
            os.close(ours)
        _answer_and_end(asked, os.fdopen(to, "wb"))
    os.close(to)
    said, most = bytearray(), int(asked["limits"]["answer_bytes"]) + (8 << 20)
    with os.fdopen(back, "rb") as pipe:
        while len(said) <= most and (piece := pipe.read1(1 << 20)):
            said += piece
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return bytes(said) if len(said) <= most else b""


def _answer_and_end(asked: dict[str, Any], out: Any) -> NoReturn:
    limits = asked["limits"]
    try:
        _bind(limits)
        try:
            more, table = _answer([RunDirectory(Path(p)) for p in asked["runs"]], asked["sql"], limits)
            _say(out, {"more": more}, table)
        except (EthnosError, duckdb.Error) as error:
            _say(out, {"error": _plainly(str(error))})
        except MemoryError:
            _say(out, {"error": "the query used more memory than it may and was stopped"})
        out.flush()
    finally:
        os._exit(0)


def _bind(limits: dict[str, Any]) -> None:
    """Give up, for good, whatever a query has no need of."""
    pa.set_cpu_count(2)
    pa.set_io_thread_count(2)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.unshare(CLONE_NEWNET):  # no network at all; where that takes a right we lack, from a namespace of our own
        libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)
    seconds = max(1, int(limits["seconds"] * 2))
    mine = _address_space() + int(limits["memory_bytes"]) + (256 << 20)
    for what, most in (
        (resource.RLIMIT_AS, mine),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # already lower
            resource.setrlimit(what, (most, most))


def _address_space() -> int:
    """Bytes that the libraries have reserved, and what DuckDB's threads will for their stacks."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize() + (64 << 20)


def _answer(runs: list[RunDirectory], sql: str, limits: dict[str, Any]) -> tuple[bool, pa.Table]:
    with connect(*runs, through_arrow=True) as con:
        _lock(con, int(limits["memory_bytes"]))
        schema, batches = stream_query(con, sql)
        rows, size, taken = 0, 0, []
        for batch in batches:
            taken.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size > limits["answer_bytes"]:
                raise QueryError(f"the answer has more than {limits['answer_bytes'] >> 20} MB; ask for less")
            if rows > limits["rows"]:
                break
        return rows > limits["rows"], pa.Table.from_batches(taken, schema).slice(0, limits["rows"])


def _lock(con: DuckDBPyConnection, memory_bytes: int) -> None:
    """From here on no file, no extension, no setting, no Python variable."""
    con.execute("SET threads = 2; SET temp_directory = ''; SET autoload_known_extensions = false")
    con.execute("SET autoinstall_known_extensions = false; SET python_enable_replacements = false")
    con.execute("SET memory_limit = $limit", {"limit": f"{memory_bytes >> 20}MiB"})
    con.execute("SET enable_external_access = false; SET lock_configuration = true")


def _say(out: Any, told: dict[str, Any], table: pa.Table | None = None) -> None:
    out.write(json.dumps(told).encode() + b"\n")
    if table is not None:
        with pa.ipc.new_stream(out, table.schema) as writer:
            for batch in table.to_batches(BATCH):
                writer.write_batch(batch)


def _plainly(error: str) -> str:
    """DuckDB's words, with ours where they would puzzle."""
    if "Out of Memory" in error or "failed to allocate" in error.lower():
        return "the query used more memory than it may and was stopped"
    if "disabled by configuration" in error or "has been locked" in error:
        return f"not here: a query reads this run's record and nothing else, and sets nothing ({error.strip()})"
    return error


if __name__ == "__main__":
    main()

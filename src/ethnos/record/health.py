"""How a run was doing while it ran: a row every few seconds, beside the record and outside of its digest.

`health/*.arrows`: an Arrow stream for each time the service was started. Nothing waits for it to reach the disk, and
a run without it is as good; whoever reads sees `health` as a table, empty where there is none.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from ethnos.record.directory import RunDirectory, now

FOLDER = "health"
MAX_FILES = 1000
"""Older ones are dropped when the service starts so often."""


def _column(name: str, kind: pa.DataType, meaning: str, unit: str = "") -> pa.Field:
    return pa.field(name, kind, metadata={"meaning": meaning, **({"unit": unit} if unit else {})})


HEALTH = pa.schema(
    [
        _column("seen", pa.timestamp("ms", tz="UTC"), "when; wall clock"),
        _column("tick", pa.int64(), "the last committed tick then", "ticks"),
        _column("phase", pa.string(), "starting, running, paused"),
        _column("tick_age", pa.float64(), "since the last commit", "s"),
        _column("tick_seconds", pa.float64(), "mean length of the ticks since the row before", "s"),
        _column("population", pa.int64(), "agents alive", "agents"),
        _column("agent_steps", pa.int64(), "decisions since the row before", "decisions"),
        _column("rejected", pa.int64(), "of them refused by the rules", "decisions"),
        _column("late", pa.int64(), "of them late", "decisions"),
        _column("failed", pa.int64(), "of them failed in the mind", "decisions"),
        _column("tokens", pa.int64(), "of prompts and replies since the row before", "tokens"),
        _column("hosts_missing", pa.int64(), "actors with agents that are not connected", "actors"),
        _column("log_rows", pa.int64(), "in the log, not sealed yet", "rows"),
        _column("snapshot_seconds", pa.float64(), "what the last snapshot took; null: there was none", "s"),
        _column("memory", pa.int64(), "resident, of the world-state service", "bytes"),
        _column("threads", pa.int64(), "of the world-state service", "threads"),
        _column("open_files", pa.int64(), "of the world-state service", "files"),
        _column("disk_free", pa.int64(), "on the disk with the run", "bytes"),
    ],
    metadata={"meaning": "How the run was doing, every few seconds; wall clock, not part of the digest."},
)


class HealthLog:
    """Writes rows. A full disk ends it and nothing else. Use as a context manager."""

    def __init__(self, run: RunDirectory) -> None:
        folder = run.path / FOLDER
        self._file: pa.NativeFile | None = None
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            files = sorted(folder.glob("*.arrows"))
            for old in files[: max(0, len(files) - MAX_FILES + 1)]:
                old.unlink()
            self._file = pa.OSFile(str(folder / f"{_next(files):06d}.arrows"), "wb")
            self._writer = pa.ipc.new_stream(self._file, HEALTH)

    def __enter__(self) -> "HealthLog":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._writer.close()
                self._file.close()

    def write(self, row: Mapping[str, object]) -> None:
        if self._file is None:
            return
        try:
            self._writer.write_batch(pa.RecordBatch.from_pylist([{"seen": now(), **row}], schema=HEALTH))
            self._file.flush()
        except OSError:
            self._file = None


def _rows(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        for batch in stream if stream.schema.equals(HEALTH) else ():
            batch.validate(full=True)
            yield batch


def _next(files: list[Path]) -> int:
    """A number above those that are taken; names come from disk, and may be anything."""
    return max((int(p.stem) for p in files if p.stem.isdigit()), default=0) + 1


def read_health(run: RunDirectory) -> pa.Table:
    """All rows, the oldest first. What is torn or is none of ours is passed over."""
    batches: list[pa.RecordBatch] = []
    for path in sorted((run.path / FOLDER).glob("*.arrows")):
        with suppress(pa.ArrowException, OSError, EOFError, MemoryError):
            batches += _rows(path)
    return pa.Table.from_batches(batches, HEALTH)


__all__ = ["HEALTH", "HealthLog", "read_health"]

"""Writing the record: a tick is committed once its row of the write-ahead log is on disk.

A segment of the log is an Arrow IPC stream with one record batch per tick. A full segment is sealed into one
Parquet part per table, in the background, and then deleted. What a crash tore off the end of the newest
segment was never committed; opening the log again seals what is whole and starts a new segment.
"""

import errno
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ethnos.errors import RecordDamaged, RecordFull, RunError
from ethnos.record import digest
from ethnos.record.directory import RunDirectory, now, put_in_place
from ethnos.record.replica import replica_of
from ethnos.record.schema import (
    TABLES,
    TICKS,
    Layer,
    decisions_batch,
    events_batch,
    layers_batch,
    wal_schema,
)
from ethnos.world.world import Step

_log = logging.getLogger("ethnos")

SEAL_ROWS = 200_000
"""Events and decisions in a segment before it is sealed: a Parquet part of some 4 MB."""
SEAL_TICKS = 5_000

_OF_ONE_TURN = {"history", "recall", "observation", "retry"}
"""Layers that are hardly ever the same twice: not worth remembering that they are there."""

_WAL = wal_schema()

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Log:
    """The one writer of a run's record. Use as a context manager; holds the run's lock."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.tick = -1
        """The last committed tick."""
        self.digest = digest.START
        """The digest up to and including it."""
        self._known_layers: set[str] = set()
        self._new_layers: list[Layer] = []
        self._segment: _Segment | None = None
        self._sealing: Future[None] | None = None
        self._sealer = ThreadPoolExecutor(1, thread_name_prefix="seal")
        self._stack = ExitStack()
        self._replica = replica_of(run)

    def __enter__(self) -> "Log":
        """Take the lock, cut a torn tail, seal what is whole. Raises RunBusy, RecordFull."""
        self._stack.enter_context(self.run.lock())
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        for folder in (self.run.wal, *(self.run.path / t for t in TABLES)):
            folder.mkdir(exist_ok=True)  # archives and object stores keep no empty folders
        with suppress(OSError):  # snapshots only save time: a run goes on without them
            self.run.snapshots.mkdir(exist_ok=True)
        parent = self.run.manifest().parent
        if parent is not None:
            self.tick, self.digest = parent.tick, parent.digest
        segments = [(path, list(read_segment(path))) for path in self.run.segments()]
        check_whole(self.run, [batches for _, batches in segments])
        with self.disk():
            for path, batches in segments:
                seal(self.run, path, batches)
        parts = self.run.parts("ticks")
        if parts:
            last = pq.read_table(parts[-1], columns=["tick", "digest"]).to_pylist()[-1]
            self.tick, self.digest = last["tick"], last["digest"]
        for part in self.run.parts("layers"):
            rows = pq.read_table(part, columns=["hash", "name"]).to_pylist()
            self._known_layers.update(r["hash"] for r in rows if r["name"] not in _OF_ONE_TURN)

    def __exit__(self, *exc: object) -> None:
        try:
            if self._segment is not None:
                with suppress(OSError):
                    self._segment.close()
            self._sealer.shutdown()
        finally:
            self._stack.close()

    def disk(self) -> AbstractContextManager[None]:
        """Where something is written: raises RecordFull where the disk takes no more."""
        return _Disk(self)

    def note_layers(self, layers: Iterable[Layer]) -> None:
        """Put pieces of prompts on the record with the next tick, unless they are there."""
        for layer in layers:
            if layer.name in _OF_ONE_TURN:
                self._new_layers.append(layer)
            elif layer.hash not in self._known_layers:
                self._known_layers.add(layer.hash)
                self._new_layers.append(layer)

    @property
    def unsealed(self) -> int:
        """Events and decisions in the open segment."""
        return self._segment.rows if self._segment is not None else 0

    def commit(self, step: Step, observations: dict[int, str], elapsed_ms: float) -> str:
        """Put one tick on disk; returns the digest up to it. Raises RecordFull: then it is not committed."""
        events = events_batch(step)
        decisions = decisions_batch(step, observations)
        chained = digest.extend(self.digest, events)
        first = step.events[0][0] if step.events else step.next_seq
        outcomes = [d.outcome for d in step.decisions]
        ticks = pa.RecordBatch.from_pylist(
            [
                {
                    "tick": step.tick,
                    "first_seq": first,
                    "events": len(step.events),
                    "population": step.population,
                    "decisions": len(outcomes),
                    **{o: outcomes.count(o) for o in ("rejected", "late", "failed")},
                    "stocks": msgspec.json.encode(step.stocks).decode(),
                    "digest": chained,
                    "committed": now(),
                    "elapsed": elapsed_ms,
                }
            ],
            schema=TICKS,
        )
        with self.disk():
            if self._sealing is not None and self._sealing.done():
                self._sealing.result()
                self._sealing = None
            if self._segment is None:
                self._segment = _Segment(self.run.wal / f"{step.tick:010d}.arrows")
            layers = layers_batch(step.tick, self._new_layers)
            tables = {"events": events, "decisions": decisions, "layers": layers, "ticks": ticks}
            self._segment.append(step.tick, tables)
        self._new_layers.clear()
        self.tick, self.digest = step.tick, chained
        if self._segment.rows >= SEAL_ROWS or self._segment.ticks >= SEAL_TICKS:
            self._seal_in_background()
        return chained

    def _seal_in_background(self) -> None:
        """Start sealing the open segment. Waits for the one before, so at most two are ever open."""
        with self.disk():
            if self._sealing is not None:
                self._sealing.result()
            assert self._segment is not None
            segment, self._segment = self._segment, None
            segment.close()
            self._sealing = self._sealer.submit(seal, self.run, segment.path, segment.batches)
            self._sealer.submit(self._copy)

    def _copy(self) -> None:
        """Have what is sealed copied. A place that cannot be reached costs the copy its freshness, never the run."""
        if self._replica is None:
            return
        try:
            self._replica.push(self.run)
        except RunError as error:
            _log.warning("%s", error)

    def seal(self) -> None:
        """Seal everything; what a finished run does last."""
        if self._segment is not None:
            self._seal_in_background()
        with self.disk():
            if self._sealing is not None:
                self._sealing.result()
                self._sealing = None


class _Segment:
    """The open segment of the log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.batches: list[pa.RecordBatch] = []
        self._file: BinaryIO = path.open("xb", buffering=1 << 20)
        self._writer = pa.ipc.new_stream(self._file, _WAL)

    @property
    def ticks(self) -> int:
        return len(self.batches)

    def append(self, tick: int, tables: dict[str, pa.RecordBatch]) -> None:
        lists = [
            pa.ListArray.from_arrays(pa.array([0, b.num_rows], pa.int32()), b.to_struct_array())
            for b in tables.values()
        ]
        lists = [a.cast(f.type) for a, f in zip(lists, list(_WAL)[1:], strict=True)]
        batch = pa.RecordBatch.from_arrays([pa.array([tick], pa.int64()), *lists], schema=_WAL)
        self._writer.write_batch(batch)
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self.batches.append(batch)
        self.rows += tables["events"].num_rows + tables["decisions"].num_rows

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def read_segment(path: Path) -> Iterator[pa.RecordBatch]:
    """The whole ticks of a segment, also while it is written; ends without an error where it is torn."""
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            if not stream.schema.equals(_WAL):
                return
            for batch in stream:
                batch.validate(full=True)
                if batch.num_rows != 1 or batch.column(0).null_count:
                    return
                yield batch
    except (pa.ArrowException, OSError, EOFError, MemoryError):
        return


def check_whole(run: RunDirectory, segments: Sequence[Sequence[pa.RecordBatch]]) -> None:
    """Whether a run's own ticks follow each other and are of one run, before anything is changed.

    A segment may repeat ticks that are sealed already: a crash came between sealing and deleting it. They have to
    be the same ticks, or what is sealed is of another run. Raises RecordDamaged.
    """
    parent = run.manifest().parent
    last = parent.tick if parent else -1
    for part in run.parts("ticks"):
        first, end = map(int, part.stem.split("-"))
        if first != last + 1:
            raise RecordDamaged(f"run {run.name}: tick {last} is followed by tick {first} in {part}")
        last = end
    sealed = last
    doubles: dict[int, str] = {}
    for tick, its_digest in (_tick_of(batch) for batches in segments for batch in batches):
        if tick > last + 1:
            raise RecordDamaged(f"run {run.name}: tick {last} is followed by tick {tick} in its log")
        if tick <= sealed:
            doubles[tick] = its_digest
        last = max(last, tick)
    _check_same(run, doubles)


def _tick_of(batch: pa.RecordBatch) -> tuple[int, str]:
    """Number and digest of the tick that a row of the log holds."""
    return batch["tick"][0].as_py(), batch["ticks"][0].as_py()[0]["digest"]


def _check_same(run: RunDirectory, doubles: Mapping[int, str]) -> None:
    """Whether the ticks that are both in the log and in parts are the same there. Raises RecordDamaged."""
    parts = run.parts("ticks") if doubles else []
    for part in (p for p in parts if int(p.stem.split("-")[1]) >= min(doubles)):
        for row in pq.read_table(part, columns=["tick", "digest"]).to_pylist():
            if doubles.get(row["tick"], row["digest"]) != row["digest"]:
                raise RecordDamaged(
                    f"run {run.name}: tick {row['tick']} in {part} is not the one in its log: "
                    "the folder holds parts of another run"
                )


def unpack(batches: list[pa.RecordBatch], table: str) -> pa.Table:
    """The rows of one table out of segments' batches."""
    schema = TABLES[table]
    rows = [pa.RecordBatch.from_arrays(b.column(table).flatten().flatten(), schema=schema) for b in batches]
    return pa.Table.from_batches(rows, schema)


def seal(run: RunDirectory, segment: Path, batches: list[pa.RecordBatch]) -> None:
    """Write a segment's ticks as Parquet parts and delete it.

    `ticks` comes last: whoever finds a tick there finds the rest of it. Doing it again after a crash writes the
    same parts again.
    """
    if batches:
        first, last = batches[0]["tick"][0].as_py(), batches[-1]["tick"][0].as_py()
        for table in TABLES:
            rows = unpack(batches, table)
            if rows.num_rows or table != "layers":
                write_part(run.path / table / f"{first:010d}-{last:010d}.parquet", rows)
    segment.unlink(missing_ok=True)


def write_part(path: Path, table: pa.Table) -> None:
    """Write one Parquet file so that it is whole or not there."""
    aside = path.with_suffix(".aside")
    with aside.open("wb") as file:
        pq.write_table(table, file, compression="zstd", row_group_size=100_000)
        file.flush()
        os.fsync(file.fileno())
    put_in_place(aside, path)


class _Disk(AbstractContextManager[None]):
    """Turns `no space left` into RecordFull."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise RecordFull(
                f"the disk under {self._log.run.path} is full; the record is valid up to "
                f"tick {self._log.tick}. Free some space, then resume the run"
            ) from error


__all__ = ["Log", "read_segment", "seal", "unpack"]

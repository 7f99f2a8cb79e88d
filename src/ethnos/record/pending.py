"""Answers to the tick under way, on disk before the tick is: a model is never paid twice for one of them.

`wal/pending` is an Arrow IPC stream, one batch for each group of answers that went to disk together. It names
the tick and the digest of the record before it, so answers for any other tick, or to another past, are nothing.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ethnos.record.directory import RunDirectory, put_in_place, sync_folder
from ethnos.record.schema import LAYERS, Layer
from ethnos.world.world import Answer

_LAYER = pa.struct([LAYERS.field(n) for n in ("hash", "name", "text")])
_COLUMNS = {
    "agent_id": pa.int64(),
    "action": pa.string(),
    "args": pa.binary(),
    "message": pa.string(),
    "memory": pa.binary(),
    "status": pa.string(),
    "reason": pa.string(),
    "mind": pa.string(),
    "latency_ms": pa.float64(),
    "how": pa.binary(),
}
_SCHEMA = pa.schema([*(pa.field(n, t) for n, t in _COLUMNS.items()), pa.field("layers", pa.list_(_LAYER))])


@dataclass(slots=True)
class Text:
    """A piece of a prompt that came with an answer: see `Layer`."""

    hash: str
    name: str
    text: str


Kept = tuple[Answer, Sequence[Layer]]


class Pending:
    """The answers to one tick at a time. What is added goes to disk in groups, in a thread of its own."""

    def __init__(self, run: RunDirectory) -> None:
        self.path = run.wal / "pending"
        self._address = (-1, "")
        self._new: list[tuple[Answer, Sequence[Layer]]] = []
        self._file: BinaryIO | None = None
        self._writer: Any = None
        self._writing: asyncio.Task[None] | None = None

    def begin(self, tick: int, digest: str) -> dict[int, Kept]:
        """Start on a tick; returns what already arrived for it, by agent. A torn end is cut off."""
        self._address = (tick, digest)
        found = {a.agent_id: (a, layers) for a, layers in _read(self.path, self._address)}
        if found:
            aside = self.path.with_name("pending.aside")
            self._write(list(found.values()), aside)
            put_in_place(aside, self.path)
        else:
            self.path.unlink(missing_ok=True)
        return found

    def add(self, answer: Answer, layers: Sequence[Layer] = ()) -> None:
        """Have an answer written soon, together with whatever else arrives meanwhile."""
        self._new.append((answer, layers))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._drain())

    async def flush(self) -> None:
        """Return when all that was added is on disk. Raises OSError if it could not be put there."""
        if self._writing is not None:
            await self._writing

    def end(self) -> None:
        """The tick is committed: its answers are on the record proper."""
        if self._file is not None:
            self._file.close()
            self._file = self._writer = None
            self.path.unlink(missing_ok=True)

    async def _drain(self) -> None:
        while self._new:
            group, self._new = self._new, []
            await asyncio.to_thread(self._write, group, self.path)

    def _write(self, group: Iterable[tuple[Answer, Sequence[Layer]]], path: Path) -> None:
        if self._file is None:
            self._file = path.open("wb")
            sync_folder(path.parent)
            tick, digest = self._address
            self._writer = pa.ipc.new_stream(self._file, _SCHEMA.with_metadata({"tick": str(tick), "digest": digest}))
        self._writer.write_batch(_batch(list(group)))
        self._file.flush()
        os.fdatasync(self._file.fileno())


def _batch(group: Sequence[tuple[Answer, Sequence[Layer]]]) -> pa.RecordBatch:
    columns = [pa.array([getattr(a, n) for a, _ in group], t) for n, t in _COLUMNS.items()]
    texts = [[{"hash": x.hash, "name": x.name, "text": x.text} for x in layers] for _, layers in group]
    return pa.RecordBatch.from_arrays([*columns, pa.array(texts, _SCHEMA.field("layers").type)], schema=_SCHEMA)


def _read(path: Path, address: tuple[int, str]) -> Iterator[Kept]:
    """The whole groups, if they are for this tick of this record."""
    with (
        suppress(pa.ArrowException, OSError, EOFError, MemoryError, ValueError),
        pa.OSFile(str(path)) as file,
        _open(file) as found,
    ):
        if not found.schema.equals(_SCHEMA) or _address(found.schema) != address:
            return
        for batch in found:
            batch.validate(full=True)
            for row in batch.to_pylist():
                layers = [Text(**x) for x in row.pop("layers")]
                yield Answer(**row), layers


def _open(file: Any) -> Any:
    return pa.ipc.open_stream(file)


def _address(schema: pa.Schema) -> tuple[int, str]:
    said = schema.metadata or {}
    return int(said.get(b"tick", b"-1")), said.get(b"digest", b"").decode()

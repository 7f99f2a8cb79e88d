"""Snapshots: the world as of a tick, so that resuming does not have to execute everything again.

They are never needed. Each says which tick of which record it belongs to, and anything that is torn, altered or
of another record is passed over.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from ethnos.record.directory import RunDirectory, write_durably

KEEP = 3
"""How many of a run's snapshots are kept."""

_MAGIC = b"ethnos snapshot 1\n"
_CHECK = 32


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A snapshot as it lies on disk, in MessagePack."""

    tick: int
    seq: int
    """The number of the next event."""
    digest: str
    """The digest of the record up to the tick."""
    rules: str
    """Digest of the scenario's declarations under which it was written."""
    world: bytes
    """The world itself, see `World.snapshot`."""


def save(run: RunDirectory, saved: Saved) -> None:
    """Write a snapshot and let the oldest go. Raises OSError."""
    body = msgspec.msgpack.encode(saved)
    write_durably(path_of(run, saved.tick), _MAGIC + blake2b(body, digest_size=_CHECK).digest() + body)
    for old in _paths(run)[:-KEEP]:
        old.unlink(missing_ok=True)


def load(path: Path) -> Saved:
    """Read one. Raises ValueError that says what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    check, body = data[len(_MAGIC) : len(_MAGIC) + _CHECK], data[len(_MAGIC) + _CHECK :]
    if not data.startswith(_MAGIC) or blake2b(body, digest_size=_CHECK).digest() != check:
        raise ValueError("its checksum is wrong")
    try:
        return msgspec.msgpack.decode(body, type=Saved)
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is no snapshot: {error}") from None


def newest_first(run: RunDirectory) -> Iterator[Path]:
    """The snapshots of a run; a run that may only be read, or has none, has none."""
    return reversed(_paths(run))


def path_of(run: RunDirectory, tick: int) -> Path:
    return run.snapshots / f"{tick:010d}.snapshot"


def _paths(run: RunDirectory) -> list[Path]:
    return sorted(run.snapshots.glob("*.snapshot"))

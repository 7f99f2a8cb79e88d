"""The digest of a run: a SHA-256 chain over its events, tick by tick.

It depends on the values alone, not on how they are cut into batches or files, how a column is encoded, or
which library wrote it: two runs have the same digest exactly if the same things happened in them.
"""

from hashlib import sha256

import numpy as np
import pyarrow as pa

START = sha256(b"ethnos record 1").hexdigest()
"""The digest before the first tick."""


def extend(digest: str, events: pa.RecordBatch | pa.Table) -> str:
    """The digest after one more tick, given its rows of the `events` table in order of `seq`.

    Of each column, which rows have a value (a bit each), then those values.
    """
    state = sha256(bytes.fromhex(digest))
    state.update(events.num_rows.to_bytes(8, "little"))
    for column in events.columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        state.update(_presence(array))
        if array.null_count < len(array):
            state.update(_values(array.drop_null() if array.null_count else array))
    return state.hexdigest()


def _presence(array: pa.Array) -> bytes:
    if array.null_count in (0, len(array)):
        return b"all" if array.null_count == 0 else b"none"
    return np.packbits(array.is_valid().to_numpy(zero_copy_only=False)).tobytes()


def _values(array: pa.Array) -> bytes:
    """Little-endian 64-bit numbers; for texts their lengths in bytes, then their UTF-8."""
    if pa.types.is_string(array.type):
        _, offsets, texts = array.buffers()
        ends = np.frombuffer(offsets, "<i4", len(array) + 1, 4 * array.offset).astype("<i8")
        return bytes(np.diff(ends)) + (bytes(memoryview(texts)[ends[0] : ends[-1]]) if texts else b"")
    kind = "<f8" if pa.types.is_floating(array.type) else "<i8"
    return bytes(array.to_numpy().astype(kind, copy=False))

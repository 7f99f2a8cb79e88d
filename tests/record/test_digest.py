"""The digest depends on what happened, not on how it is stored."""

import io
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ethnos.record import digest
from ethnos.record.schema import EVENTS

FLOATS = st.floats(allow_nan=False, width=64)
IDS = st.none() | st.integers(-(2**62), 2**62)
TEXTS = st.none() | st.text(max_size=20)
ROWS = st.lists(st.tuples(IDS, IDS, IDS, IDS, st.none() | FLOATS, TEXTS, TEXTS), max_size=12)


def batch(rows: list[tuple]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "tick": 3,
                "seq": i,
                "kind": "k",
                "actor_id": a,
                "agent_id": b,
                "target_id": c,
                "artifact_id": d,
                "x": n,
                "y": n,
                "amount": n,
                "text": t,
                "data": u,
            }
            for i, (a, b, c, d, n, t, u) in enumerate(rows)
        ],
        EVENTS,
    )


def plainly(events: pa.RecordBatch) -> str:
    """The digest as its definition says, value by value."""
    state = sha256(bytes.fromhex(digest.START) + events.num_rows.to_bytes(8, "little"))
    for column in events.columns:
        values = [v for v in column.to_pylist() if v is not None]
        if len(values) in (0, len(column)):
            state.update(b"all" if len(values) == len(column) else b"none")
        else:
            state.update(np.packbits([v is not None for v in column.to_pylist()]).tobytes())
        if pa.types.is_string(column.type) and values:
            texts = [v.encode() for v in values]
            state.update(np.array([len(t) for t in texts], "<i8").tobytes() + b"".join(texts))
        elif values:
            state.update(np.array(values, "<f8" if pa.types.is_floating(column.type) else "<i8").tobytes())
    return state.hexdigest()


@given(ROWS)
def test_it_is_what_its_definition_says(rows: list[tuple]) -> None:
    events = batch(rows)
    assert digest.extend(digest.START, events) == plainly(events)


@settings(max_examples=30)
@given(ROWS, st.integers(0, 12), st.booleans())
def test_it_survives_slicing_chunking_and_parquet(rows: list[tuple], cut: int, dictionary: bool) -> None:
    events = batch(rows)
    expected = digest.extend(digest.START, events)
    padded = pa.concat_batches([events, events, events]).slice(len(rows), len(rows))
    assert digest.extend(digest.START, padded) == expected
    cut = min(cut, len(rows))
    table = pa.Table.from_batches([events.slice(0, cut), events.slice(cut)], EVENTS)
    assert digest.extend(digest.START, table) == expected
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", use_dictionary=dictionary, row_group_size=3)
    assert digest.extend(digest.START, pq.read_table(file)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((None, 1), (1, None)),
        (("ab", "c"), ("a", "bc")),
        (("", None), (None, "")),
        (("", "x"), ("x", "")),
    ],
)
def test_different_events_have_different_digests(one: tuple, other: tuple) -> None:
    def of(values: tuple) -> str:
        texts = [v if isinstance(v, str) else None for v in values]
        ids = [v if isinstance(v, int) else None for v in values]
        rows = [(i, None, None, None, None, t, None) for i, t in zip(ids, texts, strict=True)]
        return digest.extend(digest.START, batch(rows))

    assert of(one) != of(other)


def test_order_and_history_matter() -> None:
    first, second = batch([(1,) + (None,) * 6]), batch([(2,) + (None,) * 6])
    ahead = digest.extend(digest.extend(digest.START, first), second)
    assert ahead != digest.extend(digest.extend(digest.START, second), first)
    assert ahead != digest.extend(digest.START, second)

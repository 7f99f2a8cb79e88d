"""The tables of a run, column by column, and how a tick becomes rows of them.

Meaning and unit of a column travel in its Arrow field metadata, so every Parquet file explains itself.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from ethnos.world.world import Step


class Layer(Protocol):
    """A piece of a prompt with the hash of its text."""

    hash: str
    name: str
    text: str


FORMAT = 1
"""Version of the record's layout; a run written in another one is refused, never guessed at."""


def _column(name: str, kind: pa.DataType, meaning: str, unit: str = "", *, null: bool = True) -> pa.Field:
    metadata = {"meaning": meaning, **({"unit": unit} if unit else {})}
    return pa.field(name, kind, nullable=null, metadata=metadata)


EVENTS = pa.schema(
    [
        _column("tick", pa.int64(), "when it happened; 0 is the making of the world", "ticks", null=False),
        _column("seq", pa.int64(), "position in the run, dense from 0; what evidence cites", null=False),
        _column("kind", pa.string(), "what kind of event; each has a view of that name", null=False),
        _column("actor_id", pa.int64(), "the agent whose decision caused it; null: the world itself"),
        _column("agent_id", pa.int64(), "the agent it happened to"),
        _column("target_id", pa.int64(), "the other agent concerned"),
        _column("artifact_id", pa.int64(), "the artifact concerned"),
        _column("x", pa.float64(), "where, in the scenario's first coordinate"),
        _column("y", pa.float64(), "where, in the scenario's second coordinate"),
        _column("amount", pa.float64(), "how much, in the unit of the event's kind"),
        _column("text", pa.string(), "words: untrusted, as an agent wrote them"),
        _column("data", pa.string(), "all other fields of the event, as a JSON object"),
    ],
    metadata={"meaning": "Everything that happened, in order. The run's digest is computed from this table."},
)

DECISIONS = pa.schema(
    [
        _column("tick", pa.int64(), "the tick it was made for", "ticks", null=False),
        _column("agent_id", pa.int64(), "who decided", null=False),
        _column("position", pa.int64(), "rank in the order drawn for the tick, from 0", null=False),
        _column("observation", pa.string(), "digest of what the agent was shown (BLAKE2b, 64 bit, hex)"),
        _column("action", pa.string(), "the kind of action asked for", null=False),
        _column("args", pa.string(), "its arguments as asked for, as a JSON object", null=False),
        _column("message", pa.string(), "what it wanted to say aloud; empty: nothing", null=False),
        _column("memory", pa.string(), "the mind's new state as JSON; null: unchanged"),
        _column("status", pa.string(), "how it arrived: answered, late, failed, refused", null=False),
        _column("outcome", pa.string(), "what became of it: done, rejected, late, failed, void", null=False),
        _column("reason", pa.string(), "why, in the words the agent is told", null=False),
        _column("resolved", pa.string(), "the kind of action that was carried out", null=False),
        _column("mind", pa.string(), "which mind made it", null=False),
        _column("latency", pa.float64(), "from question to answer; wall clock, not part of the digest", "ms"),
        _column("how", pa.string(), "provenance given by the mind, as a JSON object; null: none"),
    ],
    metadata={"meaning": "Every turn of every agent: what it asked for and what became of it."},
)

TICKS = pa.schema(
    [
        _column("tick", pa.int64(), "the tick", "ticks", null=False),
        _column("first_seq", pa.int64(), "seq of its first event; if it has none, the next one's", null=False),
        _column("events", pa.int64(), "events in it", "events", null=False),
        _column("population", pa.int64(), "agents alive at its end", "agents", null=False),
        _column("decisions", pa.int64(), "agents asked in it", "agents", null=False),
        _column("rejected", pa.int64(), "decisions the rules refused", "decisions", null=False),
        _column("late", pa.int64(), "decisions that did not come in time", "decisions", null=False),
        _column("failed", pa.int64(), "decisions that failed in the mind", "decisions", null=False),
        _column("stocks", pa.string(), "total of each conserved quantity, as a JSON object", null=False),
        _column("digest", pa.string(), "SHA-256 over all events up to its end, hex", null=False),
        _column("committed", pa.timestamp("ms", tz="UTC"), "when it was on disk; not part of the digest"),
        _column("elapsed", pa.float64(), "how long it took; not part of the digest", "ms"),
    ],
    metadata={"meaning": "One row per completed tick."},
)

LAYERS = pa.schema(
    [
        _column("tick", pa.int64(), "when it was first sent", "ticks", null=False),
        _column("hash", pa.string(), "digest of its text, by which `decisions.how` refers to it", null=False),
        _column("name", pa.string(), "what it is: rules, cohort, persona, notes, history, observation", null=False),
        _column("text", pa.string(), "the words the model got; untrusted where agents wrote them", null=False),
    ],
    metadata={"meaning": "The layers of all prompts, each text once."},
)

TABLES = {"events": EVENTS, "decisions": DECISIONS, "layers": LAYERS, "ticks": TICKS}
"""In the order in which they are sealed: whoever finds a tick in `ticks` finds the rest of it."""


def wal_schema() -> pa.Schema:
    """A segment of the write-ahead log: one record batch of one row per committed tick."""
    lists = [pa.field(name, pa.list_(pa.struct(list(schema)))) for name, schema in TABLES.items()]
    return pa.schema([pa.field("tick", pa.int64(), nullable=False), *lists])


def events_batch(step: Step) -> pa.RecordBatch:
    """The events of one tick."""
    columns: list[Any] = list(zip(*step.events, strict=True)) or [()] * (len(EVENTS) - 1)
    arrays = [pa.array([step.tick] * len(step.events), pa.int64())]
    arrays += [pa.array(c, f.type) for c, f in zip(columns, list(EVENTS)[1:], strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def decisions_batch(step: Step, observations: dict[int, str]) -> pa.RecordBatch:
    """The decisions of one tick. `observations` holds the digest of what each agent was shown."""
    rows = [
        (
            step.tick,
            d.answer.agent_id,
            i,
            observations.get(d.answer.agent_id),
            _text(d.answer.action),
            _text(d.answer.args),
            _text(d.answer.message),
            None if d.answer.memory is None else _text(d.answer.memory),
            d.answer.status,
            d.outcome,
            d.reason,
            d.resolved,
            d.answer.mind,
            d.answer.latency_ms,
            _text(d.answer.how) if d.answer.how else None,
        )
        for i, d in enumerate(step.decisions)
    ]
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(DECISIONS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, DECISIONS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=DECISIONS)


def layers_batch(tick: int, layers: Sequence[Layer]) -> pa.RecordBatch:
    """Layers of prompts that were not on the record before."""
    columns = [[tick] * len(layers), *([getattr(x, n) for x in layers] for n in ("hash", "name", "text"))]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, LAYERS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LAYERS)


def _text(value: str | bytes) -> str:
    """Arrow takes only valid UTF-8; what is not, the world has refused, so a replay misses nothing."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

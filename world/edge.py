"""The world's edge: what came from outside becomes an `Answer`, bounded and in valid UTF-8, or says why not.

What passes here is exactly what is recorded, so a replay sees what the world saw. Whether an action makes sense
is for the rules to say, later.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from ethnos.wire.v1.world_pb2 import Decision, Layer
from ethnos.world.limits import (
    MAX_ACTION_BYTES,
    MAX_HOW_BYTES,
    MAX_KIND_CHARS,
    MAX_LAYER_BYTES,
    MAX_LAYERS,
    MAX_MEMORY_BYTES,
    MAX_MESSAGE_CHARS,
    MAX_REASON_CHARS,
)
from ethnos.world.world import Answer, Status


def receive(
    agent_id: int,
    action: str,
    args: bytes,
    *,
    message: str = "",
    memory: bytes | None = None,
    failure: str = "",
    late: bool = False,
    latency_ms: float = 0.0,
    how: bytes = b"",
    mind: str = "",
) -> Answer:
    """The answer an agent gave. What is too large is dropped and the answer marked as refused."""
    status: Status = "late" if late else "failed" if failure else "answered"
    reason = _valid(failure[:MAX_REASON_CHARS])
    too_large = _too_large(args, message, memory)
    if too_large:
        status, reason = "refused", too_large
        args, message, memory = b"{}", "", None
    return Answer(
        agent_id=agent_id,
        action=_valid(action[:MAX_KIND_CHARS]),
        args=_utf8(args),
        message=_valid(message),
        memory=None if memory is None else _utf8(memory),
        status=status,
        reason=reason,
        mind=mind,
        latency_ms=latency_ms,
        how=_provenance(how),
    )


def _too_large(args: bytes, message: str, memory: bytes | None) -> str:
    if len(args) > MAX_ACTION_BYTES:
        return f"an action of more than {MAX_ACTION_BYTES} bytes"
    if len(message) > MAX_MESSAGE_CHARS:
        return f"a message of more than {MAX_MESSAGE_CHARS} characters"
    if memory is not None and len(memory) > MAX_MEMORY_BYTES:
        return f"a memory of more than {MAX_MEMORY_BYTES} bytes"
    return ""


def received(decision: Decision, mind: str) -> Answer:
    """A decision off the wire, as the world takes it in. `mind` says which mind made it."""
    return receive(
        decision.agent_id,
        decision.action,
        decision.args,
        message=decision.message,
        memory=decision.memory if decision.HasField("memory") else None,
        failure=decision.failure,
        late=decision.late,
        latency_ms=decision.latency_ms,
        how=decision.how,
        mind=mind,
    )


def whole_layers(decision: Decision) -> Iterator[Layer]:
    """The layers of a decision that are what they are called: the record keeps the first text of each hash for good."""
    for layer in decision.layers[:MAX_LAYERS]:
        text = layer.text.encode()
        if len(text) <= MAX_LAYER_BYTES and layer.hash == blake2b(text, digest_size=8).hexdigest():
            yield Layer(hash=layer.hash, name=layer.name[:MAX_KIND_CHARS], text=layer.text)


def clip(data: bytes, limit: int) -> bytes:
    """At most one byte more than allowed: enough to be refused, too little to choke on."""
    return data[: limit + 1]


def _provenance(how: bytes) -> bytes:
    """What the record's views can read: a JSON object of bearable size, or nothing."""
    if not how or len(how) > MAX_HOW_BYTES:
        return b""
    try:
        msgspec.json.decode(how, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b""
    return how


def _utf8(data: bytes) -> bytes:
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


def _valid(text: str) -> str:
    """Without lone surrogates, which no file and no wire takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

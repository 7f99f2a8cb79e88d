"""Who is let in at the world-state service: a token's right has to be enough, and nobody may call without end."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc

from ethnos.rights import Right, may, right_of
from ethnos.world.limits import CALLS_PER_S


@dataclass
class Bucket:
    """Calls that may still be made; it fills with time. Times are seconds of a monotonic clock."""

    per_s: float
    most: float
    left: float = field(init=False)
    then: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.most

    def take(self, now: float) -> bool:
        """Whether one more call may be made."""
        self.left = min(self.most, self.left + (now - self.then) * self.per_s)
        self.then = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Gate(grpc.aio.ServerInterceptor):
    """Before every call."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._buckets: dict[Right, Bucket] = {}

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], call: grpc.HandlerCallDetails
    ) -> Any:
        handler = await continuation(call)
        refusal = self._refusal(call)
        return handler if refusal is None or handler is None else _refuse_like(handler, *refusal)

    def _refusal(self, call: grpc.HandlerCallDetails) -> tuple[grpc.StatusCode, str] | None:
        given: Iterable[tuple[str, str | bytes]] = call.invocation_metadata or ()
        token = next((str(v) for k, v in given if k == "authorization"), "")
        right = right_of(self._secret, token.removeprefix("Bearer "))
        if right is None:
            return grpc.StatusCode.UNAUTHENTICATED, "the run's token is missing or wrong"
        if not may(right, call.method):
            return grpc.StatusCode.PERMISSION_DENIED, f"the right to {right} is not enough for this"
        bucket = self._buckets.setdefault(right, Bucket(CALLS_PER_S, 4 * CALLS_PER_S))
        if right != "act" and not bucket.take(time.monotonic()):
            return grpc.StatusCode.RESOURCE_EXHAUSTED, f"more than {CALLS_PER_S} calls per second"
        return None


def _refuse_like(handler: Any, code: grpc.StatusCode, why: str) -> Any:
    """A handler of the same shape that refuses."""

    async def refuse(request: Any, context: Any) -> Any:
        await context.abort(code, why)

    async def refuse_stream(request: Any, context: Any) -> AsyncIterator[Any]:
        await context.abort(code, why)
        yield

    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(refuse_stream)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse_stream)
    return grpc.unary_unary_rpc_method_handler(refuse)


__all__ = ["Bucket", "Gate"]

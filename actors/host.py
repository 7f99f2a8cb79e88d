"""What runs inside an actor: one agent or many, answering the world's stream.

An agent here is its identity, its mind and its mind's state. It decides exactly once per tick it is asked in;
its new state goes to the world with the decision and comes back when another actor takes it over.
"""

import asyncio
import faulthandler
import inspect
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import grpc
import msgspec

from ethnos import traces
from ethnos.actors.minds.layers import STORE
from ethnos.actors.minds.making import Ask, Tokens, make_mind
from ethnos.errors import MindFailed, OutOfBudget, Refused
from ethnos.logs import about
from ethnos.rights import metadata
from ethnos.society import Society
from ethnos.transport import aio_channel
from ethnos.wire.v1 import world_pb2 as wire
from ethnos.wire.v1 import world_pb2_grpc
from ethnos.world.edge import clip
from ethnos.world.limits import MAX_ACTION_BYTES, MAX_MEMORY_BYTES, MAX_MESSAGE_CHARS
from ethnos.world.scenario import Mind
from ethnos.world.spec import ScenarioSpec
from ethnos.world.turn import Agent, Decision, Turn

STUCK_S = 1.0
"""How long after the deadline a mind that blocks its process is given up, and the process with it."""


class Lost(Exception):
    """The stream to the world broke."""


class Host:
    """Hosts agents of one society."""

    def __init__(
        self,
        society: Society,
        ask: Ask,
        special: Tokens | None = None,
        *,
        mind: Mind | None = None,
        own_process: bool = False,
    ) -> None:
        """`ask` puts a request to one of the society's models; `special` are the tokens those take for their own.

        `mind` takes the place of everybody's own, as a person's does who plays an agent.

        With `own_process` a mind that blocks for longer than the deadline ends the process: whoever started it
        starts another, which goes on with the committed states.
        """
        self._own_process = own_process
        self._society = society
        self._ask = ask
        self._special = special
        self._spec = ScenarioSpec(society.scenario_class())
        self._mind = mind
        self._minds: dict[str, Mind] = {}
        self._agents: dict[int, Agent] = {}
        self._thinking: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()
        """gRPC takes one write at a time; a lock belongs to one event loop, so every stream gets its own."""

    async def live(self, address: str, token: str, number: int, incarnation: int) -> str:
        """Host whatever the world hands over, until it says that the run is over; returns why.

        Raises Lost if the world goes away: whoever started this finds it again and starts over.
        """
        return await self._live(address, token, wire.Hello(host=number, incarnation=incarnation))

    async def play(self, address: str, token: str, agent: int) -> str:
        """Take one agent's place until the run is over; returns why. When this is cancelled, its own mind goes on.

        Raises Refused if that agent cannot be played, Lost if the world goes away.
        """
        return await self._live(address, token, wire.Hello(plays=agent))

    async def _live(self, address: str, token: str, hello: wire.Hello) -> str:
        self._agents.clear()
        self._writing = asyncio.Lock()
        STORE.forget()
        async with aio_channel(address) as channel:
            stream = world_pb2_grpc.WorldStub(channel).Live(metadata=metadata(token))
            try:
                await stream.write(wire.FromHost(hello=hello))
                return await self._answer(stream)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError) as error:
                if _is_cancelled():
                    raise
                if hello.HasField("plays") and await stream.code() == grpc.StatusCode.FAILED_PRECONDITION:
                    raise Refused(await stream.details()) from None
                raise Lost(str(error)) from None
            finally:
                for task in tuple(self._thinking):
                    task.cancel()

    async def _answer(self, stream: Any) -> str:
        while (message := await stream.read()) is not grpc.aio.EOF:
            match message.WhichOneof("message"):
                case "adopt":
                    self.adopt(message.adopt)
                case "release":
                    self.release(message.release.agent_ids)
                    if self._mind is not None and not self._agents:
                        return "the agent is no more"
                case "observations":
                    await self._decide(message.observations, stream)
                case "end":
                    return str(message.end.reason)
        raise Lost("the world closed the stream")

    def release(self, ids: Iterable[int]) -> None:
        """Let go of agents that died or live elsewhere now."""
        for i in ids:
            self._agents.pop(i, None)

    def adopt(self, message: wire.Adopt) -> None:
        """Take agents in, with the state of their last committed decision."""
        for a in message.agents:
            self._agents[a.id] = Agent(
                id=a.id,
                name=a.name,
                cohort=a.cohort,
                persona=msgspec.json.decode(a.persona),
                parent=a.parent if a.HasField("parent") else None,
                generation=a.generation,
                born=a.born,
                inheritance=a.inheritance,
                memory=a.memory,
            )
            if a.cohort not in self._minds:
                self._minds[a.cohort] = self._mind or make_mind(self._society, a.cohort, self._ask, self._special)

    async def _decide(self, shown: wire.Observations, stream: Any) -> None:
        """Answer at once for minds in code; let minds that wait think side by side and answer when they are done."""
        ready: list[wire.Decision] = []
        if self._own_process:
            faulthandler.dump_traceback_later(self._society.decision_deadline + STUCK_S, exit=True)
        for agent_id, observation in zip(shown.agent_ids, shown.observations, strict=True):
            decision = self.think(shown.tick, agent_id, observation, shown.traceparent)
            if isinstance(decision, wire.Decision):
                ready.append(decision)
            else:
                task = asyncio.create_task(self._send_later(stream, shown.tick, decision))
                self._thinking.add(task)
                task.add_done_callback(partial(self._thought, stream))
        if self._own_process:
            faulthandler.cancel_dump_traceback_later()
        if ready:
            await self._send(stream, shown.tick, ready)

    def _thought(self, stream: Any, task: asyncio.Task[None]) -> None:
        self._thinking.discard(task)
        if not task.cancelled() and task.exception() is not None:
            stream.cancel()

    async def _send_later(self, stream: Any, tick: int, decision: Any) -> None:
        try:
            await self._send(stream, tick, [await decision])
        except OutOfBudget as spent:
            async with self._writing:
                await stream.write(wire.FromHost(halt=wire.Halt(reason=str(spent))))

    async def _send(self, stream: Any, tick: int, decisions: list[wire.Decision]) -> None:
        async with self._writing:
            await stream.write(wire.FromHost(decisions=wire.Decisions(tick=tick, decisions=decisions)))

    def think(self, tick: int, agent_id: int, observation: bytes, traceparent: str = "") -> Any:
        """A decision, or an awaitable of one. A mind's failure is its own agent's, told to the world."""
        start = time.perf_counter()
        agent = self._agents[agent_id]
        try:
            turn = Turn(agent, tick, self._spec.decode_observation(observation), self._society.seed)
            with traces.span("decide", traceparent, agent=agent_id, tick=tick):
                made = self._minds[agent.cohort].decide(turn)
            if inspect.isawaitable(made):
                return self._finish(agent_id, agent, _traced(made, agent_id, tick, traceparent), start)
            return self._pack(agent_id, agent, made, start)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - any fault in a mind, also an exit, is that agent's failure
            return _failure(agent_id, error, start)

    async def _finish(self, agent_id: int, agent: Agent, made: Any, start: float) -> wire.Decision:
        try:
            return self._pack(agent_id, agent, await made, start)
        except (OutOfBudget, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            if _is_cancelled():
                raise
            return _failure(agent_id, error, start)

    def _pack(self, agent_id: int, agent: Agent, made: Any, start: float) -> wire.Decision:
        """The decision as it travels, and the agent's own state moved on. Who decides is not for a mind to say."""
        decision = made if isinstance(made, Decision) else Decision(made)
        kind, args = self._spec.encode_action(decision.action)
        packed = wire.Decision(
            agent_id=agent_id,
            action=kind,
            args=clip(args, MAX_ACTION_BYTES),
            message=decision.message[: MAX_MESSAGE_CHARS + 1].encode("utf-8", "replace").decode(),
            latency_ms=(time.perf_counter() - start) * 1000,
            how=msgspec.json.encode(decision.how) if decision.how else b"",
            layers=_layers(),
        )
        if decision.memory is not None:
            packed.memory = clip(decision.memory, MAX_MEMORY_BYTES)
            if len(decision.memory) <= MAX_MEMORY_BYTES:
                agent.memory = decision.memory
        return packed


async def _traced(made: Any, agent_id: int, tick: int, traceparent: str) -> Any:
    with traces.span("decide", traceparent, agent=agent_id, tick=tick), about(agent=agent_id, tick=tick):
        return await made


def _layers() -> list[wire.Layer]:
    """Pieces of prompts that this process has not sent yet."""
    return [wire.Layer(hash=t.hash, name=t.name, text=t.text) for t in STORE.take()]


def _is_cancelled() -> bool:
    """Whether somebody gave up the task that runs this; a mind may raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(agent_id: int, error: BaseException, start: float) -> wire.Decision:
    elapsed = (time.perf_counter() - start) * 1000
    known = error if isinstance(error, MindFailed) else None
    text = str(error) if known else f"{type(error).__name__}: {error}"
    return wire.Decision(
        agent_id=agent_id,
        failure=text[:1000].encode("utf-8", "replace").decode() or "no reason given",
        late=known is not None and known.late,
        how=msgspec.json.encode(known.how) if known and known.how else b"",
        layers=_layers(),
        latency_ms=elapsed,
    )

"""The world-state service: one world, served over gRPC to the actors its agents live in and to whoever watches."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
import msgspec

from ethnos import traces
from ethnos.errors import ClusterError, EthnosError, OutOfBudget, Refused, SocietyError
from ethnos.meters import Meters
from ethnos.record.directory import RunDirectory
from ethnos.record.health import HealthLog
from ethnos.record.log import Log
from ethnos.society import Society
from ethnos.transport import SERVER_OPTIONS, listen
from ethnos.wire.v1 import control_pb2 as control
from ethnos.wire.v1 import control_pb2_grpc, world_pb2_grpc
from ethnos.wire.v1 import world_pb2 as wire
from ethnos.world.clock import Clock
from ethnos.world.edge import received, whole_layers
from ethnos.world.gate import Gate
from ethnos.world.hosts import Host, Placement, adopt, agent_message, show
from ethnos.world.interventions import parse_change
from ethnos.world.limits import HELLO_S, MAX_CHANGE_BYTES, MAX_WATCHERS
from ethnos.world.vitals import EVERY_S, Vitals
from ethnos.world.world import Answer, Step

Phase = control.Status.Phase

_log = logging.getLogger("ethnos.world")

HOST_PATIENCE_S = 300.0
"""How long a tick waits for an actor that is not there before the run is given up."""

PERSON = "human"
"""How the record calls the mind of an agent that a person plays."""

MOST_LOSSES = 3
"""How often in one tick an actor may be lost and asked again; after that its agents have failed to decide."""

MOST_SEATINGS = 3
"""How often in one tick people may take one agent's place: each time the agent's time to decide begins anew."""


@dataclass
class _Asked:
    """The questions of the tick under way."""

    tick: int
    observations: dict[int, bytes]
    waiting: dict[int, set[int]]
    """Host number to the ids it still owes a decision for."""
    deadline: dict[int, float] = field(default_factory=dict)
    """Host number to the monotonic time at which its agents are late; counts from when they were shown."""
    answers: dict[int, Answer] = field(default_factory=dict)
    losses: Counter[int] = field(default_factory=Counter)
    """Host number to how often it was lost while its agents decided."""
    seatings: Counter[int] = field(default_factory=Counter)
    """Agent to how often a person took its place while it owed a decision."""
    shown_at: float = 0.0
    traceparent: str = field(default_factory=traces.here)


class WorldService:
    """Serves one run. `run` returns when it is over; everything else is called by gRPC or by the clock."""

    def __init__(
        self,
        run: RunDirectory,
        society: Society,
        placement: Placement,
        secret: str,
        *,
        tls: bool = False,
        meters: Meters | None = None,
    ) -> None:
        """`secret` is what the tokens for rights are derived from; with `tls` it listens in no other way."""
        self.run_directory = run
        self.society = society
        self.placement = placement
        self.phase: control.Status.Phase.ValueType = Phase.PHASE_STARTING
        self.reason = ""
        self._secret, self._tls = secret, tls
        self._meters = meters
        self._vitals: Vitals | None = None
        self._tick_began = 0.0
        self._clock: Clock | None = None
        self._living: dict[int, None] = {}
        self._anew: dict[int, None] = {}
        """Agents whose hosts will not know, after this tick, what they have become."""
        self._mind_names = {c.cohort: c.mind.label for c in society.population}
        self._asked: _Asked | None = None
        self._news = asyncio.Event()
        self._changed = asyncio.Condition()
        self._paused = False
        self._credit = 0
        self._stop_reason = ""
        self._halted = ""
        self._tokens = 0
        self._wake = asyncio.Event()
        self._over = asyncio.Event()

    async def run(self, bind: str, announce: Callable[[str], None]) -> str:
        """Serve on `bind` and some port, told to `announce`, until the run is over. Returns why it ended.

        Raises RunBusy, RecordDamaged, RecordFull, ClusterError; the record is valid whatever happens.
        """
        server = grpc.aio.server(options=SERVER_OPTIONS, interceptors=[Gate(self._secret)])
        world_pb2_grpc.add_WorldServicer_to_server(_WorldEdge(self), server)
        control_pb2_grpc.add_ControlServicer_to_server(_ControlEdge(self), server)
        address = listen(server, bind, tls=self._tls)
        with Log(self.run_directory) as log, HealthLog(self.run_directory) as health:
            self._clock = Clock(self.society, log)
            self._vitals = Vitals(self.run_directory, health, self._meters)
            looking = asyncio.create_task(self._look_at_itself(self._vitals))
            await server.start()
            try:
                self._clock.recover()
                self._place_all()
                announce(address)
                _log.info("serving at %s", address)
                return await self._live(log)
            finally:
                looking.cancel()
                self._look(self._vitals)
                await self._say_goodbye()
                await server.stop(grace=1.0)
                _log.info("%s at tick %d", self.reason or "ended by an error", log.tick)

    async def _look_at_itself(self, vitals: Vitals) -> None:
        while True:
            self._look(vitals)
            await asyncio.sleep(EVERY_S)

    def _look(self, vitals: Vitals) -> None:
        status = self.status()
        missing = sum(1 for h in self.placement.hosts if h.agents and not h.connected)
        phase = Phase.Name(status.phase).removeprefix("PHASE_").lower()
        rows = self._clock.log.unsealed if self._clock else 0
        vitals.look(status.tick, phase, status.population, missing, rows, self._tokens)

    async def _live(self, log: Log) -> str:
        assert self._clock is not None
        try:
            await self._all_connected()
            reason = await self._until_it_ends(self._clock)
            log.seal()
        except EthnosError as error:
            self.phase, self.reason = Phase.PHASE_FAILED, str(error)
            raise
        stopped = reason == "stopped"
        self.reason = self._stop_reason if stopped else reason
        self.run_directory.finish("stopped" if stopped else "finished", self.reason, log.digest, log.tick)
        self.phase = Phase.PHASE_STOPPED if stopped else Phase.PHASE_FINISHED
        return self.reason

    async def _until_it_ends(self, clock: Clock) -> str:
        try:
            return await clock.run(self, self._gate)
        except OutOfBudget as spent:
            self._stop_reason = str(spent)
            return "stopped"

    async def _all_connected(self) -> None:
        """Wait for the actors, so that their start is not counted as thinking. Raises ClusterError."""
        until = time.monotonic() + HOST_PATIENCE_S
        while missing := [h for h in self.placement.hosts if h.agents and not h.connected]:
            if time.monotonic() > until:
                raise ClusterError(f"{len(missing)} actors did not start within {HOST_PATIENCE_S:.0f} s")
            self.reason = f"starting actors, {len(missing)} to go"
            await self._publish()
            await self._wait_for_news(until)
        self.reason = ""

    async def _say_goodbye(self) -> None:
        for host in (*self.placement.hosts, *self.placement.guests):
            host.send(wire.ToHost(end=wire.End(reason=self.reason)))
        self._over.set()
        await self._publish()
        await asyncio.sleep(0.05)

    async def _gate(self) -> bool:
        """Wait while paused; False to stop."""
        while self._paused and not self._credit and not self._stop_reason:
            self.phase = Phase.PHASE_PAUSED
            await self._publish()
            self._wake.clear()
            await self._wake.wait()
        self._credit = max(0, self._credit - 1)
        if not self._stop_reason:
            self.phase = Phase.PHASE_RUNNING
        return not self._stop_reason

    # the clock's side

    async def ask(self, tick: int, ids: Sequence[int], observations: Sequence[bytes]) -> Mapping[int, Answer]:
        """Show everybody what they see and gather what they decide, until all have or are late."""
        self._tick_began = time.monotonic()
        asked = _Asked(tick, dict(zip(ids, observations, strict=True)), {}, shown_at=time.monotonic())
        for i in ids:
            asked.waiting.setdefault(self.placement.home(i).number, set()).add(i)
        self._asked = asked
        for number in asked.waiting:
            self._show(self.placement.host(number))
        missing_since = time.monotonic()
        while asked.waiting:
            if self._halted:
                raise OutOfBudget(self._halted)
            if all(n in asked.deadline for n in asked.waiting):
                missing_since = time.monotonic()
            elif time.monotonic() - missing_since > HOST_PATIENCE_S:
                raise ClusterError(f"an actor did not come within {HOST_PATIENCE_S:.0f} s at tick {tick}")
            await self._wait_for_news(min(asked.deadline.values(), default=missing_since + HOST_PATIENCE_S))
            self._expire(asked)
        self._asked = None
        return asked.answers

    async def _wait_for_news(self, until: float) -> None:
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._news.wait()

    def _expire(self, asked: _Asked) -> None:
        now = time.monotonic()
        for number in [n for n, t in asked.deadline.items() if t <= now and n in asked.waiting]:
            for i in sorted(asked.waiting.pop(number)):
                elapsed = self.society.decision_deadline * 1000
                asked.answers[i] = Answer(i, status="late", latency_ms=elapsed, mind=self._mind(i))
                self._anew[i] = None

    def _show(self, host: Host, only: Sequence[int] | None = None) -> None:
        """Show a host's agents, or some of them, what they still owe a decision for."""
        asked = self._asked
        if asked is None or not host.connected or host.number not in asked.waiting:
            return
        ids = sorted(asked.waiting[host.number]) if only is None else only
        for message in show(asked.tick, ids, [asked.observations[i] for i in ids], asked.traceparent):
            host.send(message)
        until = time.monotonic() + self.society.decision_deadline
        asked.deadline[host.number] = until if only is None else asked.deadline.get(host.number, until)

    async def committed(self, step: Step, anew: Collection[int]) -> None:
        """Give newborns a home, let the dead go, hand over again who has changed, tell watchers."""
        assert self._clock is not None
        if self._vitals is not None:
            self._vitals.ticked(step, time.monotonic() - self._tick_began)
            if self._clock.snapshot_s is not None:
                self._vitals.saved(self._clock.snapshot_s)
        self._anew.update(dict.fromkeys(anew))
        agents = self._clock.world.agents
        for gone in [i for i in self._living if i not in agents]:
            host = self.placement.remove(gone)
            host.send(wire.ToHost(release=wire.Release(agent_ids=[gone])))
        for i in [i for i in agents if i not in self._living]:
            self.placement.place(i).send(adopt([agents[i]]))
        for i in sorted(i for i in self._anew if i in self._living and i in agents):
            self.placement.home(i).send(adopt([agents[i]]))
        self._anew.clear()
        self._living = dict.fromkeys(agents)
        await self._publish()

    def _place_all(self) -> None:
        assert self._clock is not None
        self._living = dict.fromkeys(self._clock.world.agents)
        for i in self._living:
            self.placement.place(i)

    def _mind(self, agent: int) -> str:
        assert self._clock is not None
        if self.placement.home(agent).guest:
            return PERSON
        return self._mind_names[self._clock.world.agents[agent].cohort]

    # the hosts' side

    def connect(self, hello: wire.Hello) -> Host | None:
        """Take a host in; None if a later incarnation of it is known, or there is no such host.

        Raises Refused if a person asks for an agent that cannot be played.
        """
        if hello.HasField("plays"):
            return self._seat(hello.plays)
        if hello.host >= len(self.placement.hosts) or self._clock is None:
            return None
        host = self.placement.hosts[hello.host]
        if hello.incarnation <= host.incarnation:
            return None
        host.incarnation = hello.incarnation
        _log.debug("host %d is here, for the %dth time", host.number, hello.incarnation + 1)
        host.send(wire.ToHost(end=wire.End(reason="replaced")))
        host.outgoing = asyncio.Queue()
        agents = self._clock.world.agents
        host.send(adopt([agents[i] for i in sorted(host.agents)]))
        if self._asked is not None:
            self._anew.update(dict.fromkeys(i for i in sorted(host.agents) if i in self._asked.answers))
        self._show(host)
        self._news.set()
        return host

    def _seat(self, agent: int) -> Host:
        """Give a person the place of an agent's mind, and the question it owes an answer to."""
        assert self._clock is not None
        if agent not in self._living:
            raise Refused(f"no agent {agent} lives in this society")
        if (home := self.placement.home(agent)).guest:
            raise Refused(f"agent {agent} is played by somebody already")
        if self._asked is not None and agent in self._asked.waiting.get(home.number, ()):
            if self._asked.seatings[agent] >= MOST_SEATINGS:
                raise Refused(f"agent {agent} changed hands {MOST_SEATINGS} times in this tick; wait for the next one")
            self._asked.seatings[agent] += 1
        seat = self.placement.seat(agent)
        seat.outgoing = asyncio.Queue()
        home.send(wire.ToHost(release=wire.Release(agent_ids=[agent])))
        self._move(agent, home, seat)
        return seat

    def _unseat(self, seat: Host) -> None:
        """A person has left: the agent's own mind goes on, with the tick under way if an answer is still owed."""
        seat.outgoing = None
        home = self.placement.unseat(seat)
        if home is not None:
            self._move(min(seat.agents), seat, home)

    def _move(self, agent: int, source: Host, target: Host) -> None:
        """An agent lives elsewhere now, and so does what it owes."""
        assert self._clock is not None
        target.send(adopt([self._clock.world.agents[agent]]))
        asked = self._asked
        if asked is not None and agent in asked.waiting.get(source.number, ()):
            asked.waiting[source.number].discard(agent)
            if not asked.waiting[source.number]:
                del asked.waiting[source.number]
                asked.deadline.pop(source.number, None)
            asked.waiting.setdefault(target.number, set()).add(agent)
            self._show(target, [agent])
        self._news.set()

    def disconnect(self, host: Host, incarnation: int) -> None:
        """A stream broke. Its agents' time stands still until somebody takes the host over."""
        if host.incarnation != incarnation:
            return
        if host.guest:
            self._unseat(host)
            return
        host.outgoing = None
        _log.info("host %d is gone, with %d agents", host.number, len(host.agents))
        if self._asked is not None:
            shown = self._asked.deadline.pop(host.number, None) is not None
            self._asked.losses[host.number] += shown
            if self._asked.losses[host.number] > MOST_LOSSES:
                self._give_up(self._asked, host.number)
            self._news.set()

    def _give_up(self, asked: _Asked, number: int) -> None:
        """A mind that takes its process down whenever it is asked must not hold up the tick for ever."""
        reason = f"its process died {asked.losses[number]} times while it decided"
        for i in sorted(asked.waiting.pop(number, ())):
            asked.answers[i] = Answer(i, status="failed", reason=reason, mind=self._mind(i))
            self._anew[i] = None

    def decided(self, host: Host, incarnation: int, decisions: wire.Decisions) -> None:
        """Take decisions in. Stale and doubled ones, and those of agents that live elsewhere, are dropped."""
        asked = self._asked
        assert self._clock is not None
        self._clock.log.note_layers(layer for d in decisions.decisions for layer in whole_layers(d))
        if asked is None or decisions.tick != asked.tick or host.incarnation != incarnation:
            return
        owed = asked.waiting.get(host.number, set())
        for d in decisions.decisions:
            if d.agent_id not in owed:
                continue
            owed.discard(d.agent_id)
            self._tokens += _tokens(d.how)
            asked.answers[d.agent_id] = answer = received(d, self._mind(d.agent_id))
            self._clock.keep(answer, list(whole_layers(d)))
        if not owed and asked.waiting.pop(host.number, None) is not None:
            asked.deadline.pop(host.number, None)
            self._news.set()

    def halt(self, reason: str) -> None:
        """A host says that there is no going on, such as when the budget is spent: end without this tick."""
        self._halted = reason
        self._news.set()

    # the people's side

    def pause(self) -> None:
        self._paused, self._credit = True, 0

    def resume(self) -> None:
        self._paused = False
        self._wake.set()

    def step(self, ticks: int) -> None:
        if self._paused:
            self._credit += max(1, ticks)
            self._wake.set()

    def stop(self, reason: str) -> None:
        self._stop_reason = reason or "stopped by request"
        self._wake.set()

    def intervene(self, change: bytes) -> int:
        """Have the world changed from outside; returns the tick. Raises Refused, SocietyError."""
        assert self._clock is not None
        if len(change) > MAX_CHANGE_BYTES:
            raise Refused(f"an intervention of more than {MAX_CHANGE_BYTES} bytes")
        if self._over.is_set() or self._clock.done:
            raise Refused("the run is over")
        try:
            data = msgspec.json.decode(change, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise Refused(f"an intervention is a JSON object: {error}") from None
        return self._clock.outside.ask(parse_change(data), self._clock.world)

    def inspect(self, agent: int) -> control.InspectReply | None:
        assert self._clock is not None
        world = self._clock.world
        if agent not in world.agents:
            return None
        about = agent_message(world.agents[agent])
        fields = {f.name: getattr(about, f.name) for f in about.DESCRIPTOR.fields}
        fields.update(
            persona=world.agents[agent].persona, memory=about.memory.decode(), inheritance=about.inheritance.decode()
        )
        return control.InspectReply(
            tick=world.tick, agent=msgspec.json.encode(fields), observation=world.observe([agent])[0]
        )

    def status(self) -> control.Status:
        clock = self._clock
        return control.Status(
            tick=clock.log.tick if clock else -1,
            ticks=self.society.ticks,
            population=len(clock.world.agents) if clock else 0,
            agent_steps=clock.agent_steps if clock else 0,
            hosts_wanted=len(self.placement.hosts),
            phase=self.phase,
            reason=self.reason,
            digest=clock.log.digest if clock else "",
            tokens=self._tokens,
        )

    async def watch(self) -> AsyncIterator[control.Status]:
        """The latest status now and after every change; whoever is slow sees fewer of them."""
        while True:
            yield self.status()
            if self._over.is_set():
                return
            async with self._changed:
                await self._changed.wait()

    async def _publish(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class _Used(msgspec.Struct):
    """What a thinking mind's provenance says of tokens."""

    tokens: int = 0
    completion: int = 0


def _tokens(how: bytes) -> int:
    """Tokens that a decision took; nobody is stopped by provenance that says nothing of them."""
    try:
        used = msgspec.json.decode(how, type=_Used) if how else _Used()
    except msgspec.MsgspecError:
        return 0
    return max(0, used.tokens + used.completion)


class _WorldEdge(world_pb2_grpc.WorldServicer):
    """The gRPC face that hosts see."""

    def __init__(self, service: WorldService) -> None:
        self._service = service

    async def Live(self, requests: Any, context: Any) -> None:  # type: ignore[override]
        try:
            async with asyncio.timeout(HELLO_S):
                first = await context.read()
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "a stream begins with hello, and soon")
            return
        if first is grpc.aio.EOF or first.WhichOneof("message") != "hello":
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a stream begins with hello")
        hello = first.hello
        try:
            host = self._service.connect(hello)
        except Refused as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
            raise
        if host is None or host.outgoing is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this host is not wanted, or was replaced")
            return
        outgoing = host.outgoing
        incarnation = host.incarnation if host.guest else hello.incarnation
        reading = asyncio.create_task(self._read(host, incarnation, context))
        reading.add_done_callback(lambda done: _end_of(outgoing, done))
        try:
            while (message := await outgoing.get()) is not None:
                await context.write(message)
                if message.WhichOneof("message") == "end":
                    return
        finally:
            reading.cancel()
            self._service.disconnect(host, incarnation)

    async def _read(self, host: Host, incarnation: int, context: Any) -> None:
        while (message := await context.read()) is not grpc.aio.EOF:
            match message.WhichOneof("message"):
                case "decisions":
                    self._service.decided(host, incarnation, message.decisions)
                case "halt":
                    self._service.halt(message.halt.reason)


def _end_of(outgoing: asyncio.Queue[wire.ToHost | None], reading: asyncio.Task[None]) -> None:
    """Nobody reads any more, so nothing is written any more; why the stream broke does not matter."""
    if not reading.cancelled():
        reading.exception()
    outgoing.put_nowait(None)


class _ControlEdge(control_pb2_grpc.ControlServicer):
    """The gRPC face that people and tools see."""

    def __init__(self, service: WorldService) -> None:
        self._service = service
        self._watchers = 0

    async def Pause(self, request: control.PauseRequest, context: Any) -> control.Status:
        self._service.pause()
        return self._service.status()

    async def Resume(self, request: control.ResumeRequest, context: Any) -> control.Status:
        self._service.resume()
        return self._service.status()

    async def Step(self, request: control.StepRequest, context: Any) -> control.Status:
        self._service.step(request.ticks)
        return self._service.status()

    async def Stop(self, request: control.StopRequest, context: Any) -> control.Status:
        self._service.stop(request.reason[:200])
        return self._service.status()

    async def Intervene(self, request: control.InterveneRequest, context: Any) -> control.InterveneReply:
        try:
            return control.InterveneReply(tick=self._service.intervene(request.change))
        except (Refused, SocietyError) as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
            raise

    async def Inspect(self, request: control.InspectRequest, context: Any) -> control.InspectReply:
        reply = self._service.inspect(request.agent_id)
        if reply is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no agent {request.agent_id} lives in this society")
        assert reply is not None
        return reply

    async def Watch(self, request: control.WatchRequest, context: Any) -> AsyncIterator[control.Status]:
        if self._watchers >= MAX_WATCHERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WATCHERS} are watching already")
        self._watchers += 1
        try:
            async for status in self._service.watch():
                yield status
        finally:
            self._watchers -= 1

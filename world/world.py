"""The world as a function: (state, decisions) -> (state, events).

Nothing here knows of sockets, processes, files or minds. The service, the in-process runner and the replay are
shells around `World`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
from pydantic import ValidationError

from ethnos import chance
from ethnos.errors import Refused
from ethnos.world.events import (
    Born,
    Died,
    Event,
    Failed,
    Heard,
    Intervened,
    InterventionRefused,
    Late,
    Rejected,
    Said,
)
from ethnos.world.interventions import EditPersona, Intervention, SetParameter, Tell
from ethnos.world.limits import MAX_MEMORY_BYTES, MAX_MESSAGE_CHARS, MAX_NAME_CHARS, MAX_REASON_CHARS
from ethnos.world.scenario import Cohort, Message, News, Scenario
from ethnos.world.spec import Row, ScenarioSpec, fit_name, fit_text
from ethnos.world.turn import Agent

Status = Literal["answered", "late", "failed", "refused"]
"""How a decision arrived; `refused`: too large to be taken in."""


@dataclass(slots=True)
class Answer:
    """A decision as it reaches the world: not yet validated, and all that a replay needs."""

    agent_id: int
    action: str = ""
    args: bytes = b"{}"
    message: str = ""
    memory: bytes | None = None
    status: Status = "answered"
    reason: str = ""
    """What went wrong, if status is `failed` or `refused`."""
    mind: str = ""
    latency_ms: float = 0.0
    how: bytes = b""
    """Provenance from the mind as a JSON object, or empty."""


@dataclass(slots=True)
class Resolved:
    """What became of one answer."""

    answer: Answer
    outcome: Literal["done", "rejected", "late", "failed", "void"]
    """`void`: the agent was gone before its action's turn came."""
    reason: str
    resolved: str
    """The kind of action that was carried out."""


@dataclass(slots=True)
class Step:
    """All that one tick put on the record, before it is committed."""

    tick: int
    events: list[Row]
    decisions: list[Resolved]
    stocks: dict[str, float]
    population: int
    next_seq: int
    edited: list[int] = field(default_factory=list)
    """Agents that were changed from outside: whoever hosts them has to be told."""


@dataclass
class Snapshot:
    """Everything a world is made of beside its scenario, parameters and seed."""

    tick: int
    next_seq: int
    next_agent: int
    agents: dict[int, Agent]
    heard: dict[int, list[Message]]
    outcome: dict[int, str]
    state: Any
    params: dict[str, Any] = field(default_factory=dict)
    """The parameters in force, which interventions may have changed."""


@dataclass
class World:
    """One running world.

    `step` and `setup` are the only things that change it; both return what happened. `seq` is dense from 0.
    """

    scenario: Scenario[Any, Any]
    seed: int
    spec: ScenarioSpec = field(init=False)
    now: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.spec = ScenarioSpec(type(self.scenario))
        self.now = Snapshot(-1, 0, 0, {}, {}, {}, None, self.scenario.params.model_dump(mode="json"))
        self._ids: dict[str, int] = {}
        self._neutral = self.scenario.neutral
        self._neutral_kind = self.spec.encode_action(self._neutral)[0]

    @property
    def tick(self) -> int:
        """The last tick that is complete; -1 before `setup`."""
        return self.now.tick

    @property
    def agents(self) -> dict[int, Agent]:
        return self.now.agents

    def setup(self, cohorts: Sequence[Cohort]) -> Step:
        """Make tick 0."""
        tick = _Tick(self, 0)
        self.now.state = self.scenario.setup(cohorts, tick)
        return self._close(tick, [])

    def due(self) -> list[int]:
        """Ids of the agents to be asked in the next tick, ascending."""
        return sorted(i for i in self.scenario.due(self.now.state, self.agents) if i in self.agents)

    def over(self) -> bool:
        return self.scenario.over(self.now.state, self.agents)

    def observe(self, ids: Sequence[int]) -> list[bytes]:
        """What each of `ids` is shown in the next tick, encoded as JSON."""
        if not ids:
            return []  # a world that is only about to be made has no state to be seen
        news = News(self.now.heard, self.now.outcome)
        seen = self.scenario.observe(self.now.state, [self.agents[i] for i in ids], news)
        encode = self.spec.encode_observation
        return [encode(s) for s in seen]

    def step(self, answers: Mapping[int, Answer], changes: Sequence[Intervention] = ()) -> Step:
        """Resolve the next tick: what is changed from outside, then the answers of those who were asked."""
        tick = _Tick(self, self.tick + 1)
        for asked in answers:
            self.now.heard.pop(asked, None)
        for change in changes:
            self._intervene(tick, change)
        decisions = [
            self._decide(tick, answers[i]) for i in chance.order(self.seed, "order", list(answers), tick=tick.number)
        ]
        self._deliver(tick)
        self.scenario.advance(self.now.state, tick)
        return self._close(tick, decisions)

    def become(self, scenario: Scenario[Any, Any], seed: int) -> None:
        """Go on under other parameters and another seed from the next tick on."""
        self.scenario, self.seed = scenario, seed
        self.now.params = scenario.params.model_dump(mode="json")

    def copy(self) -> "World":
        """The same world once more."""
        twin = World(self.scenario, self.seed)
        twin.restore(self.snapshot())
        return twin

    def try_out(self, changes: Sequence[Intervention], after: int = 0) -> None:
        """Whether the next tick could begin with these changes, after so many others.

        Raises Refused; nothing happens to this world.
        """
        twin = self.copy()
        tick = _Tick(twin, self.tick + 1)
        tick.changes = after
        for change in changes:
            twin._apply(tick, change)

    def _intervene(self, tick: "_Tick", change: Intervention) -> None:
        try:
            self.try_out([change], tick.changes)
        except Refused as refusal:
            tick.emit(InterventionRefused(_printable(str(refusal)[:MAX_REASON_CHARS]), change.change()))
            return
        self._apply(tick, change)

    def _apply(self, tick: "_Tick", change: Intervention) -> None:
        """Carry out a change. Raises Refused, possibly half-way: it is tried out on a copy first."""
        about = getattr(change, "agent", None)
        agent = None if about is None else tick.who(about)
        where = (getattr(change, n, None) for n in ("x", "y", "amount"))
        tick.emit(Intervened(agent.id if agent else None, change.do, change.change(), *where))
        match change:
            case SetParameter():
                self.become(with_parameter(self.scenario, change.name, change.value), self.seed)
            case Tell():
                self._tell(tick, change)
            case EditPersona() if agent is not None:
                agent.persona = {**agent.persona, **change.persona}
                tick.edited.append(agent.id)
            case _:
                self.scenario.intervene(self.now.state, change, tick)
        tick.changes += 1

    def _tell(self, tick: "_Tick", change: Tell) -> None:
        text = fit_text(change.text, MAX_MESSAGE_CHARS)
        listeners = list(self.agents) if change.to is None else [tick.who(w).id for w in change.to]
        said = tick.emit(Said(None, text))
        for listener in sorted(listeners):
            tick.emit(Heard(listener, None, said))
            self.now.heard.setdefault(listener, []).append(Message(change.speaker, text))

    def _decide(self, tick: "_Tick", answer: Answer) -> Resolved:
        agent = self.agents.get(answer.agent_id)
        if agent is None:
            return Resolved(answer, "void", "it was gone before its turn came", "")
        tick.actor = agent.id
        try:
            return self._resolve(tick, agent, answer)
        finally:
            tick.actor = None

    def _resolve(self, tick: "_Tick", agent: Agent, answer: Answer) -> Resolved:
        if answer.status == "late":
            tick.emit(Late(agent.id))
            return self._fall_back(tick, agent, answer, "late", "no decision in time")
        if answer.status == "failed":
            tick.emit(Failed(agent.id, answer.reason[:MAX_REASON_CHARS]))
            return self._fall_back(tick, agent, answer, "failed", answer.reason[:MAX_REASON_CHARS])
        try:
            if answer.status == "refused":
                raise Refused(answer.reason)
            _take_in(agent, answer.memory)
            if answer.message:
                tick.say(agent.id, fit_text(answer.message, MAX_MESSAGE_CHARS))
            action = self.spec.decode_action(answer.action, answer.args)
            note = self.scenario.act(self.now.state, agent, action, tick)
        except Refused as refusal:
            reason = str(refusal)[:MAX_REASON_CHARS]
            tick.emit(Rejected(agent.id, _printable(reason), _printable(answer.action[:40])))
            return self._fall_back(tick, agent, answer, "rejected", _printable(reason))
        self.now.outcome[agent.id] = note or "done"
        return Resolved(answer, "done", note or "", answer.action)

    def _fall_back(
        self,
        tick: "_Tick",
        agent: Agent,
        answer: Answer,
        outcome: Literal["rejected", "late", "failed"],
        reason: str,
    ) -> Resolved:
        self.scenario.act(self.now.state, agent, self._neutral, tick)
        self.now.outcome[agent.id] = f"{outcome}: {reason}"
        return Resolved(answer, outcome, reason, self._neutral_kind)

    def _deliver(self, tick: "_Tick") -> None:
        for (speaker, text), seq in zip(tick.said, tick.said_seq, strict=True):
            agent = self.agents.get(speaker)
            if agent is None:
                continue
            for listener in self.scenario.audience(self.now.state, agent, self.agents):
                tick.emit(Heard(listener, speaker, seq))
                self.now.heard.setdefault(listener, []).append(Message(agent.name, text))

    def _close(self, tick: "_Tick", decisions: list[Resolved]) -> Step:
        self.now.tick = tick.number
        stocks = dict(self.scenario.stocks(self.now.state))
        return Step(tick.number, tick.rows, decisions, stocks, len(self.agents), self.now.next_seq, tick.edited)

    def snapshot(self) -> bytes:
        """The world as MessagePack, the same bytes for the same world. `restore` takes it back."""
        return msgspec.msgpack.encode(self.now, enc_hook=_array_out)

    def restore(self, data: bytes) -> None:
        """Become the world that `snapshot` wrote. Raises msgspec.MsgspecError for anything else."""
        self.now = msgspec.msgpack.decode(data, type=Snapshot)
        self.now.state = msgspec.convert(self.now.state, self.scenario.State, dec_hook=_array_in)
        self.scenario = type(self.scenario)(self.scenario.Params.model_validate(self.now.params))
        self._ids = {a.name: a.id for a in self.agents.values()}


class _Tick:
    """One tick under way: see `ethnos.world.scenario.Tick`."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.agents = world.agents
        self.said: list[tuple[int, str]] = []
        self.said_seq: list[int] = []
        self.rows: list[Row] = []
        self.edited: list[int] = []
        self.changes = 0
        self.actor: int | None = None
        self._world = world
        self._specs = world.spec.events

    def emit(self, event: Event) -> int:
        now = self._world.now
        seq = now.next_seq
        now.next_seq = seq + 1
        self.rows.append(self._specs[type(event)].row(event, seq, self.actor))
        return seq

    def say(self, speaker: int, text: str) -> None:
        self.said.append((speaker, text))
        self.said_seq.append(self.emit(Said(speaker, text)))

    def find(self, name: str) -> Agent:
        found = self._world._ids.get(name)
        if found is None:
            raise Refused(f"nobody here is called {name[:MAX_NAME_CHARS]!r}")
        return self.agents[found]

    def who(self, ref: int | str) -> Agent:
        """The living agent of that id or name. Raises Refused if there is none."""
        if isinstance(ref, str):
            return self.find(ref)
        if ref not in self.agents:
            raise Refused(f"there is no agent {ref}")
        return self.agents[ref]

    def rng(self, purpose: str, agent: int = 0) -> np.random.Generator:
        return chance.generator(self._world.seed, purpose, agent=agent, tick=self.number)

    def uniforms(self, purpose: str, places: Sequence[int] | np.ndarray) -> np.ndarray:
        return chance.uniforms(self._world.seed, purpose, places, tick=self.number)

    def born(
        self,
        *,
        cohort: str,
        persona: Mapping[str, float | str],
        name: str = "",
        parent: Agent | None = None,
        x: float | None = None,
        y: float | None = None,
    ) -> Agent:
        now = self._world.now
        name = fit_name(name) if name else self._name_for(now.next_agent)
        if name in self._world._ids:
            raise Refused(f"the name {name!r} is taken")
        agent = Agent(
            id=now.next_agent,
            name=name,
            cohort=cohort,
            persona=dict(persona),
            parent=parent.id if parent else None,
            generation=parent.generation + 1 if parent else 0,
            born=self.number,
            inheritance=parent.memory if parent else b"",
        )
        now.next_agent += 1
        now.agents[agent.id] = agent
        self._world._ids[name] = agent.id
        self.emit(Born(agent.id, name, cohort, agent.generation, agent.persona, agent.parent, x, y))
        return agent

    def _name_for(self, number: int) -> str:
        """A name for one that was given none; somebody may have taken the obvious one for its child."""
        name = f"{self._world.scenario.name_prefix}{number}"
        while name in self._world._ids:
            name += "x"
        return name

    def died(self, agent: int, cause: str) -> None:
        now = self._world.now
        gone = now.agents.pop(agent)
        del self._world._ids[gone.name]
        now.heard.pop(agent, None)
        now.outcome.pop(agent, None)
        self.emit(Died(agent, cause, self.number - gone.born))


def _take_in(agent: Agent, memory: bytes | None) -> None:
    """A mind's new state holds even if the rules then refuse its action: it remembers having tried."""
    if memory is None:
        return
    if len(memory) > MAX_MEMORY_BYTES:
        raise Refused(f"a memory of {len(memory)} bytes, at most {MAX_MEMORY_BYTES} are allowed")
    agent.memory, agent.inheritance = memory, b""


def with_parameter(scenario: Scenario[Any, Any], name: str, value: Any) -> Scenario[Any, Any]:
    """The scenario with one parameter changed. Raises Refused."""
    if any(name == f or name.startswith(f + ".") or f.startswith(name + ".") for f in scenario.fixed):
        raise Refused(f"{name} belongs to how the world was made and cannot change any more")
    params = scenario.params.model_dump(mode="json")
    *parents, last = name.split(".")
    place = params
    for part in parents:
        place = place.get(part) if isinstance(place, dict) else None
    if not isinstance(place, dict) or (last not in place and not parents):
        raise Refused(f"there is no parameter {name!r}")
    place[last] = value
    try:
        return type(scenario)(scenario.Params.model_validate(params))
    except ValidationError as error:
        raise Refused(f"{name}: {error.errors(include_url=False)[0]['msg']}") from None


def _printable(text: str) -> str:
    """What agents sent may reappear in a reason; control characters and lone surrogates may not."""
    return text.encode("utf-8", "replace").decode().translate(_UNPRINTABLE)


_UNPRINTABLE = dict.fromkeys((*range(32), *range(127, 160)), "\ufffd")


def _array_out(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": value.tobytes()}
    raise NotImplementedError(f"a scenario's state cannot hold a {type(value).__name__}")


def _array_in(kind: type, value: Any) -> Any:
    if kind is np.ndarray:
        return np.frombuffer(value["data"], dtype=value["dtype"]).reshape(value["shape"]).copy()
    raise NotImplementedError(f"a scenario's state cannot hold a {kind.__name__}")

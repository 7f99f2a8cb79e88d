"""Tests that ship with Ethnos: whoever writes a world or a mind gets these for free.

`play` runs a small society in this process, without cluster, network or disk. `check_scenario` holds a
scenario against everything the platform relies on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from ethnos import chance
from ethnos.world.events import COLUMNS
from ethnos.world.scenario import Cohort, Decision, Mind, Scenario, Turn
from ethnos.world.spec import Row, ScenarioSpec
from ethnos.world.world import Answer, Step, World

Population = Sequence[tuple[Cohort, Mind]]
"""Cohorts of founders, each with the mind of its members and of their offspring."""


def play(scenario: Scenario[Any, Any], population: Population, seed: int = 0, ticks: int = 100) -> Iterator[Step]:
    """Run a society and yield tick 0 and every tick after it, until the world ends. Minds may not be async.

    >>> from ethnos.world.scenarios.commons import Commons, CommonsParams, Fixed
    >>> steps = list(play(Commons(CommonsParams(talk=0)), [(Cohort("villagers", 5), Fixed(take=11))]))
    >>> steps[-1].tick, steps[-1].stocks
    (4, {'fish': 0})
    """
    world = World(scenario, seed)
    minds = {cohort.name: mind for cohort, mind in population}
    yield world.setup([cohort for cohort, _ in population])
    while world.tick < ticks and not world.over():
        yield world.step(answers(world, minds))


def answers(world: World, minds: Mapping[str, Mind]) -> dict[int, Answer]:
    """What everyone who is due decides, by cohort, over the same bytes that a cluster would exchange."""
    due = world.due()
    given = {}
    for agent_id, seen in zip(due, world.observe(due), strict=True):
        agent = world.agents[agent_id]
        turn = Turn(agent, world.tick + 1, world.spec.decode_observation(seen), world.seed)
        given[agent_id] = answer(world.spec, agent_id, minds[agent.cohort].decide(turn))
    return given


def answer(spec: ScenarioSpec, agent_id: int, decided: Any) -> Answer:
    """An action or a `Decision` as it travels to the world."""
    decision = decided if isinstance(decided, Decision) else Decision(decided)
    kind, args = spec.encode_action(decision.action)
    return Answer(agent_id, kind, args, message=decision.message, memory=decision.memory)


def value(row: Row, field: str) -> Any:
    """A field of an event as it stands on the record."""
    if field in COLUMNS:
        return row[3 + COLUMNS.index(field)]
    return json.loads(row[3 + len(COLUMNS)])[field]


def flows(spec: ScenarioSpec, step: Step) -> dict[str, float]:
    """How much each conserved quantity should have changed in a tick, going by its events."""
    change: dict[str, float] = dict.fromkeys(spec.scenario.conserved, 0)
    for quantity, sources in spec.scenario.conserved.items():
        for flow in sources:
            kind = spec.events[flow.event].kind
            change[quantity] += flow.sign * sum(value(r, flow.field) for r in step.events if r[1] == kind)
    return change


def check_scenario(
    scenario: type[Scenario[Any, Any]], params: Any = None, *, agents: int = 6, ticks: int = 30, seed: int = 1
) -> None:
    """Hold a scenario against what the platform relies on. Raises AssertionError that says what is wrong.

    Fuzzed and scripted societies are played, each several times over, and must come out the same whatever the
    order of answers, and after a restart from a snapshot; their ledgers must balance and their events fit the
    record. No action, however odd, may raise anything but Refused.
    """
    params = scenario.Params() if params is None else params
    spec = ScenarioSpec(scenario)
    for action in spec.actions.values():
        assert action.schema["additionalProperties"] is False, f"{action.kind}: its schema is not closed"
    assert "fuzz" not in scenario.minds, "a scripted mind may not be called fuzz"
    for mind in ("fuzz", *scenario.minds):
        _check_mind(scenario, params, mind, agents, ticks, seed)


def _check_mind(scenario: Any, params: Any, mind: str, agents: int, ticks: int, seed: int) -> None:
    first = _Trial(scenario, params, mind, agents, seed)
    again = _Trial(scenario, params, mind, agents, seed)
    turned = _Trial(scenario, params, mind, agents, seed)
    for tick in range(ticks):
        if first.world.over():
            break
        step = first.go()
        _check_step(first.world.spec, step, first.stocks, first.seen_rows)
        first.note(step)
        assert again.go().events == step.events, f"{mind}: the same seed gave other events in tick {tick + 1}"
        if tick == ticks // 2:
            turned.restart()
        assert turned.go(reverse=True).events == step.events, (
            f"{mind}: tick {tick + 1} depends on the order of answers or did not survive a snapshot"
        )


class _Trial:
    """One world played by one mind."""

    def __init__(self, scenario: Any, params: Any, mind: str, agents: int, seed: int) -> None:
        self.world = World(scenario(params), seed)
        self.mind = None if mind == "fuzz" else scenario.minds[mind]()
        self.stocks: dict[str, float] = {}
        self.seen_rows = 0
        step = self.world.setup([Cohort("some", agents - agents // 2), Cohort("others", agents // 2)])
        _check_step(self.world.spec, step, dict.fromkeys(scenario.conserved, 0), 0)
        self.note(step)

    def note(self, step: Step) -> None:
        self.stocks, self.seen_rows = step.stocks, self.seen_rows + len(step.events)

    def go(self, reverse: bool = False) -> Step:
        due = self.world.due()
        shown = dict(zip(due, self.world.observe(due), strict=True))
        if reverse:
            due = due[::-1]
            assert self.world.observe(due) == [shown[i] for i in due], "observations depend on their order"
        return self.world.step({i: self._answer(i, shown[i]) for i in due})

    def _answer(self, agent_id: int, seen: bytes) -> Answer:
        world = self.world
        if self.mind is None:
            return fuzzed(world.spec, agent_id, [a.name for a in world.agents.values()], world.seed, world.tick)
        turn = Turn(world.agents[agent_id], world.tick + 1, world.spec.decode_observation(seen), world.seed)
        return answer(world.spec, agent_id, self.mind.decide(turn))

    def restart(self) -> None:
        saved = self.world.snapshot()
        self.world = World(type(self.world.scenario)(self.world.scenario.params), self.world.seed)
        self.world.restore(saved)
        assert self.world.snapshot() == saved, "a restored world writes another snapshot"


def _check_step(spec: ScenarioSpec, step: Step, before: Mapping[str, float], first_seq: int) -> None:
    seqs = [row[0] for row in step.events]
    assert seqs == list(range(first_seq, first_seq + len(seqs))), f"tick {step.tick}: seq is not dense"
    for row in step.events:
        _check_row(row)
    for quantity, change in flows(spec, step).items():
        residual = step.stocks[quantity] - before[quantity] - change
        assert abs(residual) < 1e-9, f"tick {step.tick}: {residual} {quantity} from nowhere"


def _check_row(row: Row) -> None:
    *ids, x, y, amount, text, data = row[2:]
    assert all(i is None or type(i) is int for i in ids), f"an id is no whole number: {row}"
    assert all(n is None or (type(n) in (int, float) and abs(n) < 2**53) for n in (x, y, amount)), f"bad: {row}"
    assert text is None or isinstance(text.encode(), bytes)
    assert data is None or isinstance(json.loads(data), dict), f"data that is no JSON object: {row}"


_ODD_TEXTS = ("", "nobody", "a\x00b", "\u202egnp", "x" * 5_000, "'; drop table events; --", "naïve 名前")
_ODD_NUMBERS = (-1000, -1, 0, 1, 2, 3, 10, 1000, 2**31, 2**63, 10**30)
_ODD_BYTES = (
    b"",
    b"null",
    b"[]",
    b"{",
    b'{"amount": NaN}',
    b'{"amount": "10 energy"}',
    b"\xff\xfe",
    b"[" * 9_999,
)


def fuzzed(spec: ScenarioSpec, agent_id: int, names: Sequence[str], seed: int, tick: int) -> Answer:
    """What a mind might send that has gone mad: mostly well-formed, often impossible, sometimes garbage."""
    rng = chance.generator(seed, "fuzz", agent=agent_id, tick=tick)
    action = spec.actions[list(spec.actions)[int(rng.integers(len(spec.actions)))]]
    args = {name: _odd(schema, names, rng) for name, schema in action.schema.get("properties", {}).items()}
    message = "" if rng.random() < 0.7 else _pick((*names, *_ODD_TEXTS), rng)
    if rng.random() < 0.1:
        return Answer(agent_id, action.kind, _pick(_ODD_BYTES, rng), message)
    kind = action.kind if rng.random() < 0.97 else _pick(_ODD_TEXTS, rng)
    return Answer(agent_id, kind, msgspec.json.encode(args), message)


def _odd(schema: Mapping[str, Any], names: Sequence[str], rng: np.random.Generator) -> Any:
    """A value that a field's schema allows, or nearly."""
    if "anyOf" in schema:
        return _odd(_pick(schema["anyOf"], rng), names, rng)
    if "enum" in schema:
        return _pick(schema["enum"], rng)
    match schema.get("type"):
        case "integer":
            return int(rng.integers(6)) if rng.random() < 0.7 else _pick(_ODD_NUMBERS, rng)
        case "number":
            return _pick((*_ODD_NUMBERS, 0.5, 1e308), rng)
        case "string":
            return _pick(names, rng) if names and rng.random() < 0.7 else _pick(_ODD_TEXTS, rng)
        case "boolean":
            return bool(rng.integers(2))
        case _:
            return None


def _pick(things: Sequence[Any], rng: np.random.Generator) -> Any:
    return things[int(rng.integers(len(things)))]


__all__ = ["Population", "answer", "answers", "check_scenario", "flows", "fuzzed", "play", "value"]

"""Commons: a shared resource that grows back, and the temptation to take more than that.

A few harvesters live from one pool. Each month they talk, then each privately takes what it likes; what is
left doubles, up to the pool's capacity. If less than the collapse threshold is left, there is nothing more to
share, for ever. Taking half of what would regrow keeps the pool for all time; taking a little more ruins it
within months.

After GovSim (Piatti et al. 2024, "Cooperate or Collapse"), whose numbers are the defaults. A month goes like
this, each line a tick or more:

1. Talk: one harvester per tick may say something that all hear; who comes when is drawn or rotates.
2. Harvest: all say at once, and in private, how much they want. If that is more than there is, everybody gets
   the same share of what was asked for, or those who come first in a drawn order get theirs.
3. The harvests are made known; then the pool collapses or grows, and the next month begins.

Fish are whole numbers and are conserved: they come with the first stock and by growth, and go by harvest.

The dilemma can be turned around (`pool.harmful`): the pool is waste that grows the same way, harvesting it is
work that all profit from, and the world ends when it outgrows its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta
from pydantic import Field

from ethnos.errors import Refused
from ethnos.world.interventions import AddAgent, AddResources, Intervention, RemoveAgent, RemoveResources
from ethnos.world.scenario import (
    Agent,
    Cohort,
    Decision,
    Event,
    Flow,
    Message,
    News,
    Option,
    Params,
    Scenario,
    Tick,
    Turn,
    View,
)
from ethnos.world.sharing import first_come, growth, proportionally


class Pool(Params):
    """What is shared."""

    initial: int | None = Field(default=None, ge=0, le=10**9)
    """Fish at the start; if not given, the capacity (GovSim: 100), or half of it if the pool is harmful."""
    capacity: int = Field(default=100, ge=1, le=10**9)
    """Most fish there can be (GovSim: 100)."""
    growth: float = Field(default=2.0, ge=0, le=1000)
    """Factor by which what is left grows from one month to the next, rounded down (GovSim: 2)."""
    collapse_below: int = Field(default=5, ge=0, le=10**9)
    """The pool collapses if fewer fish than this are left after a harvest (GovSim: 5)."""
    harmful: bool = False
    """Whether it is waste instead, to be removed: then it collapses if it outgrows its capacity."""


class CommonsParams(Params):
    """Commons' parameters."""

    months: int = Field(default=12, ge=1, le=100_000)
    """Length of the world, in months (GovSim: 12)."""
    talk: int = Field(default=10, ge=0, le=1_000)
    """Utterances per month, one a tick; 0: nobody ever talks (GovSim: up to 10)."""
    turns: Literal["drawn", "rotating"] = "drawn"
    """How speakers follow each other: in an order drawn every month, or by number, a month's first being the
    last month's second."""
    assignment: Literal["proportional", "random"] = "proportional"
    """Who gets how much if more is asked for than there is."""
    hint: bool = False
    """Whether everybody is told what would happen if all did the same (GovSim's universalisation)."""
    join: dict[str, Annotated[int, Field(ge=2)]] = Field(default_factory=dict)
    """Cohorts that join later: the month in which each comes, by name. The others are there at once."""
    pool: Pool = Pool()


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing: listen, or harvest nothing."""


@dataclass(frozen=True, slots=True)
class Harvest:
    """Ask for so much of the pool, in private. Only in the month's harvest, when nobody talks any more."""

    amount: Annotated[int, Meta(ge=0, description="whole units")]


Fish = Annotated[int, Meta(extra_json_schema={"unit": "fish"})]
Month = Annotated[int, Meta(extra_json_schema={"unit": "months"})]


@dataclass(frozen=True, slots=True)
class PoolMade(Event):
    """The pool came into being, with so many fish."""

    amount: Fish
    capacity: Fish
    growth: float
    collapse_below: Fish
    harmful: bool


@dataclass(frozen=True, slots=True)
class Harvested(Event):
    """A harvester got this from the pool."""

    agent_id: int
    amount: Fish
    wanted: Annotated[int, Meta(description="what it asked for", extra_json_schema={"unit": "fish"})]
    month: Month


@dataclass(frozen=True, slots=True)
class PoolGrew(Event):
    """What was left grew by so much at the end of a month."""

    amount: Fish
    month: Month


@dataclass(frozen=True, slots=True)
class Restocked(Event):
    """Somebody from outside put fish into the pool, or took some out."""

    amount: Annotated[int, Meta(description="less than 0: taken out", extra_json_schema={"unit": "fish"})]
    month: Month


@dataclass(frozen=True, slots=True)
class Collapsed(Event):
    """The pool collapsed at the end of a month, with so much left; there is nothing to harvest any more."""

    amount: Fish
    month: Month


@dataclass(slots=True)
class Catch:
    """What somebody got in the last harvest."""

    name: str
    amount: int


@dataclass(slots=True)
class Member:
    """A harvester, with what it got in all months together."""

    name: str
    gain: int = 0


@dataclass(slots=True)
class Newcomers:
    """Harvesters that are to join."""

    month: int
    cohort: str
    count: int
    persona: dict[str, float | str]


@dataclass(slots=True)
class CommonsState:
    """The commons between two ticks."""

    pool: int
    month: int = 1
    spoken: int = 0
    """How many turns to talk are over in this month."""
    speakers: list[int] = field(default_factory=list)
    """Whose turns they are, one after the other."""
    talk: list[Message] = field(default_factory=list)
    """What was said in this month."""
    wanted: dict[int, int] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)
    report: list[Catch] = field(default_factory=list)
    """The last harvest."""
    newcomers: list[Newcomers] = field(default_factory=list)
    collapsed: bool = False


@dataclass(slots=True)
class Observation:
    """What a harvester knows when it is its turn to talk or to harvest."""

    month: int
    months: int
    phase: Literal["talk", "harvest"]
    pool: int
    capacity: int
    gain: int
    """What you got in all months together."""
    members: list[str]
    """All who harvest, you among them."""
    report: list[Catch]
    """What each got in the last harvest."""
    talk: list[Message]
    """What was said in this month so far."""
    hint: str = ""
    outcome: str = ""
    """What became of your last action."""


class _Talker:
    """Says how much it thinks right, and takes what it likes."""

    def decide(self, turn: Turn) -> Decision:
        seen: Observation = turn.observation
        if seen.phase == "talk":
            return Decision(Wait(), self.says(seen))
        return Decision(Harvest(self.takes(seen)))

    def says(self, seen: Observation) -> str:
        return f"I think {self.takes(seen)} for each of us is right."

    def takes(self, seen: Observation) -> int:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Sustainable(_Talker):
    """Takes its share of half of what would regrow if the pool doubles, so that the pool stays as it is."""

    share: float = 0.5
    """The part of the pool that all together may take."""

    def takes(self, seen: Observation) -> int:
        return int(seen.pool * self.share / len(seen.members))


@dataclass(frozen=True, slots=True)
class Fixed(_Talker):
    """Takes the same every month."""

    take: int = 10

    def takes(self, seen: Observation) -> int:
        return min(self.take, seen.capacity)


@dataclass(frozen=True, slots=True)
class Greedy(_Talker):
    """Takes all there is, and says nothing."""

    def says(self, seen: Observation) -> str:
        return ""

    def takes(self, seen: Observation) -> int:
        return seen.pool


TAKEN = """
SELECT month, what, CAST(sum(fish) AS BIGINT) AS fish FROM (
    SELECT tick, month, 'wanted' AS what, wanted AS fish FROM harvested
    UNION ALL SELECT tick, month, 'caught', amount FROM harvested
    UNION ALL SELECT tick, month, 'grown back', amount FROM pool_grew
) WHERE tick <= $tick GROUP BY month, what ORDER BY month, what
"""

CATCHES = """
SELECT h.month, a.name AS harvester, h.amount AS fish
FROM harvested h JOIN agents a USING (agent_id) WHERE h.tick <= $tick ORDER BY h.month, a.agent_id
"""


class Commons(Scenario[CommonsParams, CommonsState]):
    """Harvesters share a pool that grows back, unless they take too much of it."""

    Params = CommonsParams
    State = CommonsState
    Observation = Observation
    actions = (Wait, Harvest)
    neutral = Wait()
    events = (PoolMade, Harvested, PoolGrew, Restocked, Collapsed)
    minds = {"sustainable": Sustainable, "fixed": Fixed, "greedy": Greedy}
    conserved = {"fish": (Flow(PoolMade), Flow(Harvested, sign=-1), Flow(PoolGrew), Flow(Restocked))}
    views = (
        View("Fish wanted, caught and grown back", TAKEN, "month", "fish", "line", "what"),
        View("Who caught how many", CATCHES, "month", "fish", "bars", "harvester"),
    )
    validations = "ethnos.world.truths.commons"
    name_prefix = "harvester"
    fixed = ("join", "pool.initial")

    def impossible(self, cohorts: Sequence[Cohort]) -> Iterable[str]:
        known = {c.name: c.count for c in cohorts}
        for name in self.params.join:
            if name not in known:
                yield f"no cohort {name!r} that could join; there are {', '.join(known)}"
        if not sum(n for c, n in known.items() if c not in self.params.join):
            yield "nobody is there from the start"

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> CommonsState:
        pool, join = self.params.pool, self.params.join
        first = pool.initial if pool.initial is not None else pool.capacity // (2 if pool.harmful else 1)
        state = CommonsState(first)
        tick.emit(PoolMade(first, pool.capacity, pool.growth, pool.collapse_below, pool.harmful))
        for c in cohorts:
            group = Newcomers(join.get(c.name, 1), c.name, c.count, dict(c.persona))
            state.newcomers.append(group)
        self._begin_month(state, tick)
        return state

    def _begin_month(self, state: CommonsState, tick: Tick) -> None:
        for group in (g for g in state.newcomers if g.month == state.month):
            for _ in range(group.count):
                agent = tick.born(cohort=group.cohort, persona=group.persona)
                state.members[agent.id] = Member(agent.name)
        state.newcomers = [g for g in state.newcomers if g.month > state.month]
        state.spoken, state.talk = 0, []
        state.speakers = self._speakers(state, list(tick.agents), tick)

    def _speakers(self, state: CommonsState, ids: list[int], tick: Tick) -> list[int]:
        if not ids or not self.params.talk:
            return []
        if self.params.turns == "drawn":
            ids = [int(i) for i in tick.rng("speakers").permutation(ids)]
            first = 0
        else:
            first = state.month - 1
        return [ids[(first + turn) % len(ids)] for turn in range(self.params.talk)]

    def due(self, state: CommonsState, agents: Mapping[int, Agent]) -> Iterable[int]:
        return agents.keys() if _is_harvest(state) else [state.speakers[state.spoken]]

    def observe(self, state: CommonsState, agents: Sequence[Agent], news: News) -> list[Any]:
        names, hint = [m.name for m in state.members.values()], self._hint(state)
        return [
            Observation(
                month=state.month,
                months=self.params.months,
                phase="harvest" if _is_harvest(state) else "talk",
                pool=state.pool,
                capacity=self.params.pool.capacity,
                gain=state.members[agent.id].gain,
                members=names,
                report=state.report,
                talk=state.talk,
                hint=hint,
                outcome=news.outcome.get(agent.id, ""),
            )
            for agent in agents
        ]

    def _hint(self, state: CommonsState) -> str:
        if not self.params.hint or not self.params.pool.growth:
            return ""
        keep = int((state.pool - state.pool / self.params.pool.growth) / len(state.members))
        side, change = ("less", "grows") if self.params.pool.harmful else ("more", "shrinks")
        return f"If everybody takes {side} than {keep}, the pool {change} from this month to the next."

    def told(self) -> str:
        pool = self.params.pool
        thing, act = ("waste", "remove") if pool.harmful else ("fish", "catch")
        low, high = f"fewer than {pool.collapse_below} are left", f"it would grow to more than {pool.capacity}"
        return (
            f"A few harvesters share one pool of {thing}. Each month they talk one after the other, then each says in "
            f"private how much it wants to {act}. Afterwards all are told who got how much. What is left is multiplied "
            f"by {pool.growth:g} from one month to the next, up to {pool.capacity}. If {high if pool.harmful else low} "
            f"after a harvest, the pool collapses for ever. It goes on for {self.params.months} months."
        )

    def options(self, observation: Any) -> Sequence[Option]:
        if observation.phase == "talk":
            return [Option(Wait)]
        return [Option(Wait), Option(Harvest, {"amount": range(self.params.pool.capacity + 1)})]

    def act(self, state: CommonsState, agent: Agent, action: Any, tick: Tick) -> str | None:
        if isinstance(action, Wait):
            return None
        if not _is_harvest(state):
            raise Refused("this is the time to talk, not to harvest")
        if action.amount > self.params.pool.capacity:
            raise Refused(f"the pool never holds more than {self.params.pool.capacity}")
        state.wanted[agent.id] = action.amount
        return f"you asked for {action.amount}"

    def advance(self, state: CommonsState, tick: Tick) -> None:
        if _is_harvest(state):
            self._share_out(state, tick)
            self._regrow(state, tick)
            state.month += 1
            self._begin_month(state, tick)
            return
        state.talk += [Message(state.members[speaker].name, text) for speaker, text in tick.said]
        state.spoken += 1

    def _share_out(self, state: CommonsState, tick: Tick) -> None:
        order = [int(i) for i in tick.rng("assignment").permutation(list(state.members))]
        wanted = {i: state.wanted.get(i, 0) for i in order}
        assign = proportionally if self.params.assignment == "proportional" else first_come
        got = assign(wanted, state.pool)
        for number, member in state.members.items():
            tick.emit(Harvested(number, got[number], wanted[number], state.month))
            member.gain += got[number]
        state.pool -= sum(got.values())
        state.report = [Catch(member.name, got[i]) for i, member in state.members.items()]
        state.wanted = {}

    def _regrow(self, state: CommonsState, tick: Tick) -> None:
        pool = self.params.pool
        grown = int(state.pool * pool.growth)
        state.collapsed = grown > pool.capacity if pool.harmful else state.pool < pool.collapse_below
        if state.collapsed:
            tick.emit(Collapsed(state.pool, state.month))
            return
        added = growth(state.pool, pool.growth, pool.capacity)
        tick.emit(PoolGrew(added, state.month))
        state.pool += added

    def intervene(self, state: CommonsState, change: Intervention, tick: Tick) -> None:
        """Fish may be brought or taken, harvesters may come at once or go."""
        match change:
            case AddResources() | RemoveResources():
                self._restock(state, change, tick)
            case AddAgent():
                agent = tick.born(cohort=change.cohort, persona=change.persona, name=change.name)
                state.members[agent.id] = Member(agent.name)
            case RemoveAgent():
                self._take_away(state, tick.who(change.agent).id, tick)
            case _:
                super().intervene(state, change, tick)

    def _restock(self, state: CommonsState, change: AddResources | RemoveResources, tick: Tick) -> None:
        if change.x is not None or change.y is not None:
            raise Refused("there are no places in this world")
        amount = change.amount if isinstance(change, AddResources) else -min(change.amount, state.pool)
        if state.pool + amount > self.params.pool.capacity:
            raise Refused(f"the pool holds {state.pool} of at most {self.params.pool.capacity} already")
        state.pool += amount
        tick.emit(Restocked(amount, state.month))

    def _take_away(self, state: CommonsState, number: int, tick: Tick) -> None:
        """A harvester goes; its turns to talk are shared out among the others."""
        if len(state.members) == 1:
            raise Refused("somebody has to stay")
        del state.members[number]
        state.wanted.pop(number, None)
        others = list(state.members)
        state.speakers = [others[t % len(others)] if s == number else s for t, s in enumerate(state.speakers)]
        tick.died(number, "taken away")

    def stocks(self, state: CommonsState) -> Mapping[str, float]:
        return {"fish": state.pool}

    def over(self, state: CommonsState, agents: Mapping[int, Agent]) -> bool:
        return state.collapsed or state.month > self.params.months


def _is_harvest(state: CommonsState) -> bool:
    return state.spoken >= len(state.speakers)

"""Donor game: giving costs the giver and helps another, who cannot pay back but can be seen by the next.

In every round half of the players meet the other half. A donor may give a share of what it has; the recipient gets a
multiple of that. Nobody meets the same partner for long, so nobody can pay back; but a donor sees how its recipient
has treated others. Giving is worth it only if those who give are given to: by reputation (Nowak and Sigmund 1998).

After the donor game that Vallinder and Hughes (2024) let language models play over generations, whose numbers are the
defaults. A generation goes like this:

1. Newcomers write down a strategy, having seen those of the survivors of the last generation. This takes one tick.
2. Rounds, each a tick: two halves, drawn for the generation, are donors in turn. Each donor meets a recipient drawn
   from the other half and sees, with chance `known`, its conduct: the mean share it gave, its last deed, the last deed
   of whom that had been done to, and so on. It gives, keeps, or (if allowed) pays to make the recipient poorer.
3. The richer half survives; each survivor has one child that takes the place, the mind and the start of one of the
   others. All begin the next generation with the same wealth and no past.

Wealth is conserved: it comes by endowment and by the growth of gifts, and goes by punishment and at a generation's end.

Truths. If all give the share f, (a, b), a donor's and a recipient's wealth, becomes (b + 2fa, (1 - f)a) in the next
round. Those who give to all who ever gave hold out against those who never give if `known` is above c/b.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta
from pydantic import Field

from ethnos.errors import Refused
from ethnos.world.ledger import OUTSIDE, Ledger
from ethnos.world.pairing import across, shuffled
from ethnos.world.scenario import Agent, Cohort, Event, Flow, News, Option, Params, Quote, Scenario, Tick, Turn, View

RICHEST = 1e6
"""Wealth of a player beyond which sums would no longer be exact to 1e-9."""


class DonorParams(Params):
    """The donor game's parameters."""

    generations: int = Field(default=10, ge=1, le=10_000)
    """Length of the world, generations (Vallinder and Hughes: 10)."""
    rounds: int = Field(default=12, ge=1, le=1_000)
    """Rounds of a generation; everybody is a donor in every other one (Vallinder and Hughes: 12)."""
    wealth: float = Field(default=10.0, ge=0, le=RICHEST)
    """What each has when a generation begins, units (Vallinder and Hughes: 10)."""
    factor: float = Field(default=2.0, ge=0, le=10)
    """How many times what was given the recipient gets (Vallinder and Hughes: 2)."""
    gift: Literal["share", "fixed"] = "share"
    """A share is one of the donor's wealth (Vallinder and Hughes), or of the same sum for all (Nowak and Sigmund)."""
    cost: float = Field(default=1.0, gt=0, le=1_000)
    """That sum, units: the most that is given in a round if gifts are fixed (Nowak and Sigmund: c = 1)."""
    known: float = Field(default=1.0, ge=0, le=1)
    """The chance that a donor is shown its recipient's conduct (Nowak and Sigmund's q; Vallinder and Hughes: 1)."""
    depth: int = Field(default=3, ge=0, le=10)
    """How many deeds deep conduct is shown (Vallinder and Hughes: 3)."""
    punishment: bool = False
    """Whether a donor may pay x to take from its recipient (a variant of Vallinder and Hughes)."""
    harm: float = Field(default=2.0, ge=0, le=10)
    """How many times x the punished one loses (Vallinder and Hughes: 2)."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Give nothing."""


@dataclass(frozen=True, slots=True)
class Give:
    """Give your recipient a share of what you can give. It gets a multiple of what you give up."""

    share: Annotated[float, Meta(ge=0, le=1, description="from 0 (nothing) to 1 (all)")]


@dataclass(frozen=True, slots=True)
class Punish:
    """Pay, so that your recipient loses a multiple of it."""

    amount: Annotated[float, Meta(gt=0, description="units that you pay")]


@dataclass(frozen=True, slots=True)
class Plan:
    """Write down the strategy that you will follow as a donor. If you survive, newcomers see it."""

    strategy: Annotated[str, Meta(min_length=1, max_length=1_000)]


Units = Annotated[float, Meta(extra_json_schema={"unit": "units of wealth"})]
Round = Annotated[int, Meta(description="round of the generation")]
Generation = Annotated[int, Meta(description="generation of players, from 1")]


@dataclass(frozen=True, slots=True)
class Endowed(Event):
    """A player begins a generation with so much."""

    agent_id: int
    amount: Units
    generation: Generation


@dataclass(frozen=True, slots=True)
class Planned(Event):
    """A player wrote down its strategy."""

    agent_id: int
    text: str
    generation: Generation


@dataclass(frozen=True, slots=True)
class Gave(Event):
    """A donor gave something, or nothing."""

    agent_id: Annotated[int, Meta(description="the donor")]
    target_id: Annotated[int, Meta(description="the recipient")]
    amount: Annotated[float, Meta(description="what the donor gave up", extra_json_schema={"unit": "units of wealth"})]
    grown: Annotated[
        float, Meta(description="what came into the world by it", extra_json_schema={"unit": "units of wealth"})
    ]
    share: Annotated[float, Meta(description="of what it could give")]
    informed: Annotated[bool, Meta(description="whether it was shown the recipient's conduct")]
    generation: Generation
    round: Round


@dataclass(frozen=True, slots=True)
class Punished(Event):
    """A donor paid, and the recipient lost a multiple of it, as far as it had it."""

    agent_id: Annotated[int, Meta(description="the donor")]
    target_id: Annotated[int, Meta(description="the recipient")]
    amount: Annotated[float, Meta(description="what the donor paid", extra_json_schema={"unit": "units of wealth"})]
    lost: Annotated[float, Meta(description="what the recipient lost", extra_json_schema={"unit": "units of wealth"})]
    generation: Generation
    round: Round


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """A generation is over: what a player has is its score, and is gone."""

    agent_id: int
    amount: Units
    survives: bool
    generation: Generation


@dataclass(slots=True)
class Deed:
    """What somebody did as a donor."""

    donor: str
    recipient: str
    share: float
    """What it gave, as a share of what it could give; less than 0: it paid to take from the recipient."""


@dataclass(slots=True)
class Past:
    """A deed, and the last deed of whom it was done to."""

    deed: Deed
    before: int
    """Its number, or -1."""


@dataclass(slots=True)
class Player:
    """A player in its generation."""

    name: str
    strategy: str = ""
    shares: float = 0.0
    """The sum of the shares it gave."""
    turns: int = 0
    """How often it was a donor."""
    last: int = -1
    """The number of its last deed, or -1."""


@dataclass(slots=True)
class Elder:
    """A survivor of the last generation."""

    name: str
    strategy: str
    score: float


@dataclass(slots=True)
class DonorState:
    """The game between two ticks."""

    wealth: Ledger = field(default_factory=Ledger)
    players: dict[int, Player] = field(default_factory=dict)
    generation: int = 1
    round: int = 0
    """The round that comes next; 0: newcomers write their strategies."""
    halves: list[list[int]] = field(default_factory=list)
    meets: dict[int, int] = field(default_factory=dict)
    """The recipient of each donor in the coming round."""
    informed: dict[int, bool] = field(default_factory=dict)
    """Which donors are shown their recipient's conduct."""
    newcomers: list[int] = field(default_factory=list)
    elders: list[Elder] = field(default_factory=list)
    past: list[Past] = field(default_factory=list)
    """All deeds of the generation."""
    giving: dict[int, float] = field(default_factory=dict)
    """The share that a donor is about to give."""
    paying: dict[int, float] = field(default_factory=dict)
    """What a donor is about to pay to punish, units."""


@dataclass(slots=True)
class Observation:
    """What a player knows when it is its turn."""

    phase: Literal["plan", "give"]
    generation: int
    generations: int
    round: int
    rounds: int
    wealth: float
    strategy: str
    """What you wrote down."""
    elders: list[Elder]
    """The survivors of the last generation; only when you write down your strategy."""
    recipient: str = ""
    recipient_wealth: float = 0.0
    informed: bool = False
    """Whether you know how the recipient has treated others."""
    gave: float | None = None
    """The mean share it gave so far; nothing if it was no donor yet or you do not know."""
    conduct: list[Deed] = field(default_factory=list)
    """Its last deed as a donor, the last deed of whom that was done to, and so on."""
    outcome: str = ""
    """What became of your last action."""


class _Donor:
    """Says what it is and gives as it likes."""

    def decide(self, turn: Turn) -> Plan | Give:
        seen: Observation = turn.observation
        return Plan(self.__doc__ or "none") if seen.phase == "plan" else Give(self.gives(seen))

    def gives(self, seen: Observation) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Discriminator(_Donor):
    """Gives to those who have given, and to those it knows nothing of."""

    share: float = 0.5
    """What it gives."""
    at_least: float = 1e-6
    """The mean share that somebody must have given to be given anything."""

    def gives(self, seen: Observation) -> float:
        return self.share if seen.gave is None or seen.gave >= self.at_least else 0.0


@dataclass(frozen=True, slots=True)
class Giver(_Donor):
    """Gives to everybody."""

    share: float = 0.5
    """What it gives."""

    def gives(self, seen: Observation) -> float:
        return self.share


@dataclass(frozen=True, slots=True)
class Defector(_Donor):
    """Gives to nobody."""

    def gives(self, seen: Observation) -> float:
        return 0.0


SHARES = """
SELECT g.generation, a.cohort, avg(g.share) AS share
FROM gave g JOIN agents a USING (agent_id) WHERE g.tick <= $tick GROUP BY ALL ORDER BY ALL
"""

SCORES = """
SELECT s.generation, a.cohort, avg(s.amount) AS wealth
FROM scored s JOIN agents a USING (agent_id) WHERE s.tick <= $tick GROUP BY ALL ORDER BY ALL
"""


class DonorGame(Scenario[DonorParams, DonorState]):
    """Donors may give to strangers who cannot pay back, but are seen by the next."""

    Params = DonorParams
    State = DonorState
    Observation = Observation
    actions = (Keep, Give, Punish, Plan)
    neutral = Keep()
    events = (Endowed, Planned, Gave, Punished, Scored)
    minds = {"discriminator": Discriminator, "giver": Giver, "defector": Defector}
    conserved = {
        "wealth": (
            Flow(Endowed),
            Flow(Gave, "grown"),
            Flow(Punished, sign=-1),
            Flow(Punished, "lost", sign=-1),
            Flow(Scored, sign=-1),
        )
    }
    views = (
        View("Mean share given", SHARES, "generation", "share", "line", "cohort"),
        View("Mean wealth at the end of a generation", SCORES, "generation", "wealth", "line", "cohort"),
    )
    validations = "ethnos.world.truths.donor"
    name_prefix = "player"

    def impossible(self, cohorts: Sequence[Cohort]) -> Iterable[str]:
        count, p = sum(c.count for c in cohorts), self.params
        if count < 2 or count % 2:
            yield f"{count} players; an even number is needed, for all to meet somebody"
        if p.gift == "share" and p.wealth * max(p.factor, 1.0) ** p.rounds > RICHEST:
            yield f"{p.rounds} rounds in which all give all would make somebody richer than {RICHEST:g}"

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> DonorState:
        state = DonorState()
        for cohort in (c for c in cohorts for _ in range(c.count)):
            self._join(state, tick.born(cohort=cohort.name, persona=cohort.persona))
        self._begin(state, tick)
        return state

    def _join(self, state: DonorState, agent: Agent) -> None:
        state.players[agent.id] = Player(agent.name)
        state.wealth.open(agent.id)
        state.newcomers.append(agent.id)

    def _begin(self, state: DonorState, tick: Tick) -> None:
        """Everybody gets the same, and is drawn into one of the halves that are donors in turn."""
        for number in state.players:
            state.wealth.transfer(OUTSIDE, number, self.params.wealth)
            tick.emit(Endowed(number, self.params.wealth, state.generation))
        order = shuffled(list(state.players), tick.rng("halves"))
        half = len(order) // 2
        state.halves, state.round, state.past = [order[:half], order[half:]], 0, []

    def _meet(self, state: DonorState, tick: Tick) -> None:
        """Draw who gives to whom in the coming round, and who is shown whose conduct."""
        donors, recipients = state.halves if state.round % 2 else state.halves[::-1]
        state.meets = dict(sorted(across(donors, recipients, tick.rng("meets"))))
        luck = tick.uniforms("known", list(state.meets))
        state.informed = {i: bool(u < self.params.known) for i, u in zip(state.meets, luck, strict=True)}

    def due(self, state: DonorState, agents: Mapping[int, Agent]) -> Iterable[int]:
        return state.meets if state.round else state.newcomers

    def observe(self, state: DonorState, agents: Sequence[Agent], news: News) -> list[Any]:
        return [self._seen(state, agent.id, news.outcome.get(agent.id, "")) for agent in agents]

    def _seen(self, state: DonorState, number: int, outcome: str) -> Any:
        p = self.params
        seen = Observation(
            phase="give" if state.round else "plan",
            generation=state.generation,
            generations=p.generations,
            round=state.round,
            rounds=p.rounds,
            wealth=state.wealth[number],
            strategy=state.players[number].strategy,
            elders=[] if state.round else state.elders,
            outcome=outcome,
        )
        if number in state.meets and state.round:
            self._show_recipient(state, number, seen)
        return seen

    def _show_recipient(self, state: DonorState, number: int, seen: Any) -> None:
        target = state.meets[number]
        partner = state.players[target]
        seen.recipient, seen.recipient_wealth = partner.name, state.wealth[target]
        seen.informed = state.informed[number]
        if seen.informed and partner.turns:
            seen.gave = partner.shares / partner.turns
            seen.conduct = self._conduct(state, partner.last)

    def _conduct(self, state: DonorState, deed: int) -> list[Deed]:
        shown: list[Deed] = []
        while deed >= 0 and len(shown) < self.params.depth:
            shown.append(state.past[deed].deed)
            deed = state.past[deed].before
        return shown

    def told(self) -> str:
        p = self.params
        most = "all it has" if p.gift == "share" else f"{p.cost:g} units"
        punish = (
            f" Instead of giving, a donor may pay some units, and the recipient loses {p.harm:g} times as many."
            if p.punishment
            else ""
        )
        return (
            f"Players begin a generation with {p.wealth:g} units each and play {p.rounds} rounds, with changing "
            f"partners. In every other round a player is a donor: it may give a recipient any share of {most}, and the "
            f"recipient gets {p.factor:g} times what was given. The recipient cannot pay back, but others may see how "
            f"a donor has behaved.{punish} After the last round the richer half survives into the next generation; "
            "newcomers, who see the survivors' strategies, take the place of the others, and all begin with the same "
            "wealth again. You want to survive. Before the first round newcomers write down a strategy."
        )

    def show(self, observation: Any, quote: Quote) -> str:
        seen = observation
        lines = [f"This is generation {seen.generation} of {seen.generations}."]
        lines += self._show_plan(seen, quote) if seen.phase == "plan" else self._show_round(seen, quote)
        if seen.outcome:
            lines.append(f"What came of your last action: {quote(seen.outcome)}")
        return "\n".join(lines)

    def _show_plan(self, seen: Any, quote: Quote) -> list[str]:
        elders = [f"{quote(e.name)} survived with {e.score:.2f} units: {quote(e.strategy)}" for e in seen.elders]
        return [*elders, "Write down the strategy that you will follow as a donor."]

    def _show_round(self, seen: Any, quote: Quote) -> list[str]:
        lines = [
            f"Round {seen.round} of {seen.rounds}: you are a donor and have {seen.wealth:.2f} units.",
            f"Your recipient is {quote(seen.recipient)}, who has {seen.recipient_wealth:.2f} units.",
        ]
        if seen.gave is not None:
            lines.append(f"So far it gave {seen.gave:.0%} of what it could, on average. What was done last:")
            lines += [f"- {_deed(deed, quote)}" for deed in seen.conduct]
        else:
            lines.append("It was no donor yet." if seen.informed else "You do not know how it has treated others.")
        return [*lines, f"Your strategy: {quote(seen.strategy)}"] if seen.strategy else lines

    def options(self, observation: Any) -> Sequence[Option]:
        if observation.phase == "plan":
            return [Option(Plan)]
        return [Option(Give), Option(Keep), *([Option(Punish)] if self.params.punishment else [])]

    def act(self, state: DonorState, agent: Agent, action: Any, tick: Tick) -> str | None:
        if isinstance(action, Plan):
            return self._plan(state, agent.id, action, tick)
        if not isinstance(action, Keep) and not state.round:
            raise Refused("this is the time to write down a strategy")
        if isinstance(action, Punish) and not self.params.punishment:
            raise Refused("nobody may be punished")
        if isinstance(action, Punish) and action.amount > state.wealth[agent.id]:
            raise Refused(f"you have only {state.wealth[agent.id]:.6g} units")
        if isinstance(action, Give):
            state.giving[agent.id] = action.share
        elif isinstance(action, Punish):
            state.paying[agent.id] = action.amount
        return None

    def _plan(self, state: DonorState, number: int, action: Plan, tick: Tick) -> str:
        if state.round:
            raise Refused("the strategies are written down already")
        state.players[number].strategy = action.strategy
        tick.emit(Planned(number, action.strategy, state.generation))
        return "you wrote down your strategy"

    def audience(self, state: DonorState, speaker: Agent, agents: Mapping[int, Agent]) -> Iterable[int]:
        """Nobody: players know of each other what they see, and what elders wrote."""
        return ()

    def advance(self, state: DonorState, tick: Tick) -> None:
        for donor, target in state.meets.items():
            self._carry_out(state, donor, target, tick)
        state.giving, state.paying, state.newcomers = {}, {}, []
        state.round += 1
        if state.round > self.params.rounds:
            self._succeed(state, tick)
        else:
            self._meet(state, tick)

    def _carry_out(self, state: DonorState, donor: int, target: int, tick: Tick) -> None:
        if donor in state.paying:
            share = self._punish(state, donor, target, state.paying[donor], tick)
        else:
            share = state.giving.get(donor, 0.0)
            self._give(state, donor, target, share, tick)
        giver, partner = state.players[donor], state.players[target]
        deed = Deed(giver.name, partner.name, share)
        # donors do not receive in the round in which they give: what the partner did last is what the donor saw
        state.past.append(Past(deed, partner.last))
        giver.last, giver.turns, giver.shares = len(state.past) - 1, giver.turns + 1, giver.shares + max(share, 0.0)

    def _give(self, state: DonorState, donor: int, target: int, share: float, tick: Tick) -> None:
        p, has = self.params, state.wealth[donor]
        amount = share * (has if p.gift == "share" else min(has, p.cost))
        state.wealth.transfer(donor, OUTSIDE, amount)
        state.wealth.transfer(OUTSIDE, target, amount * p.factor)
        grown, informed = amount * p.factor - amount, state.informed[donor]
        tick.emit(Gave(donor, target, amount, grown, share, informed, state.generation, state.round))

    def _punish(self, state: DonorState, donor: int, target: int, amount: float, tick: Tick) -> float:
        """Carry it out; returns what it cost the donor as a share of its wealth, as less than 0."""
        has = state.wealth[donor]
        lost = min(amount * self.params.harm, state.wealth[target])
        state.wealth.transfer(donor, OUTSIDE, amount)
        state.wealth.transfer(target, OUTSIDE, lost)
        tick.emit(Punished(donor, target, amount, lost, state.generation, state.round))
        return -amount / has

    def _succeed(self, state: DonorState, tick: Tick) -> None:
        """The richer half survives and has children; all scores are counted and gone."""
        order = shuffled(list(state.players), tick.rng("ties"))
        ranked = sorted(order, key=lambda i: -state.wealth[i])
        survivors = sorted(ranked[: len(ranked) // 2])
        self._score(state, survivors, tick)
        state.generation += 1
        state.meets, state.informed = {}, {}
        if state.generation > self.params.generations:
            return
        for number in sorted(ranked[len(ranked) // 2 :]):
            state.wealth.close(number)
            del state.players[number]
            tick.died(number, "not among the richer half")
        for number in survivors:
            state.players[number] = Player(state.players[number].name, state.players[number].strategy)
            parent = tick.agents[number]
            self._join(state, tick.born(cohort=parent.cohort, persona=parent.persona, parent=parent))
        self._begin(state, tick)

    def _score(self, state: DonorState, survivors: Sequence[int], tick: Tick) -> None:
        state.elders = [Elder(state.players[i].name, state.players[i].strategy, state.wealth[i]) for i in survivors]
        for number in state.players:
            amount = state.wealth[number]
            tick.emit(Scored(number, amount, number in survivors, state.generation))
            state.wealth.transfer(number, OUTSIDE, amount)

    def stocks(self, state: DonorState) -> Mapping[str, float]:
        return {"wealth": state.wealth.circulating}

    def over(self, state: DonorState, agents: Mapping[int, Agent]) -> bool:
        return state.generation > self.params.generations


def _deed(deed: Deed, quote: Quote) -> str:
    if deed.share < 0:
        return f"{quote(deed.donor)} paid {-deed.share:.0%} of its wealth to take from {quote(deed.recipient)}"
    return f"{quote(deed.donor)} gave {deed.share:.0%} to {quote(deed.recipient)}"

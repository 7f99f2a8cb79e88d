"""Transmission chain: a story passes from teller to teller, and what survives the passing is culture.

In the first generation some tellers are given a story. In every further one, each teller retells what those it listens
to told in the generation before, in its own words, from memory. Nobody may look at the first text again. What is hard
to remember goes, what is expected comes in, numbers drift to where tellers think they belong. Bartlett (1932) let one
person after the other redraw a picture and retell a story; Kirby, Mesoudi and others made a method of it; LLM-Culture
(Perez et al. 2024) lets language models be the tellers, each with a personality and a way of retelling.

Who listens to whom is a graph: a chain (Bartlett's), a circle, a full network, a caveman network of cliques with one
link from each to the next, and others. A tick is a generation, and goes like this:

1. Everybody who was told something in the last generation is shown it, all of it or a few texts drawn at random.
2. It tells a text of its own, saying which one it built upon, or keeps silent.
3. Those who listen to it will be shown that text in the next generation. A teller's earlier text fades.

Every telling is on record with the texts that were shown to its teller and the one it built upon, so ancestry needs no
guessing. Words are what is conserved: those in circulation (the last text of each teller) come by telling and go by
fading.

Truths. If each item is kept with probability r, the share r^k is left after k retellings. Copying at random among N
loses diversity by 1/N a generation, and a variant takes over with a chance equal to its share at the start. A biased
retelling ends at its attractor wherever it started. Cliques stay more different from each other than random groups of a
full network.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from pydantic import Field

from ethnos.errors import Refused
from ethnos.world import graph as graphs
from ethnos.world.graph import Graph
from ethnos.world.scenario import Agent, Cohort, Event, Flow, News, Option, Params, Quote, Scenario, Tick, Turn, View
from ethnos.world.texts import TextStore, sentences

MOST_LINKS = 100_000
"""Each is an event when the world is made."""

STORY = (
    "Two brothers went down to the river before dawn. They had 40 eggs in a basket. An old woman sat in a boat without "
    "oars. She asked them for half of the eggs. The elder brother refused. The younger gave her 7. She laughed and the "
    "river rose. The elder brother was never seen again. The younger came home with an empty basket. Since then nobody "
    "fishes there at night."
)


class ChainParams(Params):
    """The transmission chain's parameters."""

    network: graphs.Shape = "chain"
    """Who listens to whom: in a chain each to the one before it, in all others both ways (LLM-Culture: chain,
    circle, full, caveman)."""
    degree: int = Field(default=5, ge=1, le=1000)
    """Mean number of links of a teller; in a caveman network the size of a cave. Chain, circle and full have their own
    (design choice)."""
    origins: list[Annotated[str, Field(min_length=1, max_length=20_000)]] = Field(
        default=[STORY], min_length=1, max_length=10_000
    )
    """The stories given in the first generation; if there are several, they go around among those who begin (our own
    story, ten sentences)."""
    begin: Literal["auto", "first", "everyone"] = "auto"
    """Who is given a story: the first teller, or everyone. auto: the first in a chain, everyone elsewhere."""
    shown: int = Field(default=0, ge=0, le=10_000)
    """Most texts a teller is shown in a generation, drawn at random from all that it was told; 0: all, texts (design
    choice)."""
    hears_itself: bool = False
    """Whether a teller is also shown its own last text, as in models of copying among all."""
    words: int = Field(default=300, ge=1, le=5_000)
    """Longest telling, words (design choice: what fits a small model's answer)."""


@dataclass(frozen=True, slots=True)
class Retell:
    """Tell the story to those who listen to you, in your own words, the way you are. It is all they will know of it."""

    text: Annotated[str, Meta(min_length=1, description="the whole story as you tell it")]
    source: Annotated[int, Meta(ge=-1, description="number of the text you built upon most; -1: none more")] = -1


@dataclass(frozen=True, slots=True)
class KeepSilent:
    """Tell nothing in this generation."""


Words = Annotated[int, Meta(extra_json_schema={"unit": "words"})]


@dataclass(frozen=True, slots=True)
class Linked(Event):
    """One teller is listened to by another, for all time."""

    agent_id: Annotated[int, Meta(description="who tells")]
    target_id: Annotated[int, Meta(description="who listens")]


@dataclass(frozen=True, slots=True)
class Given(Event):
    """A teller was given a story to begin with."""

    agent_id: int
    artifact_id: Annotated[int, Meta(description="number of the text")]
    text: str


@dataclass(frozen=True, slots=True)
class Told(Event):
    """A teller told a text to all who listen to it."""

    agent_id: int
    artifact_id: Annotated[int, Meta(description="number of the text")]
    text: str
    amount: Words
    parents: Annotated[list[int], Meta(description="numbers of the texts that the teller was shown")]
    source: Annotated[int | None, Meta(description="number of the text it says it built upon")]
    depth: Annotated[
        int, Meta(description="retellings since a story was given", extra_json_schema={"unit": "tellings"})
    ]


@dataclass(frozen=True, slots=True)
class Faded(Event):
    """A text is told no more: its teller has told another one."""

    agent_id: Annotated[int, Meta(description="who had told it")]
    artifact_id: Annotated[int, Meta(description="number of the text")]
    amount: Words


@dataclass(slots=True)
class ToldText:
    """A text somebody was told."""

    number: int
    teller: str
    """Who told it; empty if it was given."""
    text: str


@dataclass(slots=True)
class Observation:
    """What a teller knows when it is its turn."""

    generation: int
    told: list[ToldText]
    """What it was told, to be told again."""
    listeners: list[str]
    """Who will be told what it tells."""
    outcome: str = ""
    """What became of its last action."""


@dataclass(slots=True)
class ChainState:
    """The chain between two generations."""

    graph: Graph
    """From who tells to who listens. Teller i is agent i."""
    generation: int = 1
    store: TextStore = field(default_factory=TextStore)
    depth: list[int] = field(default_factory=list)
    """Of each text: retellings since a story was given."""
    last: list[int] = field(default_factory=list)
    """Of each teller: its last text; -1: it has told none."""
    pending: dict[int, list[int]] = field(default_factory=dict)
    """By teller: the texts it is to be shown."""
    telling: dict[int, Retell] = field(default_factory=dict)
    """What is told in the generation under way."""


def _one_of(turn: Turn) -> ToldText:
    """One of the texts somebody was told, drawn at random."""
    told: list[ToldText] = turn.observation.told
    return told[int(turn.rng.integers(len(told)))] if len(told) > 1 else told[0]


@dataclass(frozen=True, slots=True)
class Faithful:
    """Tells one of the texts it was told, drawn at random, word for word."""

    def decide(self, turn: Turn) -> Retell:
        text = _one_of(turn)
        return Retell(text.text, text.number)


@dataclass(frozen=True, slots=True)
class Forgetful:
    """Tells one of the texts it was told, drawn at random, and forgets some of its sentences for good."""

    keep: float = 0.8
    """The chance of each sentence to be kept."""

    def decide(self, turn: Turn) -> Retell | KeepSilent:
        text = _one_of(turn)
        kept = [s for s in sentences(text.text) if turn.rng.random() < self.keep]
        return Retell(" ".join(kept), text.number) if kept else KeepSilent()


_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.]*\d)")


@dataclass(frozen=True, slots=True)
class Biased:
    """Tells one of the texts it was told, but moves every whole number in it towards what it expects."""

    expects: float = 12.0
    """The number that seems right to it."""
    pull: float = 0.3
    """The part of the way there that a number moves in one retelling."""
    noise: float = 2.0
    """Standard deviation of what it misremembers."""

    def decide(self, turn: Turn) -> Retell:
        text = _one_of(turn)

        def recalled(found: re.Match[str]) -> str:
            number = int(found[0])
            moved = number + self.pull * (self.expects - number) + self.noise * turn.rng.standard_normal()
            return str(max(0, round(moved)))

        return Retell(_NUMBER.sub(recalled, text.text), text.number)


LENGTHS = "SELECT depth AS generation, amount AS words FROM told WHERE tick <= $tick ORDER BY seq"
LINKS = """
SELECT t.name AS teller, l.name AS listener
FROM linked JOIN agents t USING (agent_id) JOIN agents l ON l.agent_id = linked.target_id ORDER BY linked.seq
"""


class TransmissionChain(Scenario[ChainParams, ChainState]):
    """Tellers pass a story on from generation to generation, each in its own words."""

    Params = ChainParams
    State = ChainState
    Observation = Observation
    actions = (Retell, KeepSilent)
    neutral = KeepSilent()
    events = (Linked, Given, Told, Faded)
    minds = {"faithful": Faithful, "forgetful": Forgetful, "biased": Biased}
    views = (
        View("Words of each telling", LENGTHS, "generation", "words", "points"),
        View("Who listens to whom", LINKS, "teller", "listener", "network"),
    )
    validations = "ethnos.world.truths.chain"
    conserved = {"words": (Flow(Told), Flow(Faded, sign=-1))}
    name_prefix = "teller"
    fixed = ("network", "degree", "origins", "begin")

    def impossible(self, cohorts: Sequence[Cohort]) -> Iterable[str]:
        tellers = sum(c.count for c in cohorts)
        if not tellers:
            yield "nobody is there to tell"
        if self.params.network == "full" and tellers * (tellers - 1) > MOST_LINKS:
            yield f"{tellers} tellers who all listen to each other are more than {MOST_LINKS} links"

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> ChainState:
        for cohort in (c for c in cohorts for _ in range(c.count)):
            tick.born(cohort=cohort.name, persona=cohort.persona)
        size, p = len(tick.agents), self.params
        state = ChainState(graphs.made(p.network, size, tick.rng("network"), degree=p.degree), last=[-1] * size)
        for teller in range(size):
            for listener in state.graph.to(teller):
                tick.emit(Linked(teller, listener))
        self._begin(state, tick)
        return state

    def _begin(self, state: ChainState, tick: Tick) -> None:
        """Give the stories out; those that several are given are one text."""
        origins = self.params.origins
        for text in origins:
            state.store.add(text, None, 0)
            state.depth.append(0)
        everyone = self.params.begin == "everyone" or (self.params.begin == "auto" and self.params.network != "chain")
        for teller in range(state.graph.size if everyone else min(1, state.graph.size)):
            number = teller % len(origins)
            tick.emit(Given(teller, number, origins[number]))
            state.pending[teller] = [number]

    def due(self, state: ChainState, agents: Mapping[int, Agent]) -> Iterable[int]:
        return list(state.pending)

    def observe(self, state: ChainState, agents: Sequence[Agent], news: News) -> list[Any]:
        tellers = {t.author for i in state.pending.values() for t in (state.store[n] for n in i)}
        names = {i: f"{self.name_prefix}{i}" for i in sorted(t for t in tellers if t is not None)}
        return [
            Observation(
                generation=state.generation,
                told=[self._told(state, n, names) for n in state.pending.get(agent.id, ())],
                listeners=[f"{self.name_prefix}{i}" for i in state.graph.to(agent.id)],
                outcome=news.outcome.get(agent.id, ""),
            )
            for agent in agents
        ]

    def _told(self, state: ChainState, number: int, names: Mapping[int, str]) -> ToldText:
        text = state.store[number]
        return ToldText(number, "" if text.author is None else names[text.author], text.text)

    def told(self) -> str:
        return (
            "A story passes from teller to teller. In each generation you are shown what those you listen to told in "
            "the generation before. Tell the story to those who listen to you, in your own words and the way you are: "
            "what you leave out is lost to them, what you change they will not know otherwise. If you were told more "
            "than one version, make one of them and say which one you built upon most. A telling has "
            f"{self.params.words} words at most."
        )

    def show(self, observation: Any, quote: Quote) -> str:
        lines = [f"This is generation {observation.generation}."]
        for text in observation.told:
            by = f"{quote(text.teller)} told you" if text.teller else "You were given"
            lines.append(f"{by} text number {text.number}: {quote(text.text)}")
        who = ", ".join(quote(name) for name in observation.listeners)
        lines.append(f"Who listens to you: {who or 'nobody'}")
        if observation.outcome:
            lines.append(f"What came of your last action: {quote(observation.outcome)}")
        return "\n".join(lines)

    def options(self, observation: Any) -> Sequence[Option]:
        numbers = [t.number for t in observation.told]
        return [Option(Retell, {"source": numbers}), Option(KeepSilent)]

    def act(self, state: ChainState, agent: Agent, action: Any, tick: Tick) -> str | None:
        if isinstance(action, KeepSilent):
            return "you told nothing"
        if (words := len(action.text.split())) > self.params.words:
            raise Refused(f"a telling of {words} words; there is time for {self.params.words}")
        if not action.text.strip():
            raise Refused("a telling without a word")
        if action.source != -1 and action.source not in state.pending.get(agent.id, ()):
            raise Refused(f"you were not told text number {action.source}")
        state.telling[agent.id] = action
        return f"you told it to {len(state.graph.to(agent.id))}"

    def audience(self, state: ChainState, speaker: Agent, agents: Mapping[int, Agent]) -> Iterable[int]:
        """Nobody hears what is said beside the story: it passes in no other way."""
        return ()

    def advance(self, state: ChainState, tick: Tick) -> None:
        told = {teller: self._tell(state, teller, tick) for teller in sorted(state.telling)}
        inbox: dict[int, list[int]] = {}
        for teller, number in told.items():
            for listener in [*state.graph.to(teller), *([teller] if self.params.hears_itself else ())]:
                inbox.setdefault(listener, []).append(number)
        state.pending = self._drawn({i: sorted(inbox[i]) for i in sorted(inbox)}, tick)
        state.telling = {}
        state.generation += 1

    def _tell(self, state: ChainState, teller: int, tick: Tick) -> int:
        action, shown = state.telling[teller], state.pending[teller]
        text = state.store.add(action.text, teller, tick.number, shown)
        source = None if action.source == -1 else action.source
        depth = 1 + (max(state.depth[n] for n in shown) if source is None else state.depth[source])
        state.depth.append(depth)
        before, state.last[teller] = state.last[teller], text.id
        if before != -1:
            tick.emit(Faded(teller, before, len(state.store[before].text.split())))
        words = len(text.text.split())
        tick.emit(Told(teller, text.id, text.text, words, text.parents, source, depth))
        return text.id

    def _drawn(self, inbox: dict[int, list[int]], tick: Tick) -> dict[int, list[int]]:
        """For each listener the texts it will be shown, out of those it was told."""
        most = self.params.shown
        if not most:
            return inbox
        if most == 1:
            draws = tick.uniforms("shown", list(inbox)).tolist()
            return {i: [told[int(u * len(told))]] for (i, told), u in zip(inbox.items(), draws, strict=True)}
        return {i: _sample(told, most, tick.rng("shown", i)) for i, told in inbox.items()}

    def stocks(self, state: ChainState) -> Mapping[str, float]:
        return {"words": sum(len(state.store[n].text.split()) for n in state.last if n != -1)}

    def over(self, state: ChainState, agents: Mapping[int, Agent]) -> bool:
        return not state.pending

    def reach(self) -> float:
        """Steps along the network: in a tick a story gets to those who listen, and no further."""
        return 1.0


def _sample(numbers: list[int], most: int, rng: np.random.Generator) -> list[int]:
    if len(numbers) <= most:
        return numbers
    return [numbers[i] for i in np.sort(rng.choice(len(numbers), most, replace=False)).tolist()]

"""Terra: a small ecology on a torus, in which beings live, talk, have children, die and leave texts behind.

Beings forage for food that grows in a few places, lose energy by living, and die of hunger or old age. Each
tick a being does one thing: walk, give or take energy, have a child, or make, change, carry or destroy an
artifact, a text that others can read, also long after its author is dead. Beside that it may say something
that is heard nearby. What is passed on is up to them: traits by birth, all else by word and text.

After Paolo et al. 2026, "TerraLingua", whose core society the defaults are. A tick goes like this:

1. All act at once; conflicts are resolved one after the other, in an order drawn for the tick. A being that
   is in the way is not pushed: the mover stays.
2. What was said is heard within hearing distance; last words too.
3. Who ends on food eats it.
4. Who carries or stands on an artifact reads it.
5. Artifacts at the end of their lifetime are gone.
6. Each being loses 1 energy and 1 tick of life.
7. Who has none left dies, drops what it carried and becomes food.
8. Each tile of food loses 1 with a small chance; new tiles appear on free cells.

Energy is whole numbers and is conserved: it comes with founders, food, children and the dead, and goes by
living, decay, having children, dying, and what artifacts cost. All else moves it from one to another.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ethnos.world.interventions import Intervention
from ethnos.world.scenario import Agent, Cohort, News, Option, Quote, Scenario, Tick
from ethnos.world.scenarios.terra import genome, nature, outside, words
from ethnos.world.scenarios.terra.actions import ACTIONS, Stay
from ethnos.world.scenarios.terra.deeds import DEEDS
from ethnos.world.scenarios.terra.events import ENERGY, EVENTS, Settled, WorldMade
from ethnos.world.scenarios.terra.food import Density
from ethnos.world.scenarios.terra.minds import Forager, Villager, Wanderer
from ethnos.world.scenarios.terra.params import TerraParams
from ethnos.world.scenarios.terra.rules import Rules
from ethnos.world.scenarios.terra.sight import Observation, look
from ethnos.world.scenarios.terra.state import Being, TerraState
from ethnos.world.scenarios.terra.torus import Torus


class Terra(Scenario[TerraParams, TerraState]):
    """A grid ecology without edges, in which beings forage, talk, reproduce, die and leave texts behind."""

    Params = TerraParams
    State = TerraState
    Observation = Observation
    actions = ACTIONS
    neutral = Stay()
    events = EVENTS
    minds = {"forager": Forager, "villager": Villager, "wanderer": Wanderer}
    conserved = {"energy": ENERGY}
    validations = "ethnos.world.truths.terra"
    name_prefix = "being"
    fixed = ("width", "height", "food.initial", "food.zones")

    def __init__(self, params: TerraParams) -> None:
        super().__init__(params)
        self.rules = Rules(params, Torus(params.width, params.height))

    def impossible(self, cohorts: Sequence[Cohort]) -> Iterable[str]:
        beings, cells = sum(c.count for c in cohorts), self.params.width * self.params.height
        if beings > cells:
            yield f"{beings} beings do not fit on a map of {cells} cells, one to a cell"
        for cohort in cohorts:
            yield from (f"cohort {cohort.name!r}: {problem}" for problem in genome.problems(cohort.persona))

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> TerraState:
        state = TerraState(self._zones(tick))
        tick.emit(WorldMade(self.params.width, self.params.height, state.zones))
        self._settle(state, cohorts, tick)
        nature.sow(self.rules, state, tick, tick.rng("first food"), self.params.food.initial)
        return state

    def _zones(self, tick: Tick) -> list[tuple[int, int]]:
        zones = self.params.food.zones
        if isinstance(zones, list):
            return zones
        if not zones:
            return []
        centres = tick.rng("zones").integers((self.params.width, self.params.height), size=(zones, 2))
        return [(x, y) for x, y in centres.tolist()]

    def _settle(self, state: TerraState, cohorts: Sequence[Cohort], tick: Tick) -> None:
        founders = [c for c in cohorts for _ in range(c.count)]
        everywhere = Density(self.rules.torus, (), 1.0)
        cells = everywhere.free(tick.rng("places"), len(founders))
        life = self.params.life
        for number, (cohort, cell) in enumerate(zip(founders, cells, strict=True)):
            x, y = self.rules.torus.xy(cell)
            agent = tick.born(cohort=cohort.name, persona=self._persona(cohort, number, tick), x=x, y=y)
            state.beings[agent.id] = Being(agent.name, cell, life.energy, life.lifespan)
            state.where[cell] = agent.id
            tick.emit(Settled(agent.id, x, y, life.energy))

    def _persona(self, cohort: Cohort, founder: int, tick: Tick) -> genome.Persona:
        """Drawn traits and the motivation, unless the cohort sets them otherwise."""
        life = self.params.life
        persona = genome.drawn(tick.rng("genome", founder)) if life.genome == "ocean" else {}
        if life.motivation != "none":
            persona["motivation"] = genome.MOTIVATIONS[life.motivation]
        return {**persona, **cohort.persona}

    def observe(self, state: TerraState, agents: Sequence[Agent], news: News) -> list[Any]:
        views = look(self.rules, state, [state.beings[a.id] for a in agents])
        for agent, view in zip(agents, views, strict=True):
            view.heard = news.heard.get(agent.id, ())
            view.outcome = news.outcome.get(agent.id, "")
        return views

    def told(self) -> str:
        return words.told(self.params, self.rules.hearing)

    def show(self, observation: Any, quote: Quote) -> str:
        return words.shown(observation, quote)

    def options(self, observation: Any) -> Sequence[Option]:
        return words.options(self.params, observation)

    def act(self, state: TerraState, agent: Agent, action: Any, tick: Tick) -> str | None:
        return DEEDS[type(action)](self.rules, state, agent, action, tick)

    def audience(self, state: TerraState, speaker: Agent, agents: Mapping[int, Agent]) -> Iterable[int]:
        here = state.beings[speaker.id].cell
        nearby = (state.where.get(c) for c in self.rules.torus.around(here, self.rules.hearing))
        return sorted(i for i in nearby if i is not None and i != speaker.id)

    def advance(self, state: TerraState, tick: Tick) -> None:
        nature.eat(self.rules, state, tick)
        nature.read(self.rules, state, tick)
        nature.expire(state, tick)
        nature.age(state, tick)
        nature.bury(self.rules, state, tick)
        nature.decay(self.rules, state, tick)
        nature.spawn(self.rules, state, tick)

    def intervene(self, state: TerraState, change: Intervention, tick: Tick) -> None:
        outside.intervene(self.rules, state, change, tick)

    def stocks(self, state: TerraState) -> Mapping[str, float]:
        living = sum(b.energy for b in state.beings.values())
        return {"energy": living + sum(state.food.values())}


__all__ = ["Terra", "TerraParams"]

"""A tiny world for tests, and records made with it without a cluster."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from pydantic import Field

from ethnos import society
from ethnos.actors.minds.making import make_mind
from ethnos.errors import Refused
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.run import create
from ethnos.testing import play
from ethnos.world.scenario import Agent, Cohort, Event, Flow, News, Params, Scenario, Tick, Turn
from ethnos.world.world import Step


class OrchardParams(Params):
    """Parameters."""

    growth: float = Field(default=3.0, ge=0, le=100)
    """Apples that grow in a tick."""
    hostile: str = ""
    """Said by everybody in each tick."""


@dataclass(frozen=True, slots=True)
class Grew(Event):
    """Apples grew."""

    amount: Annotated[float, Meta(description="how many", extra_json_schema={"unit": "apples"})]


@dataclass(frozen=True, slots=True)
class Picked(Event):
    """An apple was picked."""

    agent_id: int
    apples: Annotated[float, Meta(description="how many", extra_json_schema={"unit": "apples"})]


@dataclass(frozen=True, slots=True)
class Pick:
    """Pick some apples."""

    apples: float = 1.0


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing."""


@dataclass
class OrchardState:
    apples: float = 0.0


@dataclass
class Seen:
    apples: float


@dataclass(frozen=True, slots=True)
class Picker:
    """Picks; asks for more than there is in every seventh tick."""

    apples: float = 1.0

    def decide(self, turn: Turn) -> Pick:
        return Pick(1e6 if turn.tick % 7 == 0 else self.apples)


@dataclass(frozen=True, slots=True)
class Idler:
    """Rests."""

    def decide(self, turn: Turn) -> Rest:
        return Rest()


class Orchard(Scenario[OrchardParams, OrchardState]):
    """Apples grow and are picked; an agent dies every ten ticks, one is born every five."""

    Params = OrchardParams
    State = OrchardState
    Observation = Seen
    actions = (Pick, Rest)
    neutral = Rest()
    events = (Grew, Picked)
    minds = {"picker": Picker, "idler": Idler}
    conserved = {"apples": (Flow(Grew), Flow(Picked, "apples", -1))}

    def setup(self, cohorts: Sequence[Cohort], tick: Tick) -> OrchardState:
        for cohort in cohorts:
            for _ in range(cohort.count):
                tick.born(cohort=cohort.name, persona=dict(cohort.persona))
        return OrchardState()

    def observe(self, state: OrchardState, agents: Sequence[Agent], news: News) -> list[Any]:
        return [Seen(state.apples) for _ in agents]

    def act(self, state: OrchardState, agent: Agent, action: Any, tick: Tick) -> str | None:
        if isinstance(action, Pick):
            if action.apples > state.apples:
                raise Refused("there are not so many apples")
            state.apples -= action.apples
            tick.emit(Picked(agent.id, action.apples))
        return None

    def advance(self, state: OrchardState, tick: Tick) -> None:
        state.apples += self.params.growth
        tick.emit(Grew(self.params.growth))
        eldest = next(iter(tick.agents.values()), None)
        if eldest is not None and tick.number % 5 == 0:
            tick.born(cohort=eldest.cohort, persona={}, parent=eldest)
        if eldest is not None and tick.number % 10 == 0:
            tick.died(eldest.id, "old age")

    def stocks(self, state: OrchardState) -> Mapping[str, float]:
        return {"apples": state.apples}


ORCHARD = """
scenario: tests.tiny:Orchard
seed: 1
ticks: {ticks}
population:
  - cohort: pickers
    count: 4
    mind: picker
  - cohort: idlers
    count: 1
    mind: idler
"""


def orchard(ticks: int = 30) -> society.Society:
    return society.parse(ORCHARD.format(ticks=ticks))


async def no_model(name: str, request: Any) -> Any:
    raise AssertionError(f"no model {name}")


def steps(what: society.Society) -> Iterable[Step]:
    """What happens in a society, tick by tick."""
    minds = [(cohort, make_mind(what, cohort.name, no_model)) for cohort in what.cohorts()]
    return play(what.make_scenario(), minds, what.seed, what.ticks)


@dataclass
class Made:
    """A run directory that was written without a cluster."""

    run: RunDirectory
    digest: str = ""
    steps: list[Step] = field(default_factory=list)


def make_run(
    name: str,
    what: society.Society | None = None,
    folder: Path | None = None,
    *,
    finish: bool = True,
    seal: bool = True,
    change: Callable[[Step], None] = lambda step: None,
) -> Made:
    """Write the record of a society. `change` may spoil a step on its way."""
    what = what or orchard()
    made = Made(create(what, name, folder))
    with Log(made.run) as log:
        for step in steps(what):
            change(step)
            made.digest = log.commit(step, {}, 1.0)
            made.steps.append(step)
        if seal:
            log.seal()
    if finish:
        manifest = made.run.manifest()
        manifest.state, manifest.reason = "finished", f"reached tick {what.ticks}"
        manifest.digest, manifest.tick = made.digest, made.steps[-1].tick
        made.run.write_manifest(manifest)
    return made

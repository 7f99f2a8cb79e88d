"""What an experimenter can do to Terra from outside: food, beings, texts."""

from ethnos.errors import Refused
from ethnos.world.interventions import AddAgent, AddResources, Intervention, PlaceArtifact, RemoveAgent, RemoveResources
from ethnos.world.scenario import Tick
from ethnos.world.scenarios.terra import events, genome
from ethnos.world.scenarios.terra.food import Density
from ethnos.world.scenarios.terra.nature import let_fall
from ethnos.world.scenarios.terra.rules import Rules, lay
from ethnos.world.scenarios.terra.state import Artifact, Being, TerraState
from ethnos.world.spec import fit_name, fit_text


def intervene(rules: Rules, state: TerraState, change: Intervention, tick: Tick) -> None:
    """Carry out a change. Raises Refused."""
    match change:
        case AddResources():
            add_food(rules, state, change, tick)
        case RemoveResources():
            remove_food(rules, state, change, tick)
        case AddAgent():
            settle(rules, state, change, tick)
        case RemoveAgent():
            take_away(rules, state, tick.who(change.agent).id, tick)
        case PlaceArtifact():
            place(rules, state, change, tick)
        case _:
            raise Refused(f"Terra knows no {change.do}")


def add_food(rules: Rules, state: TerraState, change: AddResources, tick: Tick) -> None:
    """Energy as food: on one cell, or in tiles where food grows."""
    if change.x is not None or change.y is not None:
        _put(rules, state, _cell(rules, change.x, change.y), change.amount, tick)
        return
    whole, rest = divmod(change.amount, rules.params.food.value)
    tiles = [rules.params.food.value] * whole + [rest] * bool(rest)
    density = Density(rules.torus, tuple(state.zones), rules.params.food.sigma)
    free = density.free(tick.rng("food from outside", tick.changes), len(tiles), (state.food, state.where, state.lying))
    if len(free) < len(tiles):
        raise Refused(f"there are only {len(free)} free cells for {len(tiles)} tiles of food")
    for cell, amount in zip(free, tiles, strict=True):
        _put(rules, state, cell, amount, tick)


def _put(rules: Rules, state: TerraState, cell: int, amount: int, tick: Tick) -> None:
    state.food[cell] = state.food.get(cell, 0) + amount
    tick.emit(events.FoodSpawned(*rules.torus.xy(cell), amount))


def remove_food(rules: Rules, state: TerraState, change: RemoveResources, tick: Tick) -> None:
    """Food from one cell, or from all cells row by row until enough is gone."""
    if change.x is not None or change.y is not None:
        cells = [c for c in [_cell(rules, change.x, change.y)] if c in state.food]
    else:
        cells = sorted(state.food)
    left = change.amount
    for cell in cells:
        amount = min(left, state.food[cell])
        if not amount:
            return
        left -= amount
        state.food[cell] -= amount
        if not state.food[cell]:
            del state.food[cell]
        tick.emit(events.FoodDecayed(*rules.torus.xy(cell), amount))


def settle(rules: Rules, state: TerraState, change: AddAgent, tick: Tick) -> None:
    """A new being, like a founder, on a cell that is free."""
    if change.x is not None or change.y is not None:
        cell = _cell(rules, change.x, change.y)
    else:
        free = Density(rules.torus, (), 1.0).free(tick.rng("place from outside", tick.changes), 1, (state.where,))
        if not free:
            raise Refused("there is no free cell")
        cell = free[0]
    if cell in state.where:
        raise Refused(f"{state.beings[state.where[cell]].name} stands there")
    x, y = rules.torus.xy(cell)
    life = rules.params.life
    persona = genome.drawn(tick.rng("genome from outside", tick.changes)) if life.genome == "ocean" else {}
    if life.motivation != "none":
        persona["motivation"] = genome.MOTIVATIONS[life.motivation]
    agent = tick.born(cohort=change.cohort, persona={**persona, **change.persona}, name=change.name, x=x, y=y)
    state.beings[agent.id] = Being(agent.name, cell, life.energy, life.lifespan)
    state.where[cell] = agent.id
    tick.emit(events.Settled(agent.id, x, y, life.energy))


def take_away(rules: Rules, state: TerraState, number: int, tick: Tick) -> None:
    """A being is gone and leaves nothing but what it carried."""
    being = state.beings[number]
    let_fall(rules, state, number, tick)
    del state.beings[number], state.where[being.cell]
    tick.died(number, "taken away")
    tick.emit(events.Perished(number, *rules.torus.xy(being.cell), being.energy))


def place(rules: Rules, state: TerraState, change: PlaceArtifact, tick: Tick) -> None:
    """A text by nobody on a cell."""
    name, text = fit_name(change.name), fit_text(change.text, rules.params.artifacts.max_chars)
    if change.x is not None or change.y is not None:
        cell = _cell(rules, change.x, change.y)
    else:
        cell = int(tick.rng("text from outside", tick.changes).integers(rules.torus.width * rules.torus.height))
    number = state.next_artifact
    state.next_artifact = number + 1
    expires = None if change.lifetime is None else tick.number + change.lifetime
    state.artifacts[number] = Artifact(name, text, 1, None, "nobody", expires, None, None)
    lay(state, number, cell)
    if expires is not None:
        state.expiring.setdefault(expires, []).append(number)
    x, y = rules.torus.xy(cell)
    tick.emit(events.ArtifactCreated(None, number, text, name, x, y, 0, 1, change.lifetime))


def _cell(rules: Rules, x: int | None, y: int | None) -> int:
    if x is None or y is None:
        raise Refused("a place has x and y")
    if x >= rules.torus.width or y >= rules.torus.height:
        raise Refused(f"({x}, {y}) is not on the map of {rules.torus.width} x {rules.torus.height} cells")
    return rules.torus.cell(x, y)

"""What the world does by itself, once all have acted: the rest of a tick, in the order of these functions."""

import numpy as np

from ethnos.world.scenario import Tick
from ethnos.world.scenarios.terra import events
from ethnos.world.scenarios.terra.food import Density
from ethnos.world.scenarios.terra.rules import Rules, lay, lift
from ethnos.world.scenarios.terra.state import Being, TerraState


def eat(rules: Rules, state: TerraState, tick: Tick) -> None:
    """Who ends on food eats it."""
    food, width = state.food, rules.torus.width
    for number, being in state.beings.items():
        amount = food.pop(being.cell, 0)
        being.ate = amount
        if amount:
            being.energy += amount
            y, x = divmod(being.cell, width)
            tick.emit(events.Ate(number, x, y, amount))


def read(rules: Rules, state: TerraState, tick: Tick) -> None:
    """Who carries an artifact or stands on one reads it, unless it is about to expire."""
    if rules.params.artifacts.inert or not state.artifacts:
        return
    for number, being in state.beings.items():
        if being.carries or being.cell in state.lying:
            _read(state, number, being, tick)


def _read(state: TerraState, number: int, being: Being, tick: Tick) -> None:
    for i in (*being.carries, *state.lying.get(being.cell, ())):
        artifact = state.artifacts[i]
        if artifact.expires != tick.number and being.known.get(i, 0) < artifact.version:
            being.known[i] = artifact.version
            tick.emit(events.ArtifactRead(number, i, artifact.version, artifact.author))


def expire(state: TerraState, tick: Tick) -> None:
    """Artifacts whose time has come are gone."""
    for number in state.expiring.pop(tick.number, ()):
        if number in state.artifacts:
            lift(state, number)
            artifact = state.artifacts.pop(number)
            tick.emit(events.ArtifactExpired(number, artifact.version))


def age(state: TerraState, tick: Tick) -> None:
    """Every being loses 1 energy and 1 life."""
    burned = 0
    for being in state.beings.values():
        being.life -= 1
        if being.energy:
            being.energy -= 1
            burned += 1
    tick.emit(events.Burned(burned))


def bury(rules: Rules, state: TerraState, tick: Tick) -> None:
    """Who has no energy or no life left dies, drops what it carries, and becomes food."""
    dead = [n for n, b in state.beings.items() if b.energy <= 0 or b.life <= 0]
    for number in dead:
        being = state.beings[number]
        x, y = rules.torus.xy(being.cell)
        let_fall(rules, state, number, tick)
        del state.beings[number], state.where[being.cell]
        tick.died(number, "hunger" if being.energy <= 0 else "old age")
        tick.emit(events.Perished(number, x, y, being.energy))
        for cell, amount in _remains(rules, being):
            state.food[cell] = state.food.get(cell, 0) + amount
            tick.emit(events.RemainsLeft(number, *rules.torus.xy(cell), amount))


def let_fall(rules: Rules, state: TerraState, number: int, tick: Tick) -> None:
    """A being drops all that it carries."""
    being = state.beings[number]
    x, y = rules.torus.xy(being.cell)
    for artifact in list(being.carries):
        lift(state, artifact)
        lay(state, artifact, being.cell)
        tick.emit(events.ArtifactDropped(number, artifact, x, y, state.artifacts[artifact].version))


def _remains(rules: Rules, being: Being) -> list[tuple[int, int]]:
    """The cells that get food from a dead being, and how much."""
    food = rules.params.food
    if food.remains == "none":
        return []
    if food.remains == "area":
        return [(c, food.value) for c in rules.torus.around(being.cell, 1)]
    return [(being.cell, max(food.value, being.energy))]


def decay(rules: Rules, state: TerraState, tick: Tick) -> None:
    """Each tile of food may lose 1."""
    cells = np.sort(np.fromiter(state.food, dtype=np.int64, count=len(state.food)))
    spoiled = cells[tick.uniforms("decay", cells) < rules.params.food.decay_rate]
    for cell in spoiled.tolist():
        x, y = rules.torus.xy(cell)
        tick.emit(events.FoodDecayed(x, y, 1))
        if state.food[cell] == 1:
            del state.food[cell]
        else:
            state.food[cell] -= 1


def spawn(rules: Rules, state: TerraState, tick: Tick) -> None:
    """A Poisson number of new tiles appears."""
    if rules.params.food.spawn_rate:
        rng = tick.rng("spawn")
        sow(rules, state, tick, rng, int(rng.poisson(rules.params.food.spawn_rate)))


def sow(rules: Rules, state: TerraState, tick: Tick, rng: np.random.Generator, count: int) -> None:
    """Put `count` tiles of food on free cells: without food, being or artifact."""
    if not count:
        return
    density = Density(rules.torus, tuple(state.zones), rules.params.food.sigma)
    value = rules.params.food.value
    for cell in density.free(rng, count, (state.food, state.where, state.lying)):
        state.food[cell] = value
        x, y = rules.torus.xy(cell)
        tick.emit(events.FoodSpawned(x, y, value))

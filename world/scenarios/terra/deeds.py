"""What each action does. Every deed checks first and changes the world only once nothing can go wrong."""

from collections.abc import Callable
from typing import Any

from ethnos.errors import Refused
from ethnos.world.scenario import Agent, Tick
from ethnos.world.scenarios.terra import actions, events, genome
from ethnos.world.scenarios.terra.rules import Rules, carry, lay, lift
from ethnos.world.scenarios.terra.state import Artifact, Being, TerraState
from ethnos.world.scenarios.terra.torus import DIRECTIONS, NEIGHBOURS
from ethnos.world.spec import fit_name, fit_text

Deed = Callable[[Rules, TerraState, Agent, Any, Tick], str | None]


def stay(rules: Rules, state: TerraState, agent: Agent, action: actions.Stay, tick: Tick) -> str | None:
    return None


def move(rules: Rules, state: TerraState, agent: Agent, action: actions.Move, tick: Tick) -> str | None:
    being = state.beings[agent.id]
    cell = rules.torus.shifted(being.cell, *DIRECTIONS[action.direction])
    x, y = rules.torus.xy(cell)
    other = state.where.get(cell)
    if other is not None:
        tick.emit(events.Blocked(agent.id, other, x, y))
        return f"{state.beings[other].name} stood in the way, you stayed"
    del state.where[being.cell]
    state.where[cell] = agent.id
    being.cell = cell
    tick.emit(events.Moved(agent.id, x, y))
    return None


def give(rules: Rules, state: TerraState, agent: Agent, action: actions.GiveEnergy, tick: Tick) -> str | None:
    other, receiver = rules.in_sight(state, agent, action.target, tick)
    giver = state.beings[agent.id]
    if action.amount > giver.energy:
        raise Refused(f"you have only {giver.energy} energy")
    giver.energy -= action.amount
    receiver.energy += action.amount
    tick.emit(events.EnergyGiven(agent.id, other, action.amount))
    return f"you gave {action.amount} energy to {receiver.name}"


def take(rules: Rules, state: TerraState, agent: Agent, action: actions.TakeEnergy, tick: Tick) -> str | None:
    other, victim = rules.in_sight(state, agent, action.target, tick)
    amount = min(action.amount, victim.energy)
    if amount == 0:
        raise Refused(f"{victim.name} has no energy left")
    victim.energy -= amount
    state.beings[agent.id].energy += amount
    tick.emit(events.EnergyTaken(agent.id, other, amount))
    return f"you took {amount} energy from {victim.name}"


def reproduce(rules: Rules, state: TerraState, agent: Agent, action: actions.Reproduce, tick: Tick) -> str | None:
    life, parent = rules.params.life, state.beings[agent.id]
    if parent.energy < life.reproduction_cost:
        raise Refused(f"a child costs {life.reproduction_cost} energy, you have {parent.energy}")
    cells = [rules.torus.shifted(parent.cell, dx, dy) for dx, dy in NEIGHBOURS]
    free = [c for c in cells if c not in state.where]
    if not free:
        raise Refused("there is no free cell next to you")
    rng = tick.rng("birth", agent.id)
    cell = free[int(rng.integers(len(free)))]
    persona = genome.inherited(agent.persona, rng, life.mutation_rate, life.mutation_step)
    x, y = rules.torus.xy(cell)
    child = tick.born(cohort=agent.cohort, persona=persona, name=action.name, parent=agent, x=x, y=y)
    added = min(action.energy, parent.energy - life.reproduction_cost)
    parent.energy -= life.reproduction_cost + added
    state.beings[child.id] = Being(child.name, cell, life.energy + added, life.lifespan)
    state.where[cell] = child.id
    tick.emit(events.Reproduced(agent.id, child.id, x, y, added, life.reproduction_cost, life.energy))
    return f"your child {child.name} was born"


def create(rules: Rules, state: TerraState, agent: Agent, action: actions.CreateArtifact, tick: Tick) -> str | None:
    cost, being = rules.params.artifacts.cost, state.beings[agent.id]
    if cost > being.energy:
        raise Refused(f"an artifact costs {cost} energy, you have {being.energy}")
    name, text = fit_name(action.name), fit_text(action.text, rules.params.artifacts.max_chars)
    number = state.next_artifact
    state.next_artifact = number + 1
    being.energy -= cost
    expires = None if action.lifetime is None else tick.number + action.lifetime
    state.artifacts[number] = Artifact(name, text, 1, agent.id, agent.name, expires, None, None)
    lay(state, number, being.cell)
    if expires is not None:
        state.expiring.setdefault(expires, []).append(number)
    being.known[number] = 1
    x, y = rules.torus.xy(being.cell)
    tick.emit(events.ArtifactCreated(agent.id, number, text, name, x, y, cost, 1, action.lifetime))
    return f"you created artifact {number}"


def modify(rules: Rules, state: TerraState, agent: Agent, action: actions.ModifyArtifact, tick: Tick) -> str | None:
    being = state.beings[agent.id]
    artifact = rules.at_hand(state, being, action.artifact)
    text = fit_text(action.text, rules.params.artifacts.max_chars)
    before, author = artifact.version, artifact.author
    artifact.text, artifact.version = text, before + 1
    artifact.author, artifact.author_name = agent.id, agent.name
    being.known[action.artifact] = artifact.version
    tick.emit(events.ArtifactModified(agent.id, action.artifact, text, artifact.version, before, author))
    return f"you rewrote artifact {action.artifact}"


def destroy(rules: Rules, state: TerraState, agent: Agent, action: actions.DestroyArtifact, tick: Tick) -> str | None:
    artifact = rules.at_hand(state, state.beings[agent.id], action.artifact)
    lift(state, action.artifact)
    del state.artifacts[action.artifact]
    tick.emit(events.ArtifactDestroyed(agent.id, action.artifact, artifact.version))
    return f"you destroyed artifact {action.artifact}"


def pick_up(rules: Rules, state: TerraState, agent: Agent, action: actions.PickUp, tick: Tick) -> str | None:
    artifact = rules.lying_here(state, state.beings[agent.id], action.artifact)
    lift(state, action.artifact)
    carry(state, action.artifact, agent.id)
    tick.emit(events.ArtifactPickedUp(agent.id, action.artifact, artifact.version))
    return f"you picked up artifact {action.artifact}"


def drop(rules: Rules, state: TerraState, agent: Agent, action: actions.Drop, tick: Tick) -> str | None:
    being = state.beings[agent.id]
    artifact = rules.carried(state, being, action.artifact)
    lift(state, action.artifact)
    lay(state, action.artifact, being.cell)
    x, y = rules.torus.xy(being.cell)
    tick.emit(events.ArtifactDropped(agent.id, action.artifact, x, y, artifact.version))
    return f"you dropped artifact {action.artifact}"


def hand_over(rules: Rules, state: TerraState, agent: Agent, action: actions.HandOver, tick: Tick) -> str | None:
    artifact = rules.carried(state, state.beings[agent.id], action.artifact)
    other, receiver = rules.in_sight(state, agent, action.target, tick)
    lift(state, action.artifact)
    carry(state, action.artifact, other)
    tick.emit(events.ArtifactHandedOver(agent.id, other, action.artifact, artifact.version))
    return f"you handed artifact {action.artifact} to {receiver.name}"


DEEDS: dict[type[Any], Deed] = {
    actions.Stay: stay,
    actions.Move: move,
    actions.GiveEnergy: give,
    actions.TakeEnergy: take,
    actions.Reproduce: reproduce,
    actions.CreateArtifact: create,
    actions.ModifyArtifact: modify,
    actions.DestroyArtifact: destroy,
    actions.PickUp: pick_up,
    actions.Drop: drop,
    actions.HandOver: hand_over,
}

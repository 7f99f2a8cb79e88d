"""Terra in words: the rules as beings are told them, what they see, and what is open to them."""

from collections.abc import Iterator, Sequence

from ethnos.world.scenario import Option, Quote
from ethnos.world.scenarios.terra import actions
from ethnos.world.scenarios.terra.params import TerraParams
from ethnos.world.scenarios.terra.sight import Observation

NAMED = 30
"""So many pieces of food are named, the nearest; the rest are counted."""


def told(params: TerraParams, hearing: int) -> str:
    """The rules, with their numbers."""
    life, food, artifacts = params.life, params.food, params.artifacts
    cost = f" Making one costs {artifacts.cost} energy." if artifacts.cost else ""
    lines = (
        f"You are a being on a grid of {params.width} by {params.height} cells without edges: who leaves in the east "
        "comes back in the west. x grows to the east, y to the south. A cell has room for one being.",
        f"You see {params.sight} cells far. What you say is heard {hearing} cells far, in the next tick.",
        f"A being starts with {life.energy} energy and lives for {life.lifespan} ticks at most. Each tick costs 1 "
        "energy. Without energy it dies. Who ends a tick on food eats it.",
        f"New food holds {food.value} energy. It grows in the same places again and loses 1 now and then.",
        f"A child costs {life.reproduction_cost} energy and needs a free cell next to you. It starts with "
        f"{life.energy} energy and what you add.",
        "An artifact is a text. It lies on a cell or is carried, and stays when its author is dead." + cost,
        "In this world artifacts can be neither read nor used." if artifacts.inert else "",
    )
    return "\n".join(line for line in lines if line)


def shown(seen: Observation, quote: Quote) -> str:
    """What a being knows in one tick; what matters most comes first."""
    return "\n".join(_lines(seen, quote))


def _lines(seen: Observation, quote: Quote) -> Iterator[str]:
    ate = f" You ate {seen.ate} energy." if seen.ate else ""
    yield f"You have {seen.energy} energy and {seen.life} ticks to live. You are at x {seen.x}, y {seen.y}.{ate}"
    if seen.outcome:
        yield f"What came of your last action: {quote(seen.outcome)}"
    food = [f"{f.energy} energy {_place(f.dx, f.dy)}" for f in seen.food[:NAMED]]
    more = [f"{len(seen.food) - NAMED} more further off"] if len(seen.food) > NAMED else []
    yield f"Food in sight: {'; '.join((*food, *more)) or 'none'}"
    yield f"Beings in sight: {'; '.join(f'{quote(b.name)} {_place(b.dx, b.dy)}' for b in seen.beings) or 'none'}"
    yield from (f"You heard {quote(m.speaker)} say: {quote(m.text)}" for m in seen.heard)
    if seen.artifacts:
        found = (f"number {a.artifact} {quote(a.name)} {_place(a.dx, a.dy)}" for a in seen.artifacts)
        yield f"Artifacts in sight: {'; '.join(found)}"
    if seen.carries:
        yield f"You carry artifacts: {'; '.join(f'number {i.artifact} {quote(i.name)}' for i in seen.carries)}"
    for w in seen.writings:
        by = f"version {w.version} by {quote(w.author)}"
        yield f"You read in artifact number {w.artifact} {quote(w.name)}, {by}: {quote(w.text)}"


def _place(dx: int, dy: int) -> str:
    """Where something is, seen from a being."""
    across = [f"{abs(dx)} {'east' if dx > 0 else 'west'}"] if dx else []
    along = [f"{abs(dy)} {'south' if dy > 0 else 'north'}"] if dy else []
    return " and ".join((*across, *along)) or "here"


def options(params: TerraParams, seen: Observation) -> Sequence[Option]:
    """What a being can do, as far as it can see. Two things it cannot: what others own, and what they do now."""
    names = [b.name for b in seen.beings]
    carried = [i.artifact for i in seen.carries]
    here = [a.artifact for a in seen.artifacts if not (a.dx or a.dy)]
    cost, span = params.life.reproduction_cost, range(1, seen.energy + 1)
    found = [
        Option(actions.Stay),
        Option(actions.Move),
        Option(actions.GiveEnergy, {"target": names, "amount": span}),
        Option(actions.TakeEnergy, {"target": names}),
    ]
    if seen.energy >= cost and sum(max(abs(b.dx), abs(b.dy)) == 1 for b in seen.beings) < 8:
        found.append(Option(actions.Reproduce, {"energy": range(seen.energy - cost + 1)}))
    if seen.energy >= params.artifacts.cost:
        found.append(Option(actions.CreateArtifact))
    if not params.artifacts.inert:
        found += _uses(carried, here, names)
    return found


def _uses(carried: Sequence[int], here: Sequence[int], names: Sequence[str]) -> Sequence[Option]:
    at_hand = [*carried, *here]
    return [
        Option(actions.ModifyArtifact, {"artifact": at_hand}),
        Option(actions.DestroyArtifact, {"artifact": at_hand}),
        Option(actions.PickUp, {"artifact": here}),
        Option(actions.Drop, {"artifact": carried}),
        Option(actions.HandOver, {"artifact": carried, "target": names}),
    ]


__all__ = ["options", "shown", "told"]

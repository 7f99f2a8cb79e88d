"""What can happen in Terra, beside what can happen in any world.

From these alone SQL can tell where everybody was, how much energy each had, where food lay and who held what:

- a being is where its last `born` or `moved` puts it;
- its energy is its `settled` or `reproduced` endowment, plus what it `ate`, was given and took, less what it
  gave, lost, and paid, less 1 for every tick lived (never below 0);
- the food on a cell is what `food_spawned` and `remains_left` put there, less what `food_decayed` and `ate`
  took;
- an artifact is where its last event puts it: with `agent_id` if picked up or handed over, else on a cell.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from ethnos.world.scenario import Event, Flow


def _unit(unit: str, description: str = "") -> Meta:
    return Meta(description=description or None, extra_json_schema={"unit": unit})


Energy = Annotated[int, _unit("energy")]


@dataclass(frozen=True, slots=True)
class WorldMade(Event):
    """The world came into being, with this size and these centres of food."""

    width: Annotated[int, _unit("cells")]
    height: Annotated[int, _unit("cells")]
    zones: Annotated[list[tuple[int, int]], Meta(description="centres [x, y]; none: food grows everywhere")]


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A founder took its place, with the energy it starts with."""

    agent_id: int
    x: int
    y: int
    amount: Energy


@dataclass(frozen=True, slots=True)
class FoodSpawned(Event):
    """A tile of food appeared on a free cell."""

    x: int
    y: int
    amount: Energy


@dataclass(frozen=True, slots=True)
class FoodDecayed(Event):
    """A tile of food lost a little; a tile with nothing left is gone."""

    x: int
    y: int
    amount: Energy


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """A being went to this cell."""

    agent_id: int
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Blocked(Event):
    """A being wanted to this cell and stayed, since another stood there."""

    agent_id: int
    target_id: Annotated[int, Meta(description="who stood in the way")]
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Ate(Event):
    """A being ate the food on its cell."""

    agent_id: int
    x: int
    y: int
    amount: Energy


@dataclass(frozen=True, slots=True)
class EnergyGiven(Event):
    """A being gave energy to another."""

    agent_id: int
    target_id: Annotated[int, Meta(description="who got it")]
    amount: Energy


@dataclass(frozen=True, slots=True)
class EnergyTaken(Event):
    """A being took energy from another."""

    agent_id: int
    target_id: Annotated[int, Meta(description="who lost it")]
    amount: Energy


@dataclass(frozen=True, slots=True)
class Reproduced(Event):
    """A being had a child on this cell."""

    agent_id: int
    target_id: Annotated[int, Meta(description="the child")]
    x: int
    y: int
    amount: Annotated[int, _unit("energy", "what the parent added from its own")]
    cost: Annotated[int, _unit("energy", "what the parent paid")]
    endowment: Annotated[int, _unit("energy", "what any child is born with, before what its parent adds")]


@dataclass(frozen=True, slots=True)
class ArtifactCreated(Event):
    """A being left a new text on its cell, or somebody from outside put one there."""

    agent_id: Annotated[int | None, Meta(description="the author; null: from outside")]
    artifact_id: int
    text: str
    name: str
    x: int
    y: int
    amount: Annotated[int, _unit("energy", "what it cost")]
    version: int
    lifetime: Annotated[int | None, _unit("ticks", "none: for ever")]


@dataclass(frozen=True, slots=True)
class ArtifactModified(Event):
    """A being gave an artifact a new text."""

    agent_id: Annotated[int, Meta(description="who wrote this version")]
    artifact_id: int
    text: str
    version: int
    parent_version: Annotated[int, Meta(description="the version it replaces")]
    parent_author: Annotated[int | None, Meta(description="who wrote the version it replaces; null: from outside")]


@dataclass(frozen=True, slots=True)
class ArtifactDestroyed(Event):
    """A being destroyed an artifact."""

    agent_id: int
    artifact_id: int
    version: int


@dataclass(frozen=True, slots=True)
class ArtifactExpired(Event):
    """An artifact came to the end of its lifetime."""

    artifact_id: int
    version: int


@dataclass(frozen=True, slots=True)
class ArtifactPickedUp(Event):
    """A being took up an artifact from its cell."""

    agent_id: int
    artifact_id: int
    version: int


@dataclass(frozen=True, slots=True)
class ArtifactDropped(Event):
    """A being laid down an artifact, or let it fall when it died."""

    agent_id: int
    artifact_id: int
    x: int
    y: int
    version: int


@dataclass(frozen=True, slots=True)
class ArtifactHandedOver(Event):
    """A being gave an artifact to another, who carries it now."""

    agent_id: int
    target_id: Annotated[int, Meta(description="who carries it now")]
    artifact_id: int
    version: int


@dataclass(frozen=True, slots=True)
class ArtifactRead(Event):
    """A version of an artifact by somebody else came before a being's eyes for the first time."""

    agent_id: int
    artifact_id: int
    version: int
    author_id: Annotated[int | None, Meta(description="who wrote that version; null: from outside")]


@dataclass(frozen=True, slots=True)
class Burned(Event):
    """What all beings together used up by living for a tick: 1 each, nothing who had nothing left."""

    amount: Energy


@dataclass(frozen=True, slots=True)
class Perished(Event):
    """A being's body fell on this cell, with the energy it still had."""

    agent_id: int
    x: int
    y: int
    amount: Energy


@dataclass(frozen=True, slots=True)
class RemainsLeft(Event):
    """A dead being became food on this cell."""

    agent_id: int
    x: int
    y: int
    amount: Energy


EVENTS: tuple[type[Any], ...] = (
    WorldMade,
    Settled,
    FoodSpawned,
    FoodDecayed,
    Moved,
    Blocked,
    Ate,
    EnergyGiven,
    EnergyTaken,
    Reproduced,
    ArtifactCreated,
    ArtifactModified,
    ArtifactDestroyed,
    ArtifactExpired,
    ArtifactPickedUp,
    ArtifactDropped,
    ArtifactHandedOver,
    ArtifactRead,
    Burned,
    Perished,
    RemainsLeft,
)

ENERGY = (
    Flow(Settled),
    Flow(FoodSpawned),
    Flow(FoodDecayed, sign=-1),
    Flow(Burned, sign=-1),
    Flow(Reproduced, "cost", -1),
    Flow(Reproduced, "endowment"),
    Flow(ArtifactCreated, sign=-1),
    Flow(Perished, sign=-1),
    Flow(RemainsLeft),
)
"""Where energy comes from and where it goes; all else moves it about."""

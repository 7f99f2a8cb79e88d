"""What a being can do: exactly one of these in a tick."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

Direction = Literal["north", "east", "south", "west"]
Energy = Annotated[int, Meta(ge=1, description="whole units of energy")]
Name = Annotated[str, Meta(max_length=40, description="the name of a being in sight")]
ArtifactId = Annotated[int, Meta(ge=0, description="the number of an artifact, as shown")]
Text = Annotated[str, Meta(description="about 500 tokens at most")]


@dataclass(frozen=True, slots=True)
class Stay:
    """Stay where you are."""


@dataclass(frozen=True, slots=True)
class Move:
    """Go to the next cell. If a being stands there, you stay. You eat the food on the cell you end on."""

    direction: Direction


@dataclass(frozen=True, slots=True)
class GiveEnergy:
    """Give some of your energy to a being in sight."""

    target: Name
    amount: Energy


@dataclass(frozen=True, slots=True)
class TakeEnergy:
    """Take energy from a being in sight; you get no more than it has."""

    target: Name
    amount: Energy


@dataclass(frozen=True, slots=True)
class Reproduce:
    """Have a child on a free cell next to you, at a cost. It inherits your traits, slightly changed."""

    energy: Annotated[int, Meta(ge=0, description="what you add to the child's own energy")] = 0
    name: Annotated[str, Meta(max_length=40, description="a name nobody else has; empty: one is given")] = ""


@dataclass(frozen=True, slots=True)
class CreateArtifact:
    """Leave a text on your cell. Whoever stands there or carries it can read it, also after your death."""

    name: Annotated[str, Meta(max_length=40, description="what others see from afar")]
    text: Text
    lifetime: Annotated[int, Meta(ge=1, le=1_000_000, description="ticks; null: for ever")] | None = None


@dataclass(frozen=True, slots=True)
class ModifyArtifact:
    """Replace the text of an artifact that lies on your cell or that you carry."""

    artifact: ArtifactId
    text: Text


@dataclass(frozen=True, slots=True)
class DestroyArtifact:
    """Destroy an artifact that lies on your cell or that you carry."""

    artifact: ArtifactId


@dataclass(frozen=True, slots=True)
class PickUp:
    """Pick up an artifact that lies on your cell."""

    artifact: ArtifactId


@dataclass(frozen=True, slots=True)
class Drop:
    """Lay down an artifact that you carry."""

    artifact: ArtifactId


@dataclass(frozen=True, slots=True)
class HandOver:
    """Give an artifact that you carry to a being in sight."""

    artifact: ArtifactId
    target: Name


ACTIONS = (
    Stay,
    Move,
    GiveEnergy,
    TakeEnergy,
    Reproduce,
    CreateArtifact,
    ModifyArtifact,
    DestroyArtifact,
    PickUp,
    Drop,
    HandOver,
)

"""What Terra is made of at any moment. Cells are numbered row by row, see `Torus`."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Being:
    """A living agent in the world."""

    name: str
    cell: int
    energy: int
    life: int
    """Ticks left to live."""
    ate: int = 0
    """Energy it ate in the last tick."""
    carries: list[int] = field(default_factory=list)
    """Artifacts, in the order it got them."""
    known: dict[int, int] = field(default_factory=dict)
    """The latest version it has read of each artifact."""


@dataclass(slots=True)
class Artifact:
    """A text that lies on a cell or is carried by a being."""

    name: str
    text: str
    version: int
    author: int | None
    """Who wrote this version; its maker wrote version 1. None: somebody from outside."""
    author_name: str
    expires: int | None
    """The tick in which it is gone; None: never."""
    cell: int | None
    holder: int | None


@dataclass(slots=True)
class TerraState:
    """The world of one tick."""

    zones: list[tuple[int, int]]
    beings: dict[int, Being] = field(default_factory=dict)
    where: dict[int, int] = field(default_factory=dict)
    """Who stands on a cell."""
    food: dict[int, int] = field(default_factory=dict)
    """Energy on a cell, only cells that have some."""
    artifacts: dict[int, Artifact] = field(default_factory=dict)
    lying: dict[int, list[int]] = field(default_factory=dict)
    """Artifacts on a cell, the oldest arrival first; only cells that have some."""
    expiring: dict[int, list[int]] = field(default_factory=dict)
    """Artifacts that are to expire in a tick, if they still exist then."""
    next_artifact: int = 0

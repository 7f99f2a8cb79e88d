"""What passes between the world and a mind: the turn an agent is given, and the decision it makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ethnos import chance


@dataclass(slots=True)
class Agent:
    """One member of a society, as the platform knows it. What it owns or where it stands is the scenario's."""

    id: int
    name: str
    cohort: str
    persona: dict[str, Any]
    """Traits, numbers or texts; a scenario may draw it (Terra's genome) and a society file may set it."""
    parent: int | None = None
    generation: int = 0
    born: int = 0
    """The tick of birth; 0 for founders."""
    inheritance: bytes = b""
    """Its parent's memory at its birth, until its own mind has a state: what a mind may hand down."""
    memory: bytes = b""
    """The state of its mind as of its last committed decision: JSON, or empty. Opaque to the world."""


@dataclass
class Turn:
    """One agent's turn: everything its mind may know."""

    agent: Agent
    tick: int
    observation: Any
    """An instance of the scenario's `Observation`."""
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """This agent's chance in this tick."""
        return chance.generator(self.seed, "mind", agent=self.agent.id, tick=self.tick)


@dataclass(slots=True)
class Decision:
    """What a mind returns: an action, something to say, and what it wants to remember."""

    action: Any
    """An instance of one of the scenario's actions."""
    message: str = ""
    """Said aloud, beside the action and free of cost; who hears it is the scenario's matter. Empty: silence."""
    memory: bytes | None = None
    """The mind's new state, handed back on every later turn; None leaves it as it was."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """How it came about (model, tokens, ...): provenance for the record, never read by the world."""

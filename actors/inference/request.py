"""What a mind asks of the inference pool, and what it gets back."""

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

SHARED_LAYERS = frozenset({"rules", "actions", "scenario", "cohort"})
"""Names of layers whose text is the same for all agents of a cohort. They come first."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A piece of a prompt. Layers go from what all agents share to what only this turn has."""

    name: str
    """rules, cohort, persona, notes, history, observation, ..."""
    text: str
    role: Literal["system", "user"] = "system"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model is to sample. `seed` is a wish: which engines keep it is documented with the engine."""

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model for one agent."""

    tick: int
    agent_id: int
    call: int
    """0 for the first call of a turn, 1 for the re-ask, ..."""
    layers: tuple[Layer, ...]
    schema: dict[str, Any] | None
    """JSON schema the reply has to obey; None: free text."""
    sampling: Sampling = Sampling()
    deadline_s: float = 60.0
    """Seconds from now after which nobody waits for the reply any more."""
    priority: int = 0
    """Higher goes first: whoever the tick waits for."""

    @property
    def id(self) -> str:
        """Unique in a run."""
        return f"{self.tick}-{self.agent_id}-{self.call}"

    @property
    def digest(self) -> bytes:
        """Of everything that decides the answer: two requests with one id are one only if this agrees."""
        sampling = self.sampling
        rest = (self.schema, sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed)
        return _hash(self.layers, json.dumps(rest)).digest()

    @property
    def shared(self) -> tuple[Layer, ...]:
        """The leading layers that other agents have too."""
        count = 0
        while count < len(self.layers) and self.layers[count].name in SHARED_LAYERS:
            count += 1
        return self.layers[:count]

    @property
    def head(self) -> str:
        """A hash of the shared layers: what has the same head has the same beginning. Empty: nothing is shared."""
        shared = self.shared
        return _hash(shared).hexdigest() if shared else ""


def _hash(layers: tuple[Layer, ...], rest: str = "") -> "blake2b":
    found = blake2b(rest.encode(), digest_size=12)
    for layer in layers:
        text = layer.text.encode("utf-8", "surrogatepass")
        found.update(f"{layer.role}/{len(text)}/".encode())
        found.update(text)
    return found


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer, or why there is none."""

    text: str
    error: str = ""
    """Empty if there is an answer. `late`, `budget`, or the engine's last word after all attempts."""
    engine: str = ""
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0
    """From entering the pool to leaving it."""
    attempts: int = 1
    """Calls of an engine that were made for it; 0 if none was."""
    finish: str = ""
    """stop, length, abort, ..."""
    cost: float = 0.0
    """Money, by the price table of the society file, in its currency."""
    detail: dict[str, Any] = field(default_factory=dict)
    """What else is worth recording: the engine's last trouble, a text cut for its length, ..."""

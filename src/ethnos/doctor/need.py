"""What a society will need of a machine, by rule of thumb (docs/architecture.md, docs/performance.md)."""

import math
import os
from dataclasses import dataclass

from ethnos.society import Society

MB_PER_ACTOR = 60
KB_PER_AGENT = 80
OWN_PROCESSES_PER_CORE = 25
FILES_AT_LEAST = 1024
FILES_PER_ACTOR = 16
"""Sockets and pipes that a Ray worker costs the raylet and the world-state service between them."""
BYTES_PER_AGENT_STEP = 100
"""Of the record, for scripted minds: twice what was measured; see docs/operations.md."""
BYTES_PER_THOUGHT = 6_000
"""The same for a turn of a language model, with the observation it was shown and the reply. A guess."""


@dataclass(frozen=True, slots=True)
class Need:
    """Estimates; all 0 where no society is given."""

    actors: int = 0
    memory_mb: int = 0
    files: int = FILES_AT_LEAST
    disk_bytes: int = 0
    gpus: float = 0.0
    resources: tuple[tuple[str, float], ...] = ()
    """Further resources of Ray that have to be there, by name."""


def need_of(society: Society | None) -> Need:
    """What a society will need, if its population stays what it is at the start."""
    if society is None:
        return Need()
    founders = sum(c.count for c in society.population)
    actors = _actors(society, founders)
    steps = founders * society.ticks
    return Need(
        actors=actors,
        memory_mb=actors * MB_PER_ACTOR + founders * KB_PER_AGENT // 1024,
        files=FILES_AT_LEAST + FILES_PER_ACTOR * actors,
        disk_bytes=steps * (BYTES_PER_THOUGHT if society.models else BYTES_PER_AGENT_STEP),
        gpus=sum(_gpus(spec) for specs in society.models.values() for spec in specs),
    )


def _actors(society: Society, founders: int) -> int:
    cores = os.cpu_count() or 1
    if society.agents_per_actor == "auto":
        return founders if founders <= OWN_PROCESSES_PER_CORE * cores else cores
    actors = math.ceil(founders / society.agents_per_actor)
    return actors + max(2, founders // 4) if society.agents_per_actor == 1 else actors


def _gpus(spec: object) -> float:
    managed = getattr(spec, "managed", None)
    return float(managed.gpus) if managed is not None else 0.0

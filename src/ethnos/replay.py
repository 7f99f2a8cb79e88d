"""Executing a run again from its recorded decisions: no mind is asked, and every tick is held against the record."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from ethnos.errors import RecordDamaged, RunError
from ethnos.record import digest
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import picture
from ethnos.record.schema import events_batch
from ethnos.world.rebuild import Difference, Recorded, begin, difference, execute, recorded_ticks, stretches
from ethnos.world.world import World


@dataclass(frozen=True)
class Replayed:
    """What became of a replay."""

    world: World
    """As of the last tick that repeated, or of the one that did not."""
    tick: int
    """The last tick that repeated; -1: none."""
    digest: str
    """The digest up to it."""
    difference: Difference | None = None
    """The first event that came out otherwise, if any did."""
    misled: int | None = None
    """The first agent that would be shown something else than it was, if events still agree."""

    @property
    def ok(self) -> bool:
        return self.difference is None and self.misled is None


def replay(run: RunDirectory, to: int | None = None, on_tick: Callable[[int], None] = lambda tick: None) -> Replayed:
    """Execute a run again, up to its last committed tick or `to`; stop at the first difference.

    Raises RunError if the run was altered or has no such tick, RecordDamaged if it cannot be read.
    """
    run.check_unaltered()
    seen = picture(run)
    world: World | None = None
    tick, chain = -1, digest.START
    for stretch in stretches(run, to):
        world = begin(world, stretch)
        for recorded in recorded_ticks(seen, world.tick, stretch.last):
            misled = _misled(world, recorded)
            rows = events_batch(execute(world, stretch.society, recorded))
            computed = digest.extend(chain, rows)
            if computed != recorded.digest:
                return Replayed(world, tick, chain, difference(recorded, rows))
            if misled is not None:
                return Replayed(world, tick, chain, misled=misled)
            tick, chain = recorded.tick, computed
            on_tick(tick)
    if world is None or (to is not None and tick != to):
        raise RunError(f"run {run.name} has no tick {to}; its last one is {tick}" if to else f"run {run.name} is empty")
    return Replayed(world, tick, chain)


def _misled(world: World, recorded: Recorded) -> int | None:
    """The first agent that would not be shown what it was shown."""
    ids = sorted(i for i, shown in recorded.shown.items() if shown is not None)
    if any(i not in world.agents for i in ids):
        raise RecordDamaged(f"tick {recorded.tick} has decisions of agents that do not live")
    for i, observation in zip(ids, world.observe(ids), strict=True):
        if blake2b(observation, digest_size=8).hexdigest() != recorded.shown[i]:
            return i
    return None


def look(world: World) -> dict[str, Any]:
    """A world to look at, in plain values."""
    return {
        "tick": world.tick,
        "next_seq": world.now.next_seq,
        "params": world.now.params,
        "stocks": dict(world.scenario.stocks(world.now.state)),
        "agents": [{**_plain(a), "memory": a.memory.decode("utf-8", "replace")} for a in world.agents.values()],
        "state": _plain(world.now.state),
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_array, str_keys=True)


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"a {type(value).__name__}")


__all__ = ["Replayed", "look", "replay"]

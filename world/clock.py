"""The clock: ask, resolve, commit, again. It neither knows where agents live nor what a mind is."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol

import pyarrow.parquet as pq

from ethnos.errors import RecordDamaged
from ethnos.record import digest
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.schema import events_batch
from ethnos.society import Society
from ethnos.world.scheduler import LockStep, Scheduler
from ethnos.world.world import Answer, Step, World


class Agents(Protocol):
    """Whoever carries observations to agents and their decisions back."""

    async def ask(self, tick: int, ids: Sequence[int], observations: Sequence[bytes]) -> Mapping[int, Answer]:
        """One answer for each of `ids`; an agent that did not decide in time has a late one."""
        ...

    async def committed(self, step: Step) -> None:
        """A tick is on disk: agents may have been born or have died."""
        ...


class Clock:
    """One run, from wherever its record ends."""

    def __init__(self, society: Society, log: Log, scheduler: Scheduler | None = None) -> None:
        self.society = society
        self.log = log
        self.world = World(society.make_scenario(), society.seed)
        self.scheduler = scheduler or LockStep()
        self.agent_steps = 0
        """Decisions resolved by this clock."""

    def recover(self) -> None:
        """Bring the world to the last committed tick, or make tick 0. Raises RecordDamaged."""
        if self.log.tick < 0:
            start = time.monotonic()
            step = self.world.setup(self.society.cohorts())
            self.log.commit(step, {}, _ms_since(start))
        else:
            rebuild(self.world, self.society, self.log.run)

    @property
    def done(self) -> str:
        """Why there is no further tick; empty if there is one."""
        if self.world.tick >= self.society.ticks:
            return f"reached tick {self.society.ticks}"
        return "the world came to its end" if self.world.over() else ""

    async def tick(self, agents: Agents) -> Step:
        """One tick: it is on disk when this returns. Raises RecordFull if it could not be put there."""
        start = time.monotonic()
        ids = self.scheduler.next(self.world)
        observations = self.world.observe(ids)
        answers = await agents.ask(self.world.tick + 1, ids, observations)
        shown = {i: blake2b(o, digest_size=8).hexdigest() for i, o in zip(ids, observations, strict=True)}
        step = self.world.step(answers)
        self.log.commit(step, shown, _ms_since(start))
        self.agent_steps += len(step.decisions)
        await agents.committed(step)
        return step

    async def run(self, agents: Agents, gate: Callable[[], Awaitable[bool]]) -> str:
        """Tick until the end, or until `gate`, awaited before each tick, says no. Returns why it ended."""
        while not self.done:
            if not await gate():
                return "stopped"
            await self.tick(agents)
        return self.done


def rebuild(world: World, society: Society, run: RunDirectory) -> None:
    """Make the world again from the recorded decisions. Raises RecordDamaged where it comes out differently."""
    computed = digest.START
    for tick, recorded, answers in recorded_ticks(run):
        step = world.step(answers) if tick else world.setup(society.cohorts())
        computed = digest.extend(computed, events_batch(step))
        _compare(run, tick, recorded, computed)


def _compare(run: RunDirectory, tick: int, recorded: str, computed: str) -> None:
    if recorded != computed:
        raise RecordDamaged(
            f"run {run.name} does not repeat: tick {tick} has digest {recorded[:12]} in the record and "
            f"{computed[:12]} when it is executed again. `ethnos verify {run.name}` checks the record itself"
        )


_REPLAYED = ["tick", "agent_id", "action", "args", "message", "memory", "status", "reason"]


def recorded_ticks(run: RunDirectory) -> Iterator[tuple[int, str, dict[int, Answer]]]:
    """(tick, digest, answers) of each sealed tick, in order."""
    for part in run.parts("ticks"):
        digests = pq.read_table(part, columns=["tick", "digest"]).to_pydict()
        answers: dict[int, dict[int, Answer]] = {}
        for row in pq.read_table(run.path / "decisions" / part.name, columns=_REPLAYED).to_pylist():
            answers.setdefault(row["tick"], {})[row["agent_id"]] = _answer(row)
        for tick, recorded in zip(digests["tick"], digests["digest"], strict=True):
            yield tick, recorded, answers.get(tick, {})


def _answer(row: dict[str, Any]) -> Answer:
    memory = None if row["memory"] is None else row["memory"].encode()
    return Answer(
        row["agent_id"],
        row["action"],
        row["args"].encode(),
        row["message"],
        memory,
        row["status"],
        row["reason"],
    )


def _ms_since(start: float) -> float:
    return (time.monotonic() - start) * 1000

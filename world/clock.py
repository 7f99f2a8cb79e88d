"""The clock: ask, resolve, commit, again. It neither knows where agents live nor what a mind is."""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

from ethnos import traces
from ethnos.logs import about
from ethnos.record import snapshots
from ethnos.record.log import Log
from ethnos.record.pending import Pending
from ethnos.record.schema import Layer
from ethnos.society import Society
from ethnos.world.outside import Outside
from ethnos.world.rebuild import rebuild
from ethnos.world.scheduler import LockStep, Scheduler
from ethnos.world.spec import rules_digest
from ethnos.world.world import Answer, Step, World

_log = logging.getLogger("ethnos")


class Agents(Protocol):
    """Whoever carries observations to agents and their decisions back."""

    async def ask(self, tick: int, ids: Sequence[int], observations: Sequence[bytes]) -> Mapping[int, Answer]:
        """One answer for each of `ids`; an agent that did not decide in time has a late one.

        Each is shown to `Clock.keep` when it arrives.
        """
        ...

    async def committed(self, step: Step, anew: Collection[int]) -> None:
        """A tick is on disk: agents may have been born or have died. Those in `anew` are not what they were when
        they were last handed over, though they did not decide it: their hosts have to be told."""
        ...


class Clock:
    """One run, from wherever its record ends."""

    def __init__(self, society: Society, log: Log, scheduler: Scheduler | None = None) -> None:
        self.society = society
        self.log = log
        self.world = World(society.make_scenario(), society.seed)
        self.scheduler = scheduler or LockStep()
        self.outside = Outside(log.run, society)
        self.agent_steps = 0
        """Decisions resolved by this clock."""
        self._pending = Pending(log.run)
        self._costly = {c.cohort for c in society.population if society.is_costly(c.cohort)}
        """Cohorts; membership only."""
        self._rules = rules_digest(self.world.spec)
        self.snapshot_s: float | None = None
        """What the snapshot of the last tick took; None if it had none."""

    def recover(self) -> None:
        """Bring the world to the last committed tick, or make tick 0. Raises RecordDamaged."""
        if self.log.tick < 0:
            start = time.monotonic()
            step = self.world.setup(self.society.cohorts())
            self.log.commit(step, {}, _ms_since(start))
        else:
            self.world = rebuild(self.log.run)
        self.outside.recover(self.log.tick)

    @property
    def done(self) -> str:
        """Why there is no further tick; empty if there is one."""
        if self.world.tick >= self.society.ticks:
            return f"reached tick {self.society.ticks}"
        return "the world came to its end" if self.world.over() else ""

    async def tick(self, agents: Agents) -> Step:
        """One tick: it is on disk when this returns. Raises RecordFull if it could not be put there."""
        with traces.span("tick", tick=self.world.tick + 1), about(tick=self.world.tick + 1):
            return await self._tick(agents)

    async def _tick(self, agents: Agents) -> Step:
        start = time.monotonic()
        number = self.world.tick + 1
        ids = self.scheduler.next(self.world)
        observations = self.world.observe(ids)
        kept = self._kept(number)
        rest = [(i, o) for i, o in zip(ids, observations, strict=True) if i not in kept]
        try:
            answers = await agents.ask(number, [i for i, _ in rest], [o for _, o in rest])
        finally:
            with self.log.disk():
                await self._pending.flush()
        step = self.world.step({**kept, **answers}, self.outside.due(number))
        shown = {i: blake2b(o, digest_size=8).hexdigest() for i, o in zip(ids, observations, strict=True)}
        self.log.commit(step, shown, _ms_since(start))
        self._tidy(step)
        await agents.committed(step, {*kept, *step.edited})
        return step

    def keep(self, answer: Answer, layers: Sequence[Layer] = ()) -> None:
        """Have an answer that just arrived survive a crash, if its mind is costly to ask again."""
        if self.world.agents[answer.agent_id].cohort in self._costly:
            self._pending.add(answer, layers)

    def _kept(self, tick: int) -> dict[int, Answer]:
        """The answers to a tick that arrived before a crash."""
        if not self._costly:
            return {}
        with self.log.disk():
            found = self._pending.begin(tick, self.log.digest)
        self.log.note_layers(layer for _, layers in found.values() for layer in layers)
        return {i: answer for i, (answer, _) in found.items()}

    def _tidy(self, step: Step) -> None:
        """A tick is committed: what was kept for it may go, and a snapshot may be due."""
        self.agent_steps += len(step.decisions)
        self._pending.end()
        self.outside.done(step.tick)
        self.snapshot_s = None
        every = self.society.snapshot_every
        if every and step.tick % every == 0:
            self._save()

    def _save(self) -> None:
        """Write a snapshot. A run goes on without one."""
        start, now = time.monotonic(), self.world.now
        saved = snapshots.Saved(now.tick, now.next_seq, self.log.digest, self._rules, self.world.snapshot())
        try:
            snapshots.save(self.log.run, saved)
            self.snapshot_s = time.monotonic() - start
        except OSError as error:
            _log.warning("no snapshot of tick %d: %s", now.tick, error)
            with suppress(OSError):
                snapshots.path_of(self.log.run, now.tick).unlink(missing_ok=True)

    async def run(self, agents: Agents, gate: Callable[[], Awaitable[bool]]) -> str:
        """Tick until the end, or until `gate`, awaited before each tick, says no. Returns why it ended."""
        while not self.done:
            if not await gate():
                return "stopped"
            await self.tick(agents)
        return self.done


def _ms_since(start: float) -> float:
    return (time.monotonic() - start) * 1000

"""Agents in this very process, without Ray or gRPC: for tests, notebooks and sweeps of scripted societies.

They go through the same encodings and the same checks as agents in actors, so the record is the same.
"""

import asyncio
import inspect
from collections.abc import Mapping, Sequence

from ethnos.actors.host import Host
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.society import Society, parse
from ethnos.wire.v1 import world_pb2 as wire
from ethnos.world.clock import Clock
from ethnos.world.edge import received
from ethnos.world.hosts import agent_message
from ethnos.world.world import Answer, Step


class Here:
    """Carries observations to agents in this process and their decisions back."""

    def __init__(self, clock: Clock, society: Society) -> None:
        self._clock = clock
        self._society = society
        self._host = Host(society)
        self._hosted: dict[int, None] = {}

    async def ask(self, tick: int, ids: Sequence[int], observations: Sequence[bytes]) -> Mapping[int, Answer]:
        self._adopt(ids)
        made = [self._host.think(tick, i, o) for i, o in zip(ids, observations, strict=True)]
        async with asyncio.timeout(self._society.decision_deadline):
            decisions = [await d if inspect.isawaitable(d) else d for d in made]
        self._clock.log.note_layers(layer for d in decisions for layer in d.layers)
        return {d.agent_id: self._receive(d) for d in decisions}

    async def committed(self, step: Step) -> None:
        alive = self._clock.world.agents
        gone = [i for i in self._hosted if i not in alive]
        self._host.release(gone)
        for i in gone:
            del self._hosted[i]

    def _adopt(self, ids: Sequence[int]) -> None:
        new = [i for i in ids if i not in self._hosted]
        self._host.adopt(wire.Adopt(agents=[agent_message(self._clock.world.agents[i]) for i in new]))
        self._hosted.update(dict.fromkeys(new))

    def _receive(self, d: wire.Decision) -> Answer:
        mind = self._society.mind_of(self._clock.world.agents[d.agent_id].cohort)
        return received(d, mind=f"{mind.kind}/{mind.name}")


def run_here(run: RunDirectory) -> str:
    """Bring a run to its end in this process, from wherever its record ends. Returns why it ended."""
    society = parse(run.society.read_text("utf-8"), str(run.society))

    async def always() -> bool:
        return True

    with Log(run) as log:
        clock = Clock(society, log)
        clock.recover()
        reason = asyncio.run(clock.run(Here(clock, society), always))
        log.seal()
        run.finish("finished", reason, log.digest, log.tick)
    return reason

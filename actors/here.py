"""Agents in this very process, without Ray or gRPC: for tests, notebooks and sweeps of scripted societies.

They go through the same encodings and the same checks as agents in actors, so the record is the same.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Literal

from ethnos.actors.host import Host
from ethnos.actors.minds.making import Ask, Tokens
from ethnos.actors.thinking import Models, spent_before
from ethnos.errors import OutOfBudget
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

    def __init__(self, clock: Clock, society: Society, ask: Ask, special: Tokens | None = None) -> None:
        self._clock = clock
        self._society = society
        self._host = Host(society, ask, special)
        self._hosted: dict[int, None] = {}

    async def ask(self, tick: int, ids: Sequence[int], observations: Sequence[bytes]) -> Mapping[int, Answer]:
        """Minds in code answer at once; those that wait think side by side, until the deadline."""
        self._adopt(ids)
        answers: dict[int, Answer] = {}
        thinking: dict[asyncio.Task[None], int] = {}
        for i, observation in zip(ids, observations, strict=True):
            made = self._host.think(tick, i, observation)
            if inspect.isawaitable(made):
                thinking[asyncio.ensure_future(self._wait_for(made, answers))] = i
            else:
                self._take(made, answers)
        if thinking:
            _, late = await asyncio.wait(thinking, timeout=self._society.decision_deadline)
            for task in late:
                task.cancel()
                answers[thinking[task]] = self._late(thinking[task])
            for task in thinking.keys() - late:
                task.result()
        return answers

    async def _wait_for(self, made: Awaitable[wire.Decision], answers: dict[int, Answer]) -> None:
        self._take(await made, answers)

    def _take(self, decision: wire.Decision, answers: dict[int, Answer]) -> None:
        answers[decision.agent_id] = answer = received(decision, self._mind(decision.agent_id))
        self._clock.log.note_layers(decision.layers)
        self._clock.keep(answer, decision.layers)

    def _late(self, agent: int) -> Answer:
        self._hosted.pop(agent)
        elapsed = self._society.decision_deadline * 1000
        return Answer(agent, status="late", latency_ms=elapsed, mind=self._mind(agent))

    async def committed(self, step: Step, anew: Collection[int]) -> None:
        alive = self._clock.world.agents
        gone = [i for i in self._hosted if i not in alive or i in anew]
        self._host.release(gone)
        for i in gone:
            del self._hosted[i]

    def _adopt(self, ids: Sequence[int]) -> None:
        new = [i for i in ids if i not in self._hosted]
        self._host.adopt(wire.Adopt(agents=[agent_message(self._clock.world.agents[i]) for i in new]))
        self._hosted.update(dict.fromkeys(new))

    def _mind(self, agent: int) -> str:
        return self._society.mind_of(self._clock.world.agents[agent].cohort).label


def run_here(run: RunDirectory) -> str:
    """Bring a run to its end in this process, from wherever its record ends. Returns why it ended."""
    return asyncio.run(_run(run, parse(run.society.read_text("utf-8"), str(run.society))))


async def _run(run: RunDirectory, society: Society) -> str:
    with Log(run) as log:
        clock = Clock(society, log)
        clock.recover()
        async with Models(society, spent_before(run)) as models:
            state: Literal["finished", "stopped"] = "finished"
            try:
                reason = await clock.run(Here(clock, society, models.ask, models.special_tokens()), _always)
            except OutOfBudget as spent:
                state, reason = "stopped", str(spent)
        log.seal()
        run.finish(state, reason, log.digest, log.tick)
    return reason


async def _always() -> bool:
    return True

"""Terra with a mind that takes its time: the same decisions as the forager's, in another order of arrival."""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ethnos.world.scenario import Decision, Turn
from ethnos.world.scenarios.terra import Terra
from ethnos.world.scenarios.terra.minds import Forager

MISREMEMBERED = """
    SELECT agent_id, tick, memory, turn
    FROM (SELECT *, CAST(row_number() OVER (PARTITION BY agent_id ORDER BY tick) AS VARCHAR) AS turn FROM decisions)
    WHERE memory IS DISTINCT FROM turn
"""
"""Turns of `Jitter` that it did not remember exactly once."""


@dataclass(frozen=True)
class Jitter(Forager):
    """Waits for a while that differs in every process and tick, then does what a forager does and counts its turns."""

    longest_ms: float = 20.0
    slow: int = -1
    """An agent that needs the longest time always; all others are quick."""
    calls: str = ""
    """A file that gets a line per call: (agent, tick)."""

    async def decide(self, turn: Turn) -> Any:
        if self.calls:
            with Path(self.calls).open("a") as file:
                file.write(f"{turn.agent.id} {turn.tick}\n")
        share = int.from_bytes(os.urandom(2)) / 65536 if self.slow < 0 else float(turn.agent.id == self.slow)
        await asyncio.sleep(share * self.longest_ms / 1000)
        return Decision(Forager.decide(self, turn), memory=b"%d" % (int(turn.agent.memory or b"0") + 1))


@dataclass(frozen=True)
class Faulty(Forager):
    """Fails for one agent, hangs for another, writes too much for a third."""

    async def decide(self, turn: Turn) -> Any:
        if turn.agent.id == 1:
            raise RuntimeError("no idea")
        if turn.agent.id == 2 and turn.tick == 3:
            await asyncio.sleep(3600)
        return Forager.decide(self, turn)


@dataclass(frozen=True)
class Mad(Forager):
    """For one agent each: blocks its process, ends it, ends its thread, answers in another's name."""

    def decide(self, turn: Turn) -> Any:
        if turn.agent.id == 0 and turn.tick == 2:
            time.sleep(3600)
        if turn.agent.id == 1 and turn.tick == 4:
            os._exit(9)
        if turn.agent.id == 2:
            raise SystemExit(3)
        if turn.agent.id == 3:
            turn.agent.id = 4
        return Forager.decide(self, turn)


class JitterTerra(Terra):
    """Terra, with the minds above."""

    minds: ClassVar[Any] = {**Terra.minds, "jitter": Jitter, "faulty": Faulty, "mad": Mad}

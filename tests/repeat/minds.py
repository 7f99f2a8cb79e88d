"""Terra with minds that count their calls, think slowly, or kill the process they think in."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ethnos.world.scenario import Decision, Turn
from ethnos.world.scenarios.terra import Terra
from ethnos.world.scenarios.terra.minds import Forager


@dataclass(frozen=True)
class Counting(Forager):
    """A forager that tells a file of each call, remembers how often it was asked, and costs something."""

    calls: str = ""
    """The file; each call is a line `agent tick`."""
    kill_at: int = 0
    """The tick in which its process dies; 0: never."""
    answered: int = 0
    """How many agents have answered by then."""

    async def decide(self, turn: Turn) -> Any:
        with Path(self.calls).open("a") as file:
            file.write(f"{turn.agent.id} {turn.tick}\n")
        marker = Path(f"{self.calls}.killed")
        if turn.tick == self.kill_at and turn.agent.id >= self.answered and not marker.exists():
            await asyncio.sleep(1)  # so that what has been answered is on disk
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Decision(Forager.decide(self, turn), memory=b"%d" % (int(turn.agent.memory or b"0") + 1))


class CountingTerra(Terra):
    """Terra, with the mind above."""

    minds: ClassVar[Any] = {**Terra.minds, "counting": Counting}

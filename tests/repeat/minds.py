"""Terra with minds that count their calls, think slowly, never think the same, or kill their process."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ethnos.world.scenario import Decision, Turn
from ethnos.world.scenarios.terra import Terra
from ethnos.world.scenarios.terra.actions import Stay
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


@dataclass(frozen=True)
class Fickle(Forager):
    """Slow, and decides otherwise each time it is asked, as a model does: only a record repeats it."""

    longest_ms: float = 30.0
    calls: str = ""
    """A file that gets a line per call: `agent tick`."""

    async def decide(self, turn: Turn) -> Any:
        if self.calls:
            with Path(self.calls).open("a") as file:
                file.write(f"{turn.agent.id} {turn.tick}\n")
        luck = os.urandom(2)
        await asyncio.sleep(luck[0] / 256 * self.longest_ms / 1000)
        return Stay() if luck[1] < 64 else Forager.decide(self, turn)


class CountingTerra(Terra):
    """Terra, with the minds above."""

    minds: ClassVar[Any] = {**Terra.minds, "counting": Counting, "fickle": Fickle}

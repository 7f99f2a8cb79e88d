"""Who may be asked now."""

from typing import Protocol

from ethnos.world.world import World


class Scheduler(Protocol):
    """Decides which agents may be asked, given what is resolved so far.

    Another one than `LockStep` may run agents ahead of each other that a scenario's `reach` keeps apart.
    """

    def next(self, world: World) -> list[int]:
        """Ids of the agents to ask for the next tick, ascending."""
        ...


class LockStep:
    """Everybody due in a tick is asked at once, and the tick waits for all."""

    def next(self, world: World) -> list[int]:
        return world.due()

"""What is to be changed from outside, and when: from the society file, and as people ask for it meanwhile.

What people ask for is on disk (`wal/asked.json`) before they are told that it will happen.
"""

from collections.abc import Sequence

import msgspec

from ethnos.errors import RecordDamaged, Refused, SocietyError
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.society import Society
from ethnos.world.interventions import AddAgent, Intervention, parse_change
from ethnos.world.world import World


class Outside:
    """The interventions that are still to come, each with its tick."""

    def __init__(self, run: RunDirectory, society: Society) -> None:
        self._path = run.wal / "asked.json"
        self._planned = list(society.interventions)
        self._cohorts = [c.cohort for c in society.population]
        self._asked: list[Intervention] = []

    def recover(self, committed: int) -> None:
        """Take up again what was asked for and not done yet. Raises RecordDamaged."""
        try:
            data = msgspec.json.decode(self._path.read_bytes(), type=list[dict[str, object]])
            self._asked = [parse_change(d) for d in data]
        except FileNotFoundError:
            return
        except (msgspec.MsgspecError, SocietyError) as error:
            raise RecordDamaged(f"{self._path} makes no sense: {error}") from None
        self.done(committed)

    def ask(self, change: Intervention, world: World) -> int:
        """Have something done in its tick, at the earliest the next; returns that tick. Raises Refused."""
        tick = change.tick or world.tick + 1
        if tick <= world.tick:
            raise Refused(f"tick {tick} is over, the next one is {world.tick + 1}")
        if isinstance(change, AddAgent) and change.cohort not in self._cohorts:
            raise Refused(f"no cohort {change.cohort!r}; there are: {', '.join(self._cohorts)}")
        change = change.model_copy(update={"tick": tick})
        if tick == world.tick + 1:
            world.try_out([*self.due(tick), change])
        self._asked.append(change)
        self._write()
        return tick

    def due(self, tick: int) -> Sequence[Intervention]:
        """What is to be done in a tick: first what was planned, then what was asked for, in that order."""
        return [c for c in (*self._planned, *self._asked) if c.tick == tick]

    def done(self, tick: int) -> None:
        """Forget what is committed."""
        if any((c.tick or 0) <= tick for c in self._asked):
            self._asked = [c for c in self._asked if (c.tick or 0) > tick]
            self._write()

    def _write(self) -> None:
        data = [{**c.change(), "tick": c.tick} for c in self._asked]
        write_durably(self._path, msgspec.json.encode(data))

"""Which engine a request goes to.

Equal beginnings belong together: an engine that has read a shared head answers the next request with that head
faster. So each head has a home (rendezvous hashing: when an engine comes or goes, only the heads it had move), and
an agent stays with the engine that served it last, which knows its persona and history too. Neither may make one
engine wait while another rests: a home that is much busier than the mean is passed over.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from ethnos.actors.inference.job import Job
from ethnos.actors.inference.lane import Lane

OVER_MEAN = 1.1
SLACK = 4
"""A home may be a tenth busier than the mean, and have some requests more than that."""
AGENTS = 100_000


class Routing:
    """Remembers who was served where."""

    def __init__(self) -> None:
        self._last: OrderedDict[int, str] = OrderedDict()

    def choose(self, job: Job, lanes: Sequence[Lane], now: float) -> Lane | None:
        """The lane for a job, among those that may take it; None if there is none."""
        allowed = [lane for lane in lanes if lane.name not in job.excluded]
        alive = [lane for lane in allowed if not lane.down]
        choice = [lane for lane in alive if lane.open(now)] or alive or allowed
        if len(choice) < 2:
            return choice[0] if choice else None
        mean = sum(lane.load for lane in choice) / len(choice)
        ranked = sorted(choice, key=lambda lane: self._rank(job, lane), reverse=True)
        return next(
            (lane for lane in ranked if lane.load <= OVER_MEAN * mean + SLACK / lane.limit),
            min(choice, key=lambda lane: lane.load),
        )

    def served(self, agent_id: int, lane: Lane) -> None:
        self._last[agent_id] = lane.name
        self._last.move_to_end(agent_id)
        if len(self._last) > AGENTS:
            self._last.popitem(last=False)

    def _rank(self, job: Job, lane: Lane) -> tuple[bool, bytes]:
        return self._last.get(job.request.agent_id) == lane.name, weight(job.head, lane.name)


@lru_cache(maxsize=65_536)
def weight(head: str, lane: str) -> bytes:
    """How much a head belongs to an engine."""
    return blake2b(f"{head}/{lane}".encode(), digest_size=8).digest()

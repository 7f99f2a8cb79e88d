"""Everything Ethnos raises on purpose.

EthnosError
├── SocietyError        the society file asks for something impossible
├── RunError            a run directory cannot be used as asked
│   ├── RunExists       the name is taken; runs are never overwritten
│   ├── RunNotFound     no such run
│   ├── RunBusy         another process is writing this run
│   ├── RecordDamaged   the record contradicts itself before its last committed tick
│   └── RecordFull      the disk took no more; the record is valid up to its last committed tick
├── QueryError          a SQL query is wrong or asks for what a reader may not do
├── ClusterError        Ray or the world-state service cannot be reached or started
├── OutOfBudget         what a run may spend on models is spent; it stops, and can be resumed
├── MindFailed          a mind came to no decision (recorded; its agent does the neutral thing)
└── Refused             the rules of a world refuse an action (raised by scenarios, recorded as an event)
"""

from collections.abc import Mapping
from typing import Any


class EthnosError(Exception):
    """Base of all errors that a user can do something about; its text says what."""


class SocietyError(EthnosError):
    """A society file, or a change to it, is not valid. The text lists every problem with its line."""


class RunError(EthnosError):
    """A run directory cannot be used as asked."""


class RunExists(RunError):
    """The run's name is taken."""


class RunNotFound(RunError):
    """No run of that name."""


class RunBusy(RunError):
    """Another process is writing this run."""


class RecordDamaged(RunError):
    """Committed data is missing or contradicts itself."""


class RecordFull(RunError):
    """The log could not be extended; everything up to the last committed tick is safe."""


class QueryError(EthnosError):
    """A query failed; the text is DuckDB's, shortened."""


class ClusterError(EthnosError):
    """Ray, or the world-state service in it, is not to be had."""


class Refused(EthnosError):
    """The rules of a world refuse an action; the text is the reason the agent is told."""


class OutOfBudget(EthnosError):
    """What a run may spend on models is spent. The tick under way is not resolved; the run can be resumed."""


class MindFailed(EthnosError):
    """A mind came to no decision; the text says why. `how` is its provenance all the same, for the record."""

    def __init__(self, reason: str, how: Mapping[str, Any] | None = None, *, late: bool = False) -> None:
        super().__init__(reason)
        self.how: Mapping[str, Any] = how or {}
        self.late = late
        """Whether it would have decided, given more time."""

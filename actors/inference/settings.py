"""How the pool behaves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults suit everything from one laptop to a cluster."""

    linger_s: float = 0.002
    """How long what is ready waits for company, where engines take batches."""
    max_failures: int = 4
    """Calls that may fail for one request. Being told to wait is no failure."""
    health_timeout_s: float = 30.0
    first_recheck_s: float = 0.1
    longest_recheck_s: float = 10.0
    """A dead engine is asked back at growing intervals."""
    denied_rest_s: float = 30.0
    """How long an engine that lets us do nothing is left alone, while there are others."""
    warm_timeout_s: float = 60.0
    memo_replies: int = 50_000
    memo_bytes: int = 64 << 20
    """Answers that are remembered, so that none is paid for twice."""

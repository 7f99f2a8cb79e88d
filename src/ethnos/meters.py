"""What a running society measures of itself. Who measures does not know who reads: Ray and Prometheus, or a test."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Sort = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Meter:
    """One figure. Names follow Prometheus: seconds, bytes, and `_total` for what only grows."""

    sort: Sort
    meaning: str
    bounds: tuple[float, ...] = ()
    """Of a histogram's buckets."""
    label: str = ""
    """What tells several of them apart, beside the run; empty: there is one."""


_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

METERS: dict[str, Meter] = {
    "ethnos_ticks_total": Meter("counter", "Committed ticks."),
    "ethnos_agent_steps_total": Meter("counter", "Decisions taken."),
    "ethnos_tick_seconds": Meter("histogram", "From asking the first agent to the commit.", _SECONDS),
    "ethnos_tick_age_seconds": Meter("gauge", "Since the last commit; grows while a tick hangs. 0 while paused."),
    "ethnos_tick": Meter("gauge", "The last committed tick."),
    "ethnos_population": Meter("gauge", "Agents alive."),
    "ethnos_decision_seconds": Meter("histogram", "From question to decision, of each agent.", _SECONDS),
    "ethnos_fallbacks_total": Meter("counter", "Neutral actions: rejected, late, failed.", label="why"),
    "ethnos_hosts_missing": Meter("gauge", "Actors with agents that are not connected."),
    "ethnos_log_rows": Meter("gauge", "Rows in the log that are not sealed yet."),
    "ethnos_snapshot_seconds": Meter("histogram", "To write a snapshot.", _SECONDS),
    "ethnos_memory_bytes": Meter("gauge", "Resident memory of the world-state service."),
    "ethnos_open_files": Meter("gauge", "Files and sockets it has open."),
    "ethnos_disk_free_bytes": Meter("gauge", "Free on the disk with the run."),
    "ethnos_model_waiting": Meter("gauge", "Requests that wait for an engine.", label="model"),
    "ethnos_model_in_flight": Meter("gauge", "Requests at an engine.", label="model"),
    "ethnos_model_prompt_tokens_total": Meter("counter", "Tokens read.", label="model"),
    "ethnos_model_cached_tokens_total": Meter("counter", "Those of them that engines had cached.", label="model"),
    "ethnos_model_completion_tokens_total": Meter("counter", "Tokens written.", label="model"),
    "ethnos_model_retries_total": Meter("counter", "Requests that were sent again.", label="model"),
    "ethnos_engine_up": Meter("gauge", "1 while an engine takes requests.", label="engine"),
}


class Meters(Protocol):
    """Takes measurements. `label` tells apart what its meter says that it tells apart."""

    def add(self, name: str, amount: float = 1.0, label: str = "") -> None: ...
    def set(self, name: str, value: float, label: str = "") -> None: ...
    def observe(self, name: str, value: float) -> None: ...


class Silent:
    """Nobody reads."""

    def add(self, name: str, amount: float = 1.0, label: str = "") -> None: ...
    def set(self, name: str, value: float, label: str = "") -> None: ...
    def observe(self, name: str, value: float) -> None: ...


class Totals:
    """Turns figures that only grow, as they are read now and then, into what was added since."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._last: dict[tuple[str, str], float] = {}

    def reached(self, name: str, total: float, label: str = "") -> None:
        """A total that is lower than before began anew."""
        before = self._last.get((name, label), 0.0)
        self._last[name, label] = total
        if added := total - (before if total >= before else 0.0):
            self._meters.add(name, added, label)


def told_of(meters: Meters, totals: Totals, stats: Mapping[str, Mapping[str, object]]) -> None:
    """Pass on the figures of the pools, as `Models.stats` gives them, by model."""
    for model, pool in stats.items():
        meters.set("ethnos_model_waiting", _number(pool.get("waiting")), model)
        meters.set("ethnos_model_in_flight", _number(pool.get("in_flight")), model)
        totals.reached("ethnos_model_retries_total", _number(pool.get("retries")), model)
        lanes = pool.get("engines")
        lanes = lanes if isinstance(lanes, dict) else {}
        for what in ("prompt_tokens", "cached_tokens", "completion_tokens"):
            total = sum(_number(lane.get(what)) for lane in lanes.values())
            totals.reached(f"ethnos_model_{what}_total", total, model)
        for name, lane in lanes.items():
            meters.set("ethnos_engine_up", float(not lane.get("down")), name)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


__all__ = ["METERS", "Meter", "Meters", "Silent", "Totals", "told_of"]

"""The world-state service looks at itself: after each tick, and every few seconds also while a tick hangs."""

import logging
import os
import time
from dataclasses import dataclass, field

import psutil

from ethnos.meters import Meters, Silent
from ethnos.record.directory import RunDirectory
from ethnos.record.health import HealthLog
from ethnos.world.world import Step

_log = logging.getLogger("ethnos")

EVERY_S = 10.0
STALLED_S = 120.0
"""A tick that takes longer than this, and than the deadline of a decision, is told of in the log."""


@dataclass
class _Since:
    """What has come together since the last row."""

    steps: int = 0
    ticks: int = 0
    seconds: float = 0.0
    tokens: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("rejected", "late", "failed"), 0))


class Vitals:
    """Measures one service."""

    def __init__(self, run: RunDirectory, health: HealthLog, meters: Meters | None = None) -> None:
        self._run = run
        self._health = health
        self._meters = meters or Silent()
        self._me = psutil.Process()
        self._since = _Since()
        self._snapshot_s: float | None = None
        self._committed_at = time.monotonic()
        self._tokens = 0
        self._told_of_stall = False

    def ticked(self, step: Step, seconds: float) -> None:
        """A tick is committed."""
        since, meters = self._since, self._meters
        since.steps += len(step.decisions)
        since.ticks += 1
        since.seconds += seconds
        meters.add("ethnos_ticks_total")
        meters.add("ethnos_agent_steps_total", len(step.decisions))
        meters.observe("ethnos_tick_seconds", seconds)
        for decision in step.decisions:
            meters.observe("ethnos_decision_seconds", decision.answer.latency_ms / 1000)
            if decision.outcome in since.outcomes:
                since.outcomes[decision.outcome] += 1
                meters.add("ethnos_fallbacks_total", 1.0, decision.outcome)
        self._committed_at, self._told_of_stall = time.monotonic(), False

    def saved(self, seconds: float) -> None:
        """A snapshot was written."""
        self._snapshot_s = seconds
        self._meters.observe("ethnos_snapshot_seconds", seconds)

    def look(self, tick: int, phase: str, population: int, hosts_missing: int, log_rows: int, tokens: int) -> None:
        """Write a row and set the gauges."""
        age = 0.0 if phase == "paused" else time.monotonic() - self._committed_at
        left = os.statvfs(self._run.path)
        with self._me.oneshot():
            memory, threads, files = self._me.memory_info().rss, self._me.num_threads(), self._me.num_fds()
        gauges = {
            "ethnos_tick": tick,
            "ethnos_tick_age_seconds": age,
            "ethnos_population": population,
            "ethnos_hosts_missing": hosts_missing,
            "ethnos_log_rows": log_rows,
            "ethnos_memory_bytes": memory,
            "ethnos_open_files": files,
            "ethnos_disk_free_bytes": left.f_bavail * left.f_frsize,
        }
        for name, value in gauges.items():
            self._meters.set(name, float(value))
        since, self._since = self._since, _Since()
        row = {
            "tick": tick,
            "phase": phase,
            "tick_age": age,
            "tick_seconds": since.seconds / since.ticks if since.ticks else None,
            "population": population,
            "agent_steps": since.steps,
            **since.outcomes,
            "tokens": tokens - self._tokens,
            "hosts_missing": hosts_missing,
            "log_rows": log_rows,
            "snapshot_seconds": self._snapshot_s,
            "memory": memory,
            "threads": threads,
            "open_files": files,
            "disk_free": left.f_bavail * left.f_frsize,
        }
        self._tokens = tokens
        self._health.write(row)
        if age > STALLED_S and not self._told_of_stall:
            self._told_of_stall = True
            _log.warning("tick %d has not ended after %.0f s; %d actors are missing", tick + 1, age, hosts_missing)


__all__ = ["EVERY_S", "Vitals"]

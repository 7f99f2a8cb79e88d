"""Whether a long run stays as it began: memory of every process, open files, threads, and ticks per second.

    python bench/long.py [--ticks 10000 | --minutes 60] [--agents 50] [--every 1000]

A society of foragers runs on Ray with the full record. Memory is what is a process's own (USS), in MB. On a machine
with other work, compare seconds of CPU per agent-step: they do not count the time that a process had to wait.
"""

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import psutil

from ethnos import load_society, run
from ethnos.control import Control
from ethnos.record.directory import RunDirectory

NAMES = {"ray::_World": "world", "ray::_Agents": "agents"}


def society(agents: int, ticks: int) -> Any:
    mind = {"name": "forager", "settings": {}}
    return load_society(
        "terra",
        [
            f"ticks={ticks}",
            "agents_per_actor=25",
            f"population={json.dumps([{'cohort': 'foragers', 'count': agents, 'mind': mind}])}",
            f"world.food.spawn_rate={agents / 10}",
        ],
    )


def sizes() -> dict[str, dict[str, float]]:
    """For the driver, the world service and all agents' actors: memory, open files, threads, seconds of CPU so far."""
    found: dict[str, dict[str, float]] = defaultdict(
        lambda: dict.fromkeys(("processes", "mb", "files", "threads", "cpu_s"), 0.0)
    )
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        kind = "driver" if process == me else next((k for n, k in NAMES.items() if process.name().startswith(n)), None)
        if kind is not None:
            found[kind]["processes"] += 1
            found[kind]["mb"] += process.memory_full_info().uss / 2**20
            found[kind]["files"] += process.num_fds()
            found[kind]["threads"] += process.num_threads()
            found[kind]["cpu_s"] += sum(process.cpu_times()[:2])
    return {kind: {k: round(v, 1) for k, v in sizes.items()} for kind, sizes in found.items()}


class Watch:
    """Takes a sample every so many ticks."""

    def __init__(self, every: int, minutes: float) -> None:
        self._every = every
        self._until = time.monotonic() + 60 * minutes
        self._due = every
        self._last = (0, 0, time.monotonic(), 0.0)
        self.rows: list[dict[str, Any]] = []

    def __call__(self, status: Any) -> None:
        if status.tick < self._due:
            return
        self._due = status.tick - status.tick % self._every + self._every
        tick, steps, then, cpu = self._last
        now, found = time.monotonic(), sizes()
        spent = sum(f["cpu_s"] for f in found.values())
        row = {
            "tick": status.tick,
            "population": status.population,
            "ticks_per_s": round((status.tick - tick) / (now - then), 1),
            "steps_per_s": round((status.agent_steps - steps) / (now - then), 1),
            "cpu_us_per_step": round(1e6 * (spent - cpu) / (status.agent_steps - steps), 1),
            **found,
        }
        self._last = status.tick, status.agent_steps, now, spent
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        if now > self._until:
            with Control(RunDirectory.find("long")) as control:
                control.call("Stop", reason="it has been long enough")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=0.0, help="as many ticks as fit into so many, instead")
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ethnos-long-") as folder:
        os.environ["ETHNOS_RUNS_DIR"] = folder
        watch = Watch(asked.every, asked.minutes or 10**6)
        run(society(asked.agents, 10**9 if asked.minutes else asked.ticks), name="long", on_status=watch)
    asked.out.write_text(json.dumps(watch.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What a society costs: agent-steps per second, milliseconds per tick, events and bytes, for growing populations.

    python bench/society.py [--sizes 20 100 1000 10000] [--agent-steps 100000] [--out bench/society.json]

Terra at constant density (20 foragers and one zone of food per 2,500 cells) on Ray over gRPC, everything
recorded. Rates are over the ticks after the first five, so that start-up does not count; start-up has a
column of its own. Figures wander by a factor of two on shared machines: compare rows of one run.
"""

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ethnos import load_society, open_run, run
from ethnos.actors.cluster import ray_session

WARM_UP = 5


def terra(agents: int, ticks: int) -> Any:
    """The core society grown to `agents` beings at the same density, long-lived so that the number holds."""
    side = round((agents / 20 * 2500) ** 0.5)
    food = agents / 20
    return load_society(
        "terra",
        [
            f"ticks={ticks}",
            f"population=[{{cohort: beings, count: {agents}, mind: forager}}]",
            f"world.width={side}",
            f"world.height={side}",
            f"world.food.zones={max(1, round(food))}",
            f"world.food.initial={round(100 * food)}",
            f"world.food.spawn_rate={food}",
        ],
    )


def measure(agents: int, agent_steps: int) -> dict[str, float]:
    ticks = WARM_UP + max(10, min(300, agent_steps // agents))
    started = time.monotonic()
    first: list[float] = []

    def on_status(status: Any) -> None:
        if status.tick >= 0 and not first and status.agent_steps:
            first.append(time.monotonic() - started)

    directory = run(terra(agents, ticks), name=f"bench-{agents}", on_status=on_status)
    con = open_run(directory.path)
    steps, milliseconds, events = con.sql(
        f"SELECT sum(decisions), sum(elapsed), sum(events) FROM ticks WHERE tick > {WARM_UP}"
    ).fetchall()[0]
    counted = con.sql("SELECT sum(decisions) FROM ticks").fetchall()[0][0]
    size = sum(p.stat().st_size for p in directory.path.rglob("*.parquet"))
    return {
        "agents": agents,
        "ticks": ticks,
        "agent_steps_per_s": steps / milliseconds * 1000,
        "ms_per_tick": milliseconds / (ticks - WARM_UP),
        "us_per_agent_step": milliseconds * 1000 / steps,
        "durable_events_per_s": events / milliseconds * 1000,
        "bytes_per_agent_step": size / counted,
        "start_up_s": first[0] if first else float("nan"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 1_000, 10_000])
    parser.add_argument("--agent-steps", type=int, default=100_000, help="about how many per size")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="ethnos-bench-")
    os.environ["ETHNOS_RUNS_DIR"] = folder
    try:
        with ray_session():
            rows = [measure(n, arguments.agent_steps) for n in arguments.sizes]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    table = Table(*(k.replace("_", " ") for k in rows[0]), title="Terra on Ray, everything recorded")
    for row in rows:
        table.add_row(*(f"{v:,.1f}" if isinstance(v, float) else f"{v:,}" for v in row.values()))
    Console().print(table)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    arguments.out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()

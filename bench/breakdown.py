"""Where the time of an agent-step goes: the parts of a tick timed one by one, in one process.

python bench/breakdown.py [--agents 1000] [--ticks 30]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from society import terra  # type: ignore[import-not-found]

from ethnos import run_here
from ethnos.actors import here
from ethnos.actors.host import Host
from ethnos.record.log import Log
from ethnos.world.world import World

spent: dict[str, float] = {}


def timed(cls: Any, name: str, what: str) -> None:
    """Add up the time spent in a method, or in a function of a module."""
    inner: Callable[..., Any] = getattr(cls, name)

    def outer(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return inner(*args, **kwargs)
        finally:
            spent[what] = spent.get(what, 0.0) + time.perf_counter() - start

    setattr(cls, name, outer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=30)
    arguments = parser.parse_args()
    timed(World, "observe", "what all see, and its encoding")
    timed(Host, "think", "decoding it, deciding, encoding the decision")
    timed(here, "received", "taking the decision in")
    timed(World, "step", "checking it, carrying it out, moving the world on")
    timed(Log, "commit", "rows, digest, log, fsync")
    with tempfile.TemporaryDirectory(prefix="ethnos-bench-") as folder:
        os.environ["ETHNOS_RUNS_DIR"] = folder
        directory = run_here(terra(arguments.agents, arguments.ticks), name="breakdown")
        from ethnos import open_run

        steps = open_run(directory.path).sql("SELECT sum(decisions) FROM ticks").fetchall()[0][0]
    for what, seconds in spent.items():
        print(f"{seconds / steps * 1e6:7.1f} us  {what}")
    print(f"{sum(spent.values()) / steps * 1e6:7.1f} us  together, {steps:,} agent-steps")


if __name__ == "__main__":
    main()

"""How much of the prompts an engine has in its cache: layers from shared to private, against the agent first.

    ETHNOS_SGLANG_PYTHON=.venv-sglang/bin/python python bench/cache.py [--agents 20] [--ticks 50]

Terra's core society thinks with a real SGLang that has a tiny random model (`scripts/sglang-cpu` sets it up): what it
answers is nonsense that obeys the schema, but which tokens it has cached it counts itself, as on a GPU. Shares are
over all calls of the run, the first tick included.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ethnos import load_society, open_run
from ethnos.actors.here import Here
from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.thinking import Models
from ethnos.record.log import Log
from ethnos.run import create
from ethnos.world.clock import Clock

TINY = Path(__file__).parents[1] / "tests" / "sglang_cpu" / "tiny_model.py"
ARGS = [
    *("--device", "cpu", "--dtype", "float32", "--attention-backend", "torch_native", "--max-total-tokens", "400000"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "xgrammar"),
]
ENV = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "TORCHDYNAMO_DISABLE": "1", "OMP_NUM_THREADS": "1"}


def society(agents: int, ticks: int, python: str, model: str) -> Any:
    managed = {"model_path": model, "python": python, "args": ARGS, "env": ENV}
    mind = {"kind": "llm", "model": "m", "settings": {"max_tokens": 200, "reask": False}}
    return load_society(
        "terra",
        [
            f"ticks={ticks}",
            "decision_deadline=3600",
            f"models={json.dumps({'m': {'kind': 'sglang', 'managed': managed}})}",
            f"population={json.dumps([{'cohort': 'beings', 'count': agents, 'mind': mind}])}",
        ],
    )


def agent_first(request: Request) -> Request:
    """The same content with what is this agent's before what all share."""
    return replace(request, layers=tuple(reversed(request.layers)))


async def play(what: Any, name: str, *, reverse: bool) -> None:
    with Log(create(what, name)) as log:
        clock = Clock(what, log)
        clock.recover()
        async with Models(what) as models:

            async def ask(model: str, request: Request) -> Reply:
                return await models.ask(model, agent_first(request) if reverse else request)

            await clock.run(Here(clock, what, ask), _on)


async def _on() -> bool:
    return True


def shares(name: str) -> dict[str, Any]:
    with open_run(name) as con:
        overall = con.sql(
            "SELECT count(*) AS turns, avg(prompt_tokens) AS prompt_tokens, "
            "sum(cached_tokens) / sum(prompt_tokens) AS cached_share FROM calls"
        ).fetchall()[0]
        later = con.sql("SELECT sum(cached_tokens) / sum(prompt_tokens) FROM calls WHERE tick > 1").fetchall()[0][0]
    return {**dict(zip(("turns", "prompt_tokens", "cached_share"), overall, strict=True)), "after_tick_1": later}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--ticks", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    python = os.environ["ETHNOS_SGLANG_PYTHON"]
    with tempfile.TemporaryDirectory(prefix="ethnos-cache-") as folder:
        os.environ["ETHNOS_RUNS_DIR"] = folder
        model = str(Path(folder) / "model")
        subprocess.run([python, str(TINY), model], check=True, capture_output=True)
        rows = {}
        for layout in ("shared first", "agent first"):
            what = society(arguments.agents, arguments.ticks, python, model)
            name = layout.replace(" ", "-")
            asyncio.run(play(what, name, reverse=layout == "agent first"))
            rows[layout] = shares(name)
            print(layout, rows[layout], flush=True)
    arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()

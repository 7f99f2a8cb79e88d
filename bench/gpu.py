"""A society that thinks on a GPU, against SGLang's own benchmark on the same prompts.

    ETHNOS_SGLANG_PYTHON=/opt/sglang/bin/python python bench/gpu.py /models/Qwen3-8B [--agents 200] [--ticks 20]

First Terra runs on Ray with an SGLang server that Ethnos starts and that owns the GPUs: decisions/s, tokens/s, the
share of prompt tokens that came from the cache, and how busy the GPUs were. Then the same prompts, in the order of the
record, go to a fresh server through `sglang.bench_serving`, as many at a time as there were agents, with answers of
the society's mean length. That benchmark holds nobody to a schema and waits for no tick: it is what the server can do,
and the ratio says what the society costs. On a machine without GPUs the path can be tried with --num-gpus 0 and
--server-args (see `scripts/sglang-cpu` and bench/cache.py).
"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ethnos import load_society, open_run, run
from ethnos.actors.inference.engines.managed import SglangServer
from ethnos.engines import ManagedSglang

SQL = """
SELECT count(*) AS decisions, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
    sum(cached_tokens) / sum(prompt_tokens) AS cached_share, count(*) FILTER (stage IN ('clean', 'repaired')) AS good,
    (SELECT sum(elapsed) / 1000 FROM ticks WHERE tick > 0) AS seconds
FROM calls
"""
PROMPTS = """
WITH sent AS (SELECT tick, agent_id, how -> '$.layers[*][2]' AS hashes FROM decisions WHERE how <> ''),
    pieces AS (SELECT tick, agent_id, unnest(hashes) ->> '$' AS hash, generate_subscripts(hashes, 1) AS place FROM sent)
SELECT tick, agent_id, string_agg(text, chr(10) || chr(10) ORDER BY place) AS prompt
FROM pieces JOIN (SELECT DISTINCT hash, text FROM layers) USING (hash) GROUP BY ALL ORDER BY tick, agent_id
"""


def managed(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "model_path": asked.model,
        "python": os.environ["ETHNOS_SGLANG_PYTHON"],
        "tp": asked.tp,
        "dp": asked.dp,
        "num_gpus": asked.num_gpus,
        "args": shlex.split(asked.server_args),
    }


def society(asked: argparse.Namespace) -> Any:
    mind = {"kind": "llm", "model": "m", "settings": {"max_tokens": asked.max_tokens}}
    models = {"m": {"kind": "sglang", "managed": managed(asked)}}
    return load_society(
        "terra",
        [
            f"ticks={asked.ticks}",
            "decision_deadline=600",
            f"models={json.dumps(models)}",
            f"population={json.dumps([{'cohort': 'beings', 'count': asked.agents, 'mind': mind}])}",
        ],
    )


class Busy:
    """Asks nvidia-smi once a second how busy the GPUs are; nothing where there is none."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Busy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def mean(self) -> float | None:
        return sum(self.samples) / len(self.samples) if self.samples else None

    def _watch(self) -> None:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while shutil.which(command[0]) and not self._over.wait(1.0):
            told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
            self.samples += [float(n) for n in told if n.isdecimal()]


def figures(name: str) -> dict[str, Any]:
    with open_run(name) as con:
        found = _row(con, SQL)
    seconds = found["seconds"]
    return {
        **found,
        "decisions_per_s": found["decisions"] / seconds,
        "prompt_tokens_per_s": found["prompt_tokens"] / seconds,
        "completion_tokens_per_s": found["completion_tokens"] / seconds,
    }


def _row(con: Any, sql: str) -> dict[str, Any]:
    cursor = con.execute(sql)
    return dict(zip([d[0] for d in cursor.description], cursor.fetchone(), strict=True))


def write_prompts(name: str, path: Path) -> int:
    """The prompts of a run in the form that the benchmark reads; returns how many."""
    with open_run(name) as con, path.open("w") as file:
        rows = con.execute(PROMPTS).fetchall()
        for *_, prompt in rows:
            turns = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "."}]
            file.write(json.dumps({"conversations": turns}) + "\n")
    return len(rows)


async def theirs(asked: argparse.Namespace, prompts: Path, number: int, length: int) -> dict[str, Any]:
    """What SGLang's own benchmark says of a fresh server."""
    server = SglangServer(ManagedSglang(**managed(asked)))
    await server.start()
    out = prompts.with_name("theirs.jsonl")
    command = [
        *(os.environ["ETHNOS_SGLANG_PYTHON"], "-m", "sglang.bench_serving", "--backend", "sglang"),
        *("--base-url", server.url, "--model", asked.model, "--dataset-name", "custom"),
        *("--dataset-path", str(prompts), "--num-prompts", str(number), "--sharegpt-output-len", str(max(4, length))),
        *("--max-concurrency", str(asked.agents), "--apply-chat-template", "--cache-report", "--disable-tqdm"),
        *("--output-file", str(out), "--warmup-requests", "1"),
    ]
    try:
        process = await asyncio.create_subprocess_exec(*command)
        if await process.wait():
            raise SystemExit("SGLang's benchmark failed")
    finally:
        await server.stop()
    told: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    wanted = ("completed", "duration", "request_throughput", "input_throughput", "output_throughput")
    return {k: told[k] for k in wanted if k in told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--dp", type=int, default=1)
    parser.add_argument("--num-gpus", type=float, default=None)
    parser.add_argument("--server-args", default="")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ethnos-gpu-") as folder:
        os.environ["ETHNOS_RUNS_DIR"] = folder
        began = time.monotonic()
        with Busy() as busy:
            run(society(asked), name="ours")
        ours = {**figures("ours"), "gpu_busy_percent": busy.mean, "wall_s": time.monotonic() - began}
        print(json.dumps({"society": ours}, default=float), flush=True)
        number = write_prompts("ours", Path(folder) / "prompts.jsonl")
        length = round(ours["completion_tokens"] / max(1, ours["decisions"]))
        with Busy() as busy:
            benchmark = asyncio.run(theirs(asked, Path(folder) / "prompts.jsonl", number, length))
        benchmark["gpu_busy_percent"] = busy.mean
    ratio = ours["decisions_per_s"] / benchmark["request_throughput"]
    report = {"society": ours, "benchmark": benchmark, "ratio": ratio, "asked": {**vars(asked), "out": str(asked.out)}}
    asked.out.write_text(json.dumps(report, indent=1, default=float) + "\n")
    print(json.dumps({"benchmark": benchmark, "ratio": ratio}, default=float))


if __name__ == "__main__":
    main()

"""Time and memory of all measures and the network on a record of many events: bench/study.py [EVENTS]."""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ethnos import load_society
from ethnos.analytics import network
from ethnos.analytics.measures import REGISTRY, measure
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.schema import DECISIONS, EVENTS, LAYERS, TICKS
from ethnos.run import create

AGENTS = 1000
TICK = {"moved": 500, "said": 300, "heard": 900, "energy_given": 150, "energy_taken": 50, "ate": 100}
"""Events of each kind in a tick."""
SIDE = 200


def synthetic(folder: Path, events: int) -> RunDirectory:
    """A record of Terra's kinds of event in which chance alone decides who does what."""
    run = create(load_society("terra"), "synthetic", folder)
    rng, ticks, seq = np.random.default_rng(0), events // sum(TICK.values()), 0
    parts, rows = [], []
    for tick in range(ticks + 1):
        part = founders() if tick == 0 else happened(rng, tick, seq)
        rows.append({"tick": tick, "first_seq": seq, "events": part.num_rows, "population": AGENTS, "decisions": 0,
                     "rejected": 0, "late": 0, "failed": 0, "stocks": "{}", "digest": "", "elapsed": 1.0})  # fmt: skip
        parts.append(part)
        seq += part.num_rows
    name = f"{0:010d}-{ticks:010d}.parquet"
    tables = {"events": pa.concat_tables(parts), "ticks": pa.Table.from_pylist(rows, TICKS),
              "decisions": DECISIONS.empty_table(), "layers": LAYERS.empty_table()}  # fmt: skip
    for table, filled in tables.items():
        (run.path / table).mkdir(exist_ok=True)
        pq.write_table(filled, run.path / table / name, compression="zstd")
    return run


def founders() -> pa.Table:
    """The size of the world, and a thousand agents with a place and energy."""
    data = json.dumps({"cohort": "beings", "generation": 0, "persona": {}})
    made = {"kind": "world_made", "data": json.dumps({"width": SIDE, "height": SIDE, "zones": []})}
    born = [{"kind": "born", "agent_id": a, "text": f"a{a}", "data": data} for a in range(AGENTS)]
    settled = [
        {"kind": "settled", "agent_id": a, "x": a % SIDE, "y": a // SIDE, "amount": 1e6, "data": "{}"}
        for a in range(AGENTS)
    ]
    rows = [{"tick": 0, "seq": i, **row} for i, row in enumerate([made, *born, *settled])]
    return pa.Table.from_pylist(rows, EVENTS)


def happened(rng: np.random.Generator, tick: int, seq: int) -> pa.Table:
    """One tick; words come from Zipf's law, and a message is heard by three."""
    kinds = np.repeat(list(TICK), list(TICK.values()))
    n, said = len(kinds), TICK["said"]
    agent, target = rng.integers(0, AGENTS, n), rng.integers(0, AGENTS, n)
    first = TICK["moved"]
    of = np.arange(TICK["heard"]) % said
    target[first + said : first + said + len(of)] = agent[first + of]
    words = rng.zipf(1.5, (said, 4)) % 50_000
    text = np.full(n, None, object)
    text[first : first + said] = [" ".join(f"w{w}" for w in row) for row in words]
    data = np.full(n, "{}", object)
    data[first + said : first + said + len(of)] = [f'{{"said":{seq + first + i}}}' for i in of]
    moved = kinds == "moved"
    columns = {
        "tick": np.full(n, tick), "seq": seq + np.arange(n), "kind": kinds, "actor_id": agent, "agent_id": agent,
        "target_id": target, "artifact_id": pa.nulls(n, pa.int64()),
        "x": pa.array(rng.integers(0, SIDE, n).astype(float), mask=~moved),
        "y": pa.array(rng.integers(0, SIDE, n).astype(float), mask=~moved),
        "amount": rng.integers(1, 10, n).astype(float), "text": text, "data": data,
    }  # fmt: skip
    return pa.Table.from_arrays([pa.array(v, type=f.type) if not isinstance(v, pa.Array) else v
                                 for v, f in zip(columns.values(), EVENTS, strict=True)], schema=EVENTS)  # fmt: skip


def peak() -> int:
    """The most memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = synthetic(Path(folder), events)
        print(f"made; {peak()} MB")
        with connect(run) as con:
            began = time.monotonic()
            for name in REGISTRY:
                start = time.monotonic()
                measure(con, name)
                print(f"{name:18} {time.monotonic() - start:7.2f} s  {peak():6} MB", flush=True)
            start = time.monotonic()
            edges = network.edges(con)
            print(f"{'edges':18} {time.monotonic() - start:7.2f} s  {peak():6} MB  {edges.num_rows} rows", flush=True)
            print(f"all {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)

"""Kills processes of running societies at random moments, and looks at what is left of their records.

    python -m tests.repeat.chaos [--minutes 10] [--seed 0]

Societies run and are resumed by the command line, on a real Ray; the moments and victims follow from the seed, what
they meet there does not. A round with minds in code has to end with the digest of a run that nobody disturbed; one
with minds that never decide the same twice has to be repeated by its own record.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import psutil
import pyarrow as pa

from ethnos.actors.here import run_here
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import create
from ethnos.society import parse
from tests.cluster.jitter import MISREMEMBERED
from tests.cluster.raylets import Raylets

SOCIETY = """
scenario: {scenario}
seed: 7
ticks: 250
snapshot_every: 40
agents_per_actor: 2
population:
  - {{cohort: beings, count: 10, mind: {mind}}}
"""
SCRIPTED = SOCIETY.format(scenario="tests.cluster.jitter:JitterTerra", mind="jitter")
FICKLE = SOCIETY.format(
    scenario="tests.repeat.minds:CountingTerra", mind="{kind: scripted, name: fickle, costly: true}"
)
Call = tuple[int, int]
"""Agent and tick."""
VICTIMS = {"world": "ray::_World", "agents": "ray::_Agents"}
PAUSE_S = (0.3, 2.5)
"""Between two kills."""
UNLOCKED_S = 60.0
"""How long the orphans of a killed driver may hold on to its run."""


@dataclass
class Tally:
    """What was done to societies, and what it did to them."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    resumes: int = 0
    ticks: int = 0
    lost_ticks: int = 0
    """Ticks that were on disk before a kill and not after it."""
    duplicate_rows: int = 0
    """Events with a `seq`, or decisions of an agent in a tick, that the sealed record has more than once."""
    answers_kept: int = 0
    """Answers to ticks under way that were on disk when something was killed."""
    paid_twice: int = 0
    """Calls of a mind whose answer was on disk already."""
    wrong: list[str] = field(default_factory=list)
    """Runs whose digest, replay or verification is not what it has to be."""

    @property
    def ok(self) -> bool:
        return not (self.lost_ticks or self.duplicate_rows or self.paid_twice or self.wrong)

    def __str__(self) -> str:
        wrong = "".join(f"\n  {w}" for w in self.wrong)
        kills = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kills.items()))
        return (
            f"rounds {self.rounds}, ticks {self.ticks}\n"
            f"kills {self.kills.total()}: {kills}\nresumes {self.resumes}\n"
            f"lost ticks {self.lost_ticks}\nduplicate rows {self.duplicate_rows}\n"
            f"answers on disk when killed {self.answers_kept}, paid twice {self.paid_twice}\n"
            f"wrong records {len(self.wrong)}{wrong}"
        )


class Round:
    """One society, from its start to its end in spite of everything."""

    def __init__(self, folder: Path, text: str, tally: Tally, cluster: Raylets | None = None) -> None:
        self._tally = tally
        self._cluster = cluster
        self._calls = folder / "calls"
        """Where the minds say which calls they get, if they do."""
        self._paid: list[tuple[int, set[Call]]] = []
        """For each kill, how many calls had been made by then and which were answered, on disk."""
        self._file = folder / "society.yaml"
        self._file.write_text(text)
        self.run = RunDirectory(folder / "runs" / "chaos")
        environment = cluster.env if cluster else {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
        self._env = {**environment, "ETHNOS_RUNS_DIR": str(folder / "runs")}
        self._driver = self._start("run", str(self._file), "--name", "chaos")

    def play(self, victims: Sequence[str], pauses: Iterable[float]) -> None:
        """Kill one after the other, with pauses between, as long as it runs; then let it come to its end."""
        reached = -1
        for victim, pause in zip(victims, pauses, strict=True):
            self._until_tick(reached + 1)  # a service that dies again and again at one tick is rightly given up
            time.sleep(pause)
            if self._driver.poll() is not None:
                break
            reached = self._kill(victim)
        said = self._driver.communicate()[0]
        if self._driver.returncode:
            self._tally.wrong.append(f"exit {self._driver.returncode}: {said[-500:]}")
        else:
            self._look()

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", "from ethnos.cli import main; main()", *words]
        return subprocess.Popen(
            command,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _kill(self, victim: str) -> int:
        """Returns the tick in which it happened."""
        before = self._tick()
        self._note_paid(before)
        if victim == "driver":
            self._driver.send_signal(signal.SIGKILL)
            self._driver.communicate()
        elif victim == "node":
            assert self._cluster is not None
            self._cluster.kill("second")
            self._cluster.add("second")
        else:
            processes = [p for p in _ours(self._driver.pid, self._cluster) if p.name().startswith(VICTIMS[victim])]
            if not processes:
                return before
            processes[before % len(processes)].kill()
        self._tally.kills[victim] += 1
        self._tally.lost_ticks += max(0, before - self._tick())
        if victim == "driver":
            self._resume()
        return before

    def _resume(self) -> None:
        until = time.monotonic() + UNLOCKED_S
        while self.run.is_locked() and time.monotonic() < until:
            time.sleep(0.1)
        if self.run.manifest().state != "finished":
            self._tally.resumes += 1
            self._driver = self._start("resume", "chaos")

    def _note_paid(self, committed: int) -> None:
        kept = _kept(self.run)
        made = self._made()
        self._tally.answers_kept += len(kept)
        self._paid.append((len(made), {c for c in made if c in kept or c[1] <= committed}))

    def _made(self) -> list[Call]:
        """The calls the minds got so far, in order."""
        if not self._calls.exists():
            return []
        lines = self._calls.read_text().split("\n")[:-1]
        return [(int(agent), int(tick)) for agent, tick in map(str.split, lines)]

    def _until_tick(self, tick: int) -> None:
        while self._tick() < tick and self._driver.poll() is None:
            time.sleep(0.1)

    def _tick(self) -> int:
        """The last committed tick, read as anybody would."""
        if not self.run.manifest_path.exists() or not (self.run.segments() or self.run.parts("ticks")):
            return -1
        with connect(self.run) as con:
            return int(con.sql("SELECT coalesce(max(tick), -1) FROM ticks").fetchall()[0][0])

    def _look(self) -> None:
        self._tally.ticks += self._tick()
        self._tally.duplicate_rows += _doubles(self.run)
        made = self._made()
        self._tally.paid_twice += len({i for n, paid in self._paid for i in range(n, len(made)) if made[i] in paid})
        if not verify(self.run).ok:
            self._tally.wrong.append("verify finds fault")


def _ours(driver: int, cluster: Raylets | None) -> list[psutil.Process]:
    if cluster is not None:
        return cluster.processes()
    return psutil.Process(driver).children(recursive=True)


def _kept(run: RunDirectory) -> set[Call]:
    """Whose answers to the tick under way are on disk, as far as whole groups of them are."""
    kept: set[Call] = set()
    with (
        suppress(pa.ArrowException, OSError),
        pa.OSFile(str(run.wal / "pending")) as file,
        pa.ipc.open_stream(file) as groups,
    ):
        tick = int(groups.schema.metadata[b"tick"])
        for group in groups:
            kept.update((agent, tick) for agent in group["agent_id"].to_pylist())
    return kept


def _doubles(run: RunDirectory) -> int:
    """From the Parquet files themselves: the views would hide what is there twice."""
    events, decisions = ([str(path) for path in run.parts(table)] for table in ("events", "decisions"))
    with duckdb.connect() as con:
        seqs = con.read_parquet(events).aggregate("count(*) - count(DISTINCT seq)").fetchall()
        turns = con.read_parquet(decisions).aggregate("count(*) - count(DISTINCT (agent_id, tick))").fetchall()
    return int(seqs[0][0] + turns[0][0])


def reference(text: str, folder: Path) -> str:
    """The digest of the society when nobody disturbs it."""
    run = create(parse(text), "reference", folder)
    run_here(run)
    return run.manifest().digest


def scripted(folder: Path, victims: Sequence[str], seed: int, tally: Tally, cluster: Raylets | None = None) -> None:
    """A round with minds in code."""
    expected = reference(SCRIPTED, folder)
    played = Round(folder, SCRIPTED, tally, cluster)
    played.play(victims, _pauses(seed, len(victims)))
    if played.run.manifest().digest != expected:
        tally.wrong.append("another digest than undisturbed")
    with connect(played.run) as con:
        if con.sql(MISREMEMBERED).fetchall():
            tally.wrong.append("a mind does not remember each of its turns once")
    tally.rounds += 1


def fickle(folder: Path, victims: Sequence[str], seed: int, tally: Tally) -> None:
    """A round with minds that only their record repeats."""
    counted = FICKLE.replace("costly: true", f"costly: true, settings: {{calls: {folder / 'calls'}}}")
    played = Round(folder, counted, tally)
    played.play(victims, _pauses(seed, len(victims)))
    if not (repeated := replay(played.run)).ok:
        tally.wrong.append(f"its replay differs: {repeated.difference}")
    tally.rounds += 1


def _pauses(seed: int, number: int) -> list[float]:
    return list(np.random.Generator(np.random.Philox(seed)).uniform(*PAUSE_S, number))


def _victims(seed: int, kinds: Sequence[str], number: int = 8) -> list[str]:
    chosen = np.random.Generator(np.random.Philox(seed + 1)).integers(0, len(kinds), number)
    return [kinds[i] for i in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    tally, until, seed = Tally(), time.monotonic() + 60 * asked.minutes, asked.seed
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if seed % 3 == 2:
                with Raylets() as cluster:
                    cluster.add("second")
                    scripted(folder, _victims(seed, ["world", "agents", "node"], 4), seed, tally, cluster)
            elif seed % 3 == 1:
                fickle(folder, _victims(seed, ["driver", "world", "agents"]), seed, tally)
            else:
                scripted(folder, _victims(seed, ["driver", "world", "agents"]), seed, tally)
        seed += 1
        print(f"--- after seed {seed - 1}\n{tally}", flush=True)
    return 0 if tally.ok else 1


if __name__ == "__main__":
    sys.exit(main())

"""`ethnos run`: a society from its file to its record, with progress on standard error."""

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Protocol

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ethnos import society as societies
from ethnos.analytics.summary import Summary, summarise
from ethnos.cli.listing import print_summary
from ethnos.cli.output import console, number, print_json, print_line, safe
from ethnos.errors import RunExists
from ethnos.record.directory import RunDirectory, next_name
from ethnos.run import resume as resume_run
from ethnos.run import run as run_society
from ethnos.society import Society
from ethnos.wire.v1.control_pb2 import Status
from ethnos.world.rebuild import society_of

LINE_EVERY_S = 5.0
"""How often progress is told where there is no terminal."""

_PHASES = {
    Status.PHASE_STARTING: "starting",
    Status.PHASE_PAUSED: "paused",
    Status.PHASE_FAILED: "failed",
}


def run(source: str, name: str | None, changes: Sequence[str], *, quiet: bool, as_json: bool) -> int:
    """Run a society and sum it up; returns the exit code."""
    society = societies.load(source, changes)
    stop = _Stop()
    with stop.on_signals(), _teller(society, quiet=quiet) as teller:
        directory = _run(society, name, Path(source).stem, teller, stop)
    _sum_up(directory, quiet=quiet, as_json=as_json)
    return stop.exit_code


def bring_to_its_end(directory: RunDirectory, *, quiet: bool, as_json: bool) -> int:
    """Go on with a run from wherever it ends, and sum it up; returns the exit code."""
    stop = _Stop()
    with stop.on_signals(), _teller(society_of(directory), quiet=quiet) as teller:
        resume_run(directory, on_status=teller.tell, stop=stop.event)
    _sum_up(directory, quiet=quiet, as_json=as_json)
    return stop.exit_code


def _sum_up(directory: RunDirectory, *, quiet: bool, as_json: bool) -> None:
    summary = summarise(directory)
    if as_json:
        print_json(asdict(summary))
    elif not quiet:
        print_summary(summary)
        _suggest(summary)


def _run(society: Society, name: str | None, stem: str, teller: "Teller", stop: "_Stop") -> RunDirectory:
    """Under its name, or under the next free one of the society's."""
    while True:
        chosen = next_name(stem) if name is None else name
        try:
            return run_society(society, name=chosen, on_status=teller.tell, stop=stop.event)
        except RunExists:
            if name is not None or chosen == next_name(stem):
                raise


def _suggest(summary: Summary) -> None:
    print_line()
    print_line("Try next:")
    print_line(f"  ethnos verify {summary.name}")
    print_line(f"  ethnos schema {summary.name}")
    print_line(f'  ethnos sql {summary.name} "from agents order by died - born desc limit 5"')


class _Stop:
    """The first signal asks the run to stop after its tick, the second ends this process."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.exit_code = 0

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {s: signal.signal(s, self._asked) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number_, handler in before.items():
                signal.signal(number_, handler)

    def _asked(self, number_: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            raise KeyboardInterrupt
        self.event.set()
        self.exit_code = 128 + number_
        # not through rich: the signal may have come while it holds its lock
        sys.stderr.write("\nStopping after this tick; once more to end at once.\n")


class Teller(Protocol):
    """Tells how a run is doing."""

    def tell(self, status: Status) -> None: ...


@contextmanager
def _teller(society: Society, *, quiet: bool) -> Iterator[Teller]:
    if quiet:
        yield _Silent()
    elif sys.stderr.isatty():
        with _Bar(society.ticks) as bar:
            yield bar
    else:
        yield _Lines()


class _Silent:
    def tell(self, status: Status) -> None:
        pass


class _Lines:
    """A line every few seconds, for logs of batch systems."""

    def __init__(self) -> None:
        self._pace = _Pace()
        self._next = 0.0

    def tell(self, status: Status) -> None:
        self._pace.told(status)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_EVERY_S
        told = _PHASES.get(status.phase) or f"{self._pace.told(status)}, {self._pace.left(status)} left"
        told = status.reason or told if status.phase == Status.PHASE_STARTING else told
        with suppress(OSError):  # whoever reads along may leave; the run goes on
            sys.stderr.write(f"{safe(f'tick {max(status.tick, 0)}/{status.ticks}, {told}')}\n")
            sys.stderr.flush()


class _Pace:
    """How fast a run is since its first tick."""

    def __init__(self) -> None:
        self._start: tuple[float, int, int, int] | None = None

    def told(self, status: Status) -> str:
        """How many there are, and how fast they decide; with a model also how fast it reads and writes."""
        seconds, steps, _, tokens = self._since(status)
        per_s = steps / seconds if seconds > 0 else 0.0
        if not status.tokens:
            return f"population {status.population}, {number(per_s)} agent-steps/s"
        rate = number(tokens / seconds if seconds > 0 else 0.0)
        return f"population {status.population}, {per_s:.2f} decisions/s, {rate} tokens/s"

    def left(self, status: Status) -> str:
        seconds, _, ticks, _ = self._since(status)
        if not ticks:
            return "?"
        rest = int(seconds / ticks * (status.ticks - status.tick))
        return f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"

    def _since(self, status: Status) -> tuple[float, int, int, int]:
        now = (time.monotonic(), status.agent_steps, status.tick, status.tokens)
        if self._start is None or status.phase == Status.PHASE_STARTING:
            self._start = now
        start = self._start
        return now[0] - start[0], now[1] - start[1], now[2] - start[2], now[3] - start[3]


class _Fact(ProgressColumn):
    """A fact that the teller keeps with the task."""

    max_refresh = 0.1

    def render(self, task: Task) -> Text:
        return Text(str(task.fields.get("fact", "")))


class _Bar:
    """A bar for a terminal."""

    def __init__(self, ticks: int) -> None:
        self._pace = _Pace()
        self._progress = Progress(
            TextColumn("tick {task.completed:.0f}/{task.total:.0f}", markup=False),
            BarColumn(bar_width=30),
            _Fact(),
            TimeRemainingColumn(),
            console=console(error=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=ticks, fact="starting")

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def tell(self, status: Status) -> None:
        told = self._pace.told(status)
        fact = _PHASES.get(status.phase) or told
        if status.phase == Status.PHASE_STARTING and status.reason:
            fact = status.reason
        self._progress.update(self._task, completed=max(status.tick, 0), fact=fact)

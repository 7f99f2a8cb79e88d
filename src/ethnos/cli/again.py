"""`ethnos resume`, `replay` and `fork`: what follows from a run being a value."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ethnos.cli import running
from ethnos.cli.output import console, print_facts, print_json, print_line
from ethnos.errors import SocietyError
from ethnos.fork import fork as branch_off
from ethnos.record.directory import RunDirectory
from ethnos.replay import Replayed, look
from ethnos.replay import replay as execute_again
from ethnos.run import check_resumable
from ethnos.world.interventions import Intervention, parse_change

MAX_FILE_BYTES = 1_000_000


def resume(name: str, *, quiet: bool, as_json: bool) -> int:
    """Bring a run to its end; returns the exit code."""
    run = RunDirectory.find(name)
    check_resumable(run)
    return running.bring_to_its_end(run, quiet=quiet, as_json=as_json)


def fork(
    name: str,
    at: int,
    changes: Sequence[str],
    intervene: Path | None,
    new: str | None,
    *,
    start: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Make a branch and run it; returns the exit code."""
    changed = read_interventions(intervene) if intervene else []
    branch = branch_off(RunDirectory.find(name), at, changes=changes, interventions=changed, name=new)
    if start:
        return running.bring_to_its_end(branch, quiet=quiet, as_json=as_json)
    if as_json:
        print_json({"name": branch.name, "path": str(branch.path)})
    elif not quiet:
        print_line(f"Made {branch.path}. Try next: ethnos resume {branch.name}")
    return 0


def read_interventions(path: Path) -> list[Intervention]:
    """The interventions in a YAML file: a list, or one. Raises SocietyError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SocietyError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise SocietyError(f"cannot read {path}: {error}") from None
    items = data if isinstance(data, list) else [data]
    if not all(isinstance(item, dict) for item in items):
        raise SocietyError(f"{path}: write a list of interventions, such as `- {{do: tell, text: hello}}`")
    return [parse_change(item) for item in items]


def replay(name: str, to: int | None, *, quiet: bool, as_json: bool) -> int:
    """Execute a run again; returns the exit code."""
    run = RunDirectory.find(name)
    with _progress(run, to, quiet=quiet or as_json) as (progress, task):
        done = execute_again(run, to, lambda tick: progress.update(task, completed=tick))
    if to is not None and done.ok:
        print_json(look(done.world))
    elif as_json:
        print_json(_as_dict(run, done))
    elif not quiet or not done.ok:
        _print(run, done)
    return 0 if done.ok else 1


class _progress:
    """A bar on standard error, where that is a terminal."""

    def __init__(self, run: RunDirectory, to: int | None, *, quiet: bool) -> None:
        self._ticks = run.manifest().ticks if to is None else to
        self._bar = Progress(
            TextColumn("tick {task.completed:.0f}/{task.total:.0f}", markup=False),
            BarColumn(bar_width=30),
            TimeRemainingColumn(),
            console=console(error=True),
            transient=True,
            disable=quiet or not console(error=True).is_terminal,
        )

    def __enter__(self) -> tuple[Progress, Any]:
        self._bar.start()
        return self._bar, self._bar.add_task("", total=self._ticks)

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()


def _as_dict(run: RunDirectory, done: Replayed) -> dict[str, Any]:
    found = done.difference
    return {
        "run": run.name,
        "ok": done.ok,
        "tick": done.tick,
        "digest": done.digest,
        "difference": found
        and {"tick": found.tick, "seq": found.seq, "expected": found.expected, "found": found.found},
        "misled": done.misled,
    }


def _print(run: RunDirectory, done: Replayed) -> None:
    facts: list[tuple[str, object]] = [("run", run.name), ("repeats up to tick", done.tick), ("digest", done.digest)]
    if done.difference:
        facts += [("differs in", f"tick {done.difference.tick}, event {done.difference.seq}")]
        facts += [("expected", done.difference.expected), ("found", done.difference.found)]
    if done.misled is not None:
        facts += [("differs in", f"tick {done.tick + 1}: agent {done.misled} would be shown something else")]
    print_facts(facts)

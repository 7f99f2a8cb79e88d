"""Runs that go on without whoever started them: each a process of its own, with a log beside the runs."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ethnos.errors import RunError, RunExists
from ethnos.record.directory import RunDirectory, runs_folder
from ethnos.run import check_resumable
from ethnos.society import Society, parse

ETHNOS = "from ethnos.cli import main; main()"


def start(society: Society, name: str) -> Path:
    """Start a society under a name that is free; returns the log of its process. Raises RunExists, RunError."""
    if (runs_folder() / name).exists():
        raise RunExists(f"there is a run named {name!r} in {runs_folder()}; choose another name")
    log = log_of(name)
    file = log.with_suffix(".yaml")
    file.write_text(society.to_yaml(), "utf-8")
    _launch(["run", str(file), "--name", name], log)
    return log


def start_text(text: str, name: str, changes: Sequence[str] = ()) -> Path:
    """Start a society from the text of its file. Raises SocietyError with all that is wrong with it."""
    return start(parse(text, name, changes), name)


def resume(run: RunDirectory) -> Path:
    """Bring a run, or a new branch, to its end. Raises RunError if it cannot go on."""
    check_resumable(run)
    log = log_of(run.name)
    _launch(["resume", str(run.path)], log)
    return log


def log_of(name: str) -> Path:
    """Where the process of a run writes what it has to say."""
    folder = runs_folder() / ".started"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write to {folder}: {error.strerror}") from None
    if Path(name).name != name or name.startswith("."):
        raise RunError(f"{name!r} cannot name a run")
    return folder / f"{name}.log"


def _launch(arguments: list[str], log: Path) -> None:
    """A process in a session of its own: it outlives this one, and reads from nobody."""
    with log.open("wb") as out:
        subprocess.Popen(
            [sys.executable, "-P", "-c", ETHNOS, *arguments, "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={k: v for k, v in os.environ.items() if not k.startswith(("STREAMLIT_", "ETHNOS_DASHBOARD_"))},
            start_new_session=True,
        )


__all__ = ["log_of", "resume", "start", "start_text"]

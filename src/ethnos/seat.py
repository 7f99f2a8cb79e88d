"""An agent's place taken by a person who looks in now and then, such as from a page: `ethnos play` as a process beside.

A process of its own, so that whatever becomes of the page or of whoever shows it, the agent is given back: the end of
its standard input is the person's leaving.
"""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

from ethnos.background import ETHNOS
from ethnos.control import contact_of
from ethnos.record.directory import RunDirectory

KEPT = 400
"""Lines that a seat keeps."""
AWAY_S = 60.0
"""A seat that nobody looked at for so long is left: its player has closed the page."""


class Seat:
    """One agent, played."""

    def __init__(self, run: RunDirectory, who: str) -> None:
        """`who` is a name or an id; if it cannot be had, the seat says why and is over. Raises ClusterError."""
        contact_of(run)
        self.who = who
        self._lines: list[str] = []
        self._seen = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", ETHNOS, "play", str(run.path), "--", who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={k: v for k, v in os.environ.items() if not k.startswith(("STREAMLIT_", "ETHNOS_DASHBOARD_"))},
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        for work in (self._read, self._watch):
            threading.Thread(target=work, daemon=True).start()

    @property
    def over(self) -> bool:
        """Whether nobody plays any more."""
        return self._process.poll() is not None

    def look(self) -> list[str]:
        """The last lines that the person was shown, the oldest first. What agents wrote in them is untrusted."""
        self._seen = time.monotonic()
        return self._lines

    def type(self, line: str) -> None:
        """What the person types: one line, see `ethnos.actors.minds.human`."""
        line = " ".join(line.split("\n"))
        self._lines = [*self._lines, f"> {line}"]
        with suppress(OSError, ValueError):  # it is over, and has said so
            assert self._process.stdin is not None
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def leave(self, patience_s: float = 10.0) -> None:
        """Give the agent back to its own mind."""
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines = [*self._lines, line.rstrip("\n")][-KEPT:]

    def _watch(self) -> None:
        while not self.over:
            if time.monotonic() - self._seen > AWAY_S:
                self.leave()
            time.sleep(min(1.0, AWAY_S / 10))


__all__ = ["AWAY_S", "Seat"]

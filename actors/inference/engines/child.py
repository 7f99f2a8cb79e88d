"""Servers that Ethnos starts: child processes that do not outlive it, even if it is killed."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ethnos.actors.inference.engines import guard
from ethnos.errors import EthnosError

GRACE = 15.0
"""Seconds that a server gets to end by itself."""


class Child:
    """A process group under a guard that ends it when we end."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path | None = None) -> None:
        self._command = list(command)
        self._env = {**os.environ, **env}
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def returncode(self) -> int | None:
        return None if self._process is None else self._process.returncode

    async def start(self) -> None:
        """Raises EthnosError if the program is not there."""
        output = await asyncio.to_thread(self._open_log)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, guard.__file__, *self._command, env=self._env,
                stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EthnosError(f"cannot start {self._command[0]}: {error}") from None
        finally:
            if output >= 0:
                os.close(output)

    async def stop(self) -> None:
        """End it and everything it started."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(GRACE + 5):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _open_log(self) -> int:
        if self._log is None:
            return asyncio.subprocess.DEVNULL
        self._log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens at just now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port

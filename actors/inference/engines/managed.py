"""An SGLang server that Ethnos starts, in an environment of its own, and looks after.

A plain class: on a cluster a Ray actor that owns the GPUs holds one of these, and the pool talks to its URL.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import yaml

from ethnos.actors.inference.engines.base import Unreachable
from ethnos.actors.inference.engines.child import Child, free_port
from ethnos.actors.inference.engines.http import Http
from ethnos.engines import ManagedSglang, SglangSpec
from ethnos.errors import EthnosError

POLL = 1.0


class Server(Protocol):
    """Whoever starts a server and looks after it: in this process, or from a Ray actor that owns the GPUs."""

    @property
    def url(self) -> str:
        """Where it is, once it has started."""
        ...

    @property
    def alive(self) -> bool:
        """False if it is known to have ended."""
        ...

    async def start(self) -> None:
        """Returns when it serves. Does nothing if it runs already. Raises Unreachable if it ends or takes too long."""
        ...

    async def restart(self) -> None:
        """Start it again, unless it serves after all."""
        ...

    async def stop(self) -> None: ...


Serve = Callable[[SglangSpec], Server]
"""Makes what looks after the server of an engine that Ethnos has to start."""


def serve_here(spec: SglangSpec) -> Server:
    """The server as a child of this process."""
    assert spec.managed is not None
    return SglangServer(spec.managed, spec.api_key_env, log_of(spec.name))


def log_of(engine: str) -> Path:
    """Where a server's own output goes: a file that only we can read, in the machine's folder for such."""
    return Path(tempfile.gettempdir()) / f"ethnos-engine-{os.getuid()}" / f"{engine}-{os.getpid()}.log"


class SglangServer:
    """Starts `python -m sglang.launch_server`, waits until it serves, and starts it again when asked."""

    def __init__(self, spec: ManagedSglang, api_key_env: str | None = None, log: Path | None = None) -> None:
        self._spec = spec
        self._key_env = api_key_env
        self._log = log
        self._child: Child | None = None
        self._port = spec.port
        self._key_file: Path | None = None
        self._lock = asyncio.Lock()

    @property
    def url(self) -> str:
        return f"http://{self._spec.host}:{self._port}"

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.alive

    async def start(self) -> None:
        async with self._lock:
            await self._start()

    async def restart(self) -> None:
        """End what is left of it, unless it serves after all, and start it again."""
        async with self._lock:
            if not (self.alive and await self._serves(30.0)):
                await self._stop()
                await self._start()

    async def stop(self) -> None:
        async with self._lock:
            await self._stop()

    async def _start(self) -> None:
        if not self.alive:
            self._port = self._spec.port or free_port(self._spec.host)
            self._key_file = await asyncio.to_thread(key_file, self._key_env)
            self._child = Child(command(self._spec, self._port, self._key_file), self._spec.env, self._log)
            await self._child.start()
        try:
            await self._until_ready()
        finally:
            self._forget_key()

    def _forget_key(self) -> None:
        if self._key_file is not None:
            self._key_file.unlink(missing_ok=True)
            self._key_file = None

    async def _stop(self) -> None:
        if self._child is not None:
            await self._child.stop()

    async def _until_ready(self) -> None:
        try:
            async with asyncio.timeout(self._spec.start_timeout_s):
                while not await self._serves(30.0):
                    if not self.alive:
                        raise Unreachable(f"the SGLang server ended as it started{self._hint()}")
                    await asyncio.sleep(POLL)
        except TimeoutError:
            raise Unreachable(f"the SGLang server did not get ready in {self._spec.start_timeout_s:g} s") from None

    async def _serves(self, timeout: float) -> bool:
        http = Http(self.url, self._key_env)
        try:
            return await http.ok("/health", timeout)
        finally:
            await http.close()

    def _hint(self) -> str:
        return f"; its log is {self._log}" if self._log else ""


def command(spec: ManagedSglang, port: int, key_file: Path | None = None) -> list[str]:
    """What starts the server."""
    line = [
        *(spec.python, "-m", "sglang.launch_server", "--model-path", spec.model_path),
        *("--host", spec.host, "--port", str(port), "--tp-size", str(spec.tp), "--dp-size", str(spec.dp)),
        *("--enable-metrics", "--enable-cache-report", "--constrained-json-disable-any-whitespace"),
    ]
    if spec.deterministic:
        line.append("--enable-deterministic-inference")
    if key_file is not None:
        line += ["--config", str(key_file)]
    return [*line, *spec.args]


def key_file(api_key_env: str | None) -> Path | None:
    """A file only we can read with the key in it: on a command line everybody on the machine would see it."""
    if api_key_env is None:
        return None
    if not (key := os.environ.get(api_key_env)):
        raise EthnosError(f"the environment variable {api_key_env} is not set")
    number, name = tempfile.mkstemp(suffix=".yaml", prefix="ethnos-sglang-")
    with os.fdopen(number, "w") as file:
        file.write(yaml.safe_dump({"api-key": key}))
    return Path(name)

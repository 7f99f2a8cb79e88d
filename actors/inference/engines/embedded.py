"""A small model on this machine, through llama.cpp (`xllamacpp`), in a process of its own.

With one slot, equal requests in equal order get equal answers for a seed; several slots work faster together and do
not repeat exactly, since what shares a batch changes the last bits of a sum.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ethnos import models
from ethnos.actors.inference import chat
from ethnos.actors.inference.engines import gguf, llama
from ethnos.actors.inference.engines.base import Answer, Call, Deliver, Prices, Traits, Unreachable, shorten
from ethnos.actors.inference.engines.completion import body, read
from ethnos.actors.inference.engines.http import Http
from ethnos.actors.inference.request import Request
from ethnos.engines import EmbeddedSpec
from ethnos.errors import EthnosError

START_TIMEOUT = 300.0


class EmbeddedEngine:
    """One GGUF model, served on a loopback port that only we have the key to."""

    def __init__(self, spec: EmbeddedSpec, name: str) -> None:
        self.name = name
        self.prices = Prices.of(spec.prices)
        self.traits = Traits(1, spec.in_flight, spec.in_flight)
        self._spec = spec
        self._path = models.locate(spec.model)
        self.model = self._path.stem
        self._process: asyncio.subprocess.Process | None = None
        self._http: Http | None = None
        self._special: frozenset[str] = frozenset()
        if find_spec("xllamacpp") is None:
            raise EthnosError("engines of kind embedded need llama.cpp: pip install 'ethnos[embedded]'")

    async def start(self) -> None:
        """Load the model, unless it is loaded."""
        if self._alive:
            return
        self._special = await asyncio.to_thread(gguf.special_tokens, self._path)
        key = secrets.token_hex(16)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, llama.__file__, start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        told = await self._tell(self._process, self._settings(key))
        if "url" not in told:
            raise Unreachable(f"llama.cpp did not start: {shorten(str(told.get('error', 'it ended')))}")
        self._http = Http(told["url"], key=key)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(5.0):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def healthy(self) -> bool:
        return self._alive and self._http is not None and await self._http.ok("/health", 20.0)

    async def revive(self) -> None:
        if not await self.healthy():
            await self.close()

    def special_tokens(self) -> frozenset[str]:
        return chat.COMMON_SPECIAL_TOKENS | self._special

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        for call in calls:
            deliver(call.rid, await self._ask(body(call.request)))

    async def warm(self, request: Request) -> Answer:
        head = Request(request.tick, request.agent_id, request.call, request.shared, None)
        return await self._ask({**body(head), "max_tokens": 1})

    async def abort(self, rids: Sequence[str]) -> None:
        """The server stops when the call's connection closes."""

    @property
    def pid(self) -> int | None:
        """Of the process that holds the model."""
        return None if self._process is None else self._process.pid

    @property
    def _alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _ask(self, asked: dict[str, Any]) -> Answer:
        if self._http is None or not self._alive:
            raise Unreachable("the process with the model has ended")
        reply = read(await self._http.post("/v1/chat/completions", {**asked, "cache_prompt": True}))
        return Answer(
            reply.text, reply.finish, self.model, reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens
        )

    def _settings(self, key: str) -> dict[str, Any]:
        spec = self._spec
        return {
            "path": str(self._path), "alias": self.model, "key": key, "slots": spec.slots, "context": spec.context,
            "threads": spec.threads or _threads(), "gpu_layers": spec.gpu_layers,
        }  # fmt: skip

    async def _tell(self, process: asyncio.subprocess.Process, settings: dict[str, Any]) -> dict[str, Any]:
        """Give the new process its settings, and hear where it listens."""
        if process.stdin is None or process.stdout is None:
            raise Unreachable("no pipes to llama.cpp")
        process.stdin.write(msgspec.json.encode(settings) + b"\n")
        try:
            async with asyncio.timeout(START_TIMEOUT):
                line = await process.stdout.readline()
        except TimeoutError:
            process.kill()
            raise Unreachable(f"llama.cpp did not start within {START_TIMEOUT:g} s") from None
        return msgspec.json.decode(line, type=dict) if line else {}


def _threads() -> int:
    """As many as there are cores, less one where there are more than two.

    llama.cpp's threads wait for each other: a core taken away from one of them, by the society beside it or by
    another program, makes all of them several times slower.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores <= 2 else cores - 1


def context_length(path: Path) -> int | None:
    """Tokens the model was trained to see, if its file says so."""
    header = gguf.read_header(path)
    length = header.get(f"{header.get('general.architecture')}.context_length")
    return length if isinstance(length, int) else None

"""A world-state service and one host of agents in a thread of their own: all of a cluster but Ray."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ethnos.actors.host import Host
from ethnos.actors.inference.request import Reply, Request
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.rights import token_for
from ethnos.society import Society
from ethnos.transport import certificates
from ethnos.world.hosts import Placement
from ethnos.world.rebuild import society_of
from ethnos.world.service import WorldService

TOKEN = "the secret of a run in tests"


async def _ask(model: str, request: Request) -> Reply:
    raise NotImplementedError


@contextmanager
def served(run: RunDirectory) -> Iterator[threading.Thread]:
    """Serve a run until it is over; its control service can be found by its directory meanwhile."""
    society = society_of(run)
    ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(run, society, ready)), daemon=True)
    thread.start()
    assert ready.wait(30)
    yield thread
    thread.join(60)
    assert not thread.is_alive()


async def _serve(run: RunDirectory, society: Society, ready: threading.Event) -> None:
    service = WorldService(run, society, Placement(1, 1), TOKEN, tls=certificates() is not None)
    hosting: list[asyncio.Task[str]] = []

    def announce(address: str) -> None:
        write_durably(run.contact, json.dumps({"address": address, "token": TOKEN}).encode())
        hosting.append(asyncio.create_task(Host(society, _ask).live(address, token_for(TOKEN, "act"), 0, 0)))
        ready.set()

    await service.run("127.0.0.1", announce)
    await hosting[0]
    run.contact.unlink()

"""A world and its agents on hosts of their own: network namespaces, joined by a cable that can be cut."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc

from ethnos.actors.host import Host, Lost
from ethnos.errors import ClusterError
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.rights import metadata, token_for
from ethnos.transport import channel
from ethnos.wire.v1 import control_pb2, control_pb2_grpc
from ethnos.world.hosts import Placement
from ethnos.world.rebuild import society_of
from ethnos.world.service import WorldService
from tests.tiny import no_model

WORLD, AGENTS = "10.231.7.1", "10.231.7.2"


class Cable:
    """Two network namespaces with a pair of interfaces between them. Raises OSError where that is not allowed."""

    def __init__(self) -> None:
        self.world, self.agents = f"ethw{os.getpid()}", f"etha{os.getpid()}"

    def __enter__(self) -> "Cable":
        for name in (self.world, self.agents):
            _ip("netns", "add", name)
        _ip("link", "add", "cable", "netns", self.world, "type", "veth", "peer", "name", "cable", "netns", self.agents)
        for name, address in ((self.world, WORLD), (self.agents, AGENTS)):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            for link in ("cable", "lo"):
                _ip("-n", name, "link", "set", link, "up")
        return self

    def __exit__(self, *exc: object) -> None:
        for name in (self.world, self.agents):
            with suppress(OSError):
                _ip("netns", "del", name)

    def cut(self) -> None:
        _ip("-n", self.agents, "link", "set", "cable", "down")

    def heal(self) -> None:
        _ip("-n", self.agents, "link", "set", "cable", "up")

    def start(self, where: str, call: str, **env: str) -> subprocess.Popen[str]:
        """Run a function of this module on one of the two hosts."""
        code = f"from tests.security import apart; apart.{call}"
        command = ["ip", "netns", "exec", where, sys.executable, "-c", code]
        return subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def world(path: str, secret: str) -> None:
    """Serve a run on the world's host, with TLS."""
    run = RunDirectory(Path(path))

    def announce(address: str) -> None:
        write_durably(run.contact, json.dumps({"address": address, "token": secret}).encode(), mode=0o600)

    service = WorldService(run, society_of(run), Placement(100, 1), secret, tls=True)
    asyncio.run(service.run(WORLD, announce))


def agents(path: str) -> None:
    """Host a run's agents, and come back after each loss, as an actor that is started again does."""
    run = RunDirectory(Path(path))
    contact = json.loads(run.contact.read_bytes())
    host = Host(society_of(run), no_model)
    for incarnation in range(10_000):
        with suppress(Lost):
            print(asyncio.run(host.live(contact["address"], token_for(contact["token"], "act"), 0, incarnation)))
            return


def stranger(address: str, token: str) -> None:
    """Print what a call from here comes to."""
    try:
        with channel(address) as opened:
            stub = control_pb2_grpc.ControlStub(opened)
            next(iter(stub.Watch(control_pb2.WatchRequest(), metadata=metadata(token), timeout=20)))
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
    except ClusterError as error:
        print(type(error).__name__)


@contextmanager
def ended(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """None of them outlives the block."""
    try:
        yield
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


__all__ = ["AGENTS", "WORLD", "Cable", "agents", "ended", "stranger", "world"]

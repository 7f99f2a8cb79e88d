"""Random and mutated input for what faces outwards: the gRPC edge, society files, run directories.

Everything is drawn from a seed, so what was found can be found again. `scripts/fuzz` runs it at length.
"""

import asyncio
import faulthandler
import json
import queue
import random  # noqa: TID251 - input for tests, nothing that is recorded
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import psutil

from ethnos import society as societies
from ethnos.analytics.summary import summarise
from ethnos.errors import EthnosError, SocietyError
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.record.reader import connect, query
from ethnos.record.verify import verify
from ethnos.rights import metadata, token_for
from ethnos.run import create
from ethnos.transport import channel
from ethnos.wire.v1 import control_pb2 as control
from ethnos.wire.v1 import control_pb2_grpc
from ethnos.wire.v1 import world_pb2 as wire
from ethnos.world.hosts import Placement
from ethnos.world.rebuild import society_of
from ethnos.world.service import WorldService
from tests.tiny import ORCHARD

PATIENCE_S = 300.0
"""Before something counts as hanging; a busy machine may make anything wait."""
SECRET = "a secret for fuzzing"
LIVE = "/ethnos.wire.v1.World/Live"
CONTROL = "/ethnos.wire.v1.Control/"
METHODS = ("Inspect", "Intervene", "Step", "Pause", "Resume")
TEXTS = (
    "",
    "pick",
    "rest",
    "Pick",
    "\x00",
    "☃" * 20,
    "a" * 5000,
    "{}",
    '{"apples":1e999}',
    "'; DROP TABLE events;--",
    "‮",
)
JSONS = (b"", b"{}", b"[]", b"null", b'{"apples":1}', b'{"apples":-1e308}', b'{"apples":NaN}', b"{", b"\xff\xfe",
         b'{"stage":"clean","tokens":"many"}', b'{"stage":1,"tokens":-5}', b"[" * 3000, b'{"a":' * 500)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, 5, -1, 2**31, 2**63 - 1, -(2**63))


# the edge


def random_message(rng: random.Random, tick: int) -> wire.FromHost:
    """What is a message of the right kind, and otherwise anything."""
    match rng.randrange(20):
        case 0:
            return wire.FromHost(hello=wire.Hello(host=rng.randrange(2**32), incarnation=rng.randrange(2**32)))
        case 1:
            return wire.FromHost()
        case _:
            when = tick if rng.random() < 0.9 else rng.choice(NUMBERS)
            made = [_decision(rng) for _ in range(rng.randrange(4))]
            return wire.FromHost(decisions=wire.Decisions(tick=when, decisions=made))


def _decision(rng: random.Random) -> wire.Decision:
    made = wire.Decision(
        agent_id=rng.choice(NUMBERS),
        action=rng.choice(TEXTS),
        args=rng.choice(JSONS),
        message=rng.choice(TEXTS),
        failure=rng.choice(("", "", "", "broken", "b" * 2000)),
        latency_ms=rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e308)),
        how=rng.choice(JSONS),
        late=rng.random() < 0.1,
        layers=[wire.Layer(hash=rng.choice(TEXTS), name=rng.choice(TEXTS), text=rng.choice(TEXTS))] * rng.randrange(3),
    )
    if rng.random() < 0.5:
        made.memory = rng.choice((*JSONS, rng.randbytes(300)))
    if rng.random() < 0.0005:
        made.args = bytes(100_000)
    return made


def mutated(rng: random.Random, data: bytes) -> bytes:
    """With some of its bytes flipped, cut, doubled or replaced."""
    out = bytearray(data or rng.randbytes(8))
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(out) or 1)
        match rng.randrange(4):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1:
                del out[at : at + rng.randrange(1, 9)]
            case 2:
                out[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                out[at:at] = out[at : at + rng.randrange(1, 65)]
    return bytes(out)


@dataclass
class Found:
    """What fuzzing the edge came to."""

    messages: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """How calls ended."""
    ticks: int = 0
    rss_begin: int = 0
    rss_end: int = 0
    seconds: float = 0.0


def fuzz_edge(folder: Path, messages: int, seed: int = 0, told: Callable[[Found], None] = lambda f: None) -> Found:
    """Send that many messages to a society in a process of its own, as a host with a valid token would.

    The society lives on nothing but what it is sent. It has to answer at the end, end when told to, and have a sound
    record. Raises AssertionError.
    """
    run = create(societies.parse(ORCHARD.format(ticks=10**9), changes=["decision_deadline=0.05"]), "fuzzed", folder)
    with _serving(run) as process:
        found = _send(run, process, messages, random.Random(seed), told)
        with channel(_address(run)) as opened:
            stub = control_pb2_grpc.ControlStub(opened)
            steer = metadata(token_for(SECRET, "control"))
            stub.Resume(control.ResumeRequest(), metadata=steer, timeout=PATIENCE_S)
            found.ticks = stub.Stop(control.StopRequest(reason="enough"), metadata=steer, timeout=PATIENCE_S).tick
        _keep_alive_until(process, run)
    checked = verify(run)
    assert checked.ok, [c for c in checked.checks if not c.ok]
    with connect(run) as con:
        query(con, "SELECT count(*), sum(prompt_tokens) FROM calls")
    summarise(run)
    return found


class _Serving:
    """The service in a child process."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    def __enter__(self) -> psutil.Popen:
        code = f"from tests.security.fuzz import serve; serve({str(self.run.path)!r})"
        self.process = psutil.Popen([sys.executable, "-c", code])
        _wait_for(lambda: self.run.contact.exists() or not self.process.is_running())
        return self.process

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


_serving = _Serving


def _wait_for(ready: Any, most_s: float = 60.0) -> None:
    until = time.monotonic() + most_s
    while not ready():
        assert time.monotonic() < until, "it hangs"
        time.sleep(0.02)


def _keep_alive_until(process: psutil.Popen, run: RunDirectory) -> None:
    """A tick under way may need its host once more."""
    outgoing: queue.Queue[bytes] = queue.Queue()
    outgoing.put(_hello(2**32 - 1))
    with suppress(grpc.RpcError), channel(_address(run)) as opened:
        live = opened.stream_stream(LIVE)
        for _ in live(iter(outgoing.get, None), metadata=metadata(token_for(SECRET, "act")), timeout=PATIENCE_S):
            pass
    assert process.wait(timeout=PATIENCE_S) == 0


def serve(path: str) -> None:
    """What the child process does."""
    faulthandler.register(signal.SIGUSR1)
    run = RunDirectory(Path(path))
    asyncio.run(_serve(run))


async def _serve(run: RunDirectory) -> None:
    def announce(address: str) -> None:
        write_durably(run.contact, json.dumps({"address": address, "token": SECRET}).encode())

    await WorldService(run, society_of(run), Placement(100, 1), SECRET).run("127.0.0.1", announce)


def _address(run: RunDirectory) -> str:
    return str(json.loads(run.contact.read_bytes())["address"])


def _hello(incarnation: int) -> bytes:
    return wire.FromHost(hello=wire.Hello(host=0, incarnation=incarnation)).SerializeToString()


def _send(
    run: RunDirectory, process: psutil.Popen, messages: int, rng: random.Random, told: Callable[[Found], None]
) -> Found:
    found, begin, incarnation = Found(), time.monotonic(), 0
    with channel(_address(run)) as opened:
        while found.messages < messages:
            incarnation += 1
            _one_stream(opened, rng, found, incarnation, min(2000, messages - found.messages), process)
            _calls(opened, rng, found, 3)
            assert process.is_running() and process.status() != psutil.STATUS_ZOMBIE, "the service died"
            found.rss_end = process.memory_info().rss
            told(found)
            if not found.rss_begin and found.messages > messages // 5:
                found.rss_begin = process.memory_info().rss
    found.rss_end = process.memory_info().rss
    found.seconds = time.monotonic() - begin
    return found


def _one_stream(
    opened: grpc.Channel, rng: random.Random, found: Found, incarnation: int, most: int, process: psutil.Popen
) -> None:
    """Be a host until something we sent ends the stream, or for so many messages."""
    outgoing: queue.Queue[bytes | None] = queue.Queue(maxsize=64)
    state = {"tick": 1, "over": False}
    stream = opened.stream_stream(LIVE)(
        iter(outgoing.get, None), metadata=metadata(token_for(SECRET, "act")), timeout=2 * PATIENCE_S
    )
    reader = threading.Thread(target=_read, args=(stream, state, found), daemon=True)
    outgoing.put(_hello(incarnation))
    reader.start()
    breaks_at = rng.randrange(1, 2 * most)
    for i in range(most):
        message = random_message(rng, int(state["tick"])).SerializeToString()
        _put(outgoing, mutated(rng, message) if i >= breaks_at else message, state)
        found.messages += 1
        if state["over"]:
            break
    _put(outgoing, None, state)
    reader.join(PATIENCE_S)
    if reader.is_alive():
        process.send_signal(signal.SIGUSR1)
        time.sleep(2)
        raise AssertionError("a stream does not end; the service has printed what it is at")


def _put(outgoing: "queue.Queue[bytes | None]", message: bytes | None, state: dict[str, Any]) -> None:
    while not state["over"]:
        with suppress(queue.Full):
            outgoing.put(message, timeout=0.5)
            return


def _read(stream: Any, state: dict[str, Any], found: Found) -> None:
    try:
        for data in stream:
            message = wire.ToHost.FromString(data)
            if message.WhichOneof("message") == "observations":
                state["tick"] = message.observations.tick
        found.codes["OK"] += 1
    except grpc.RpcError as error:
        found.codes[error.code().name] += 1
    state["over"] = True


def _calls(opened: grpc.Channel, rng: random.Random, found: Found, count: int) -> None:
    """Random bytes to the people's side, with and without a token."""
    for _ in range(count):
        method = rng.choice(METHODS)
        token = rng.choice((token_for(SECRET, "administer"), token_for(SECRET, "look"), "", "x"))
        body = rng.choice((rng.randbytes(rng.randrange(60)), rng.choice(JSONS), b"\n\x02{}"))
        try:
            opened.unary_unary(CONTROL + method)(body, metadata=metadata(token), timeout=PATIENCE_S)
            found.codes["OK"] += 1
        except grpc.RpcError as error:
            found.codes[error.code().name] += 1
            assert error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED, f"{method} hangs"
        found.messages += 1
    opened.unary_unary(CONTROL + "Resume")(b"", metadata=metadata(token_for(SECRET, "control")), timeout=PATIENCE_S)


# society files


def fuzz_society_files(files: int, seed: int = 0) -> Counter[str]:
    """Parse that many mutated society files; counts what came of them. Nothing but SocietyError is raised."""
    rng, outcomes = random.Random(seed), Counter[str]()
    sources = [p.read_bytes() for p in societies.shipped_societies().values()]
    for _ in range(files):
        text = _spoilt(rng, rng.choice(sources)).decode("utf-8", "replace")
        try:
            societies.parse(text)
            outcomes["valid"] += 1
        except SocietyError:
            outcomes["refused"] += 1
    return outcomes


_PIECES = (b"&a [*a]", b"<<: *a", b"!!python/object/apply:os.system [id]", b"- " * 60, b"{" * 60, b"\t", b"\x00", b": ",
           b"1e999", b"-0x1", b".nan", b"2001-01-01", b"? ", b"|\n", b"seed: 99999999999999999999", b"\xf0\x9f\x92\xa9",
           b"[" * 2000, b"ticks: [1]", b"population: {}", b"count: -1")  # fmt: skip


def _spoilt(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randrange(1, 4)):
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                data = mutated(rng, data)
            case 1:
                del lines[at]
                data = b"\n".join(lines)
            case 2:
                lines.insert(at, lines[rng.randrange(len(lines))])
                data = b"\n".join(lines)
            case 3:
                lines[at] = lines[at].partition(b":")[0] + b": " + rng.choice(_PIECES)
                data = b"\n".join(lines)
            case _:
                lines.insert(at, b" " * rng.randrange(8) + rng.choice(_PIECES))
                data = b"\n".join(lines)
    return data


# run directories


def fuzz_run_directories(run: RunDirectory, folder: Path, copies: int, seed: int = 0) -> Counter[str]:
    """Damage that many copies of a run, each in another way, and read them; counts what came of it.

    Nothing but an EthnosError is raised, and no damage to the record passes as sound where the digest covers it.
    """
    rng, outcomes = random.Random(seed), Counter[str]()
    for i in range(copies):
        copy = RunDirectory(folder / f"copy-{i}")
        shutil.copytree(run.path, copy.path)
        where = _damage(rng, copy.path)
        outcomes[f"{where}: {_looked_at(copy)}"] += 1
        shutil.rmtree(copy.path)
    return outcomes


def _damage(rng: random.Random, path: Path) -> str:
    files = sorted(p for p in path.rglob("*") if p.is_file() and p.name != "lock")
    victim = rng.choice(files)
    data = victim.read_bytes()
    match rng.randrange(5):
        case 0:
            victim.unlink()
        case 1:
            victim.write_bytes(data[: rng.randrange(len(data) + 1)])
        case 2:
            victim.write_bytes(rng.randbytes(rng.randrange(2000)))
        case 3:
            victim.write_bytes(rng.choice(files).read_bytes())
        case _:
            victim.write_bytes(mutated(rng, data))
    return victim.parent.name if victim.parent != path else victim.name


def _looked_at(run: RunDirectory) -> str:
    """What everybody does to a run that came from elsewhere."""
    said = []
    for look in (lambda: verify(run).ok, lambda: bool(summarise(run)), lambda: bool(_queried(run))):
        try:
            said.append("sound" if look() else "unsound")
        except EthnosError:
            said.append("refused")
    return said[0]


def _queried(run: RunDirectory) -> list[Any]:
    with connect(run) as con:
        return [query(con, f"SELECT * FROM {table}").num_rows for table in ("events", "agents", "calls", "messages")]


def texts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All files below a folder with what is in them."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()

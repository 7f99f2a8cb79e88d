"""Ray: the only module that speaks of it.

It places the world-state service and the agents' actors, starts them again when they die, and reports how the
run is doing. All data between them goes over gRPC.
"""

import asyncio
import fcntl
import json
import logging
import os
import platform
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import grpc
import psutil
import ray
import ray.util.metrics
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ethnos import logs, traces
from ethnos.actors.host import Host, Lost
from ethnos.actors.inference.engines.base import Trouble, Unreachable
from ethnos.actors.inference.engines.managed import SglangServer, log_of
from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds.making import Ask
from ethnos.actors.thinking import Models, engines, spent_before
from ethnos.engines import ManagedSglang, SglangSpec
from ethnos.errors import ClusterError, EthnosError
from ethnos.meters import METERS, Totals, told_of
from ethnos.record.directory import RunDirectory, now, write_durably
from ethnos.rights import metadata, token_for
from ethnos.society import Society, parse
from ethnos.transport import certificates, channel
from ethnos.wire.v1 import control_pb2 as control
from ethnos.wire.v1 import control_pb2_grpc
from ethnos.world.hosts import Placement
from ethnos.world.service import WorldService
from ethnos.world.vitals import EVERY_S

_ray: Any = ray
_metrics: Any = ray.util.metrics
"""Parts of Ray's interface have no types, or too narrow ones."""

STARTING = control.Status.PHASE_STARTING
MOST_DEATHS = 3
START_ATTEMPTS = 5
SURVEY_S = 60.0
"""How long a node may take to run a task that only looks around."""
RETRY_S = 0.2
"""Between an actor's attempts to reach a world that is away."""
BACK_S = 300.0
"""How long the world-state service's process may take to start again: a busy machine or a new node takes its time."""
MB_PER_ACTOR = 60
"""What a process that hosts one agent costs; see docs/architecture.md."""
OWN_PROCESSES_PER_CORE = 25
"""Up to this many agents per core, `agents_per_actor: auto` gives each a process of its own."""


@contextmanager
def ray_session() -> Iterator[None]:
    """Ray, for as long as needed: the one already here, the cluster at $RAY_ADDRESS, or one of our own."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    if address and _has_token():
        # A cluster asks for a token by default, a driver that joins one sends it only if told to (Ray 2.60).
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    folder, held = (None, None) if address else _own_folder()
    # Ray would run its workers at niceness 15: beside anything else on the machine they would hardly run at all.
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_maximum_startup_concurrency", str(32 * (os.cpu_count() or 1)))
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            _start_own(str(folder))
        # Ray would write what it has to say of dead workers between the lines of our output.
        _ray._private.worker._worker_logs_enabled = False
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ClusterError(f"cannot {'join Ray at ' + address if address else 'start Ray'}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()
        if folder and held:
            shutil.rmtree(folder, ignore_errors=True)
            held.close()


def _start_own(folder: str) -> None:
    """Start a Ray of our own. On a machine that is very busy it gives itself too little time: then once more."""
    for attempt in range(START_ATTEMPTS):
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=100 * 1024 * 1024,
                _temp_dir=folder,
            )
            return
        except Exception as error:
            # Ray raises a plain Exception for this, and names the reason in words alone.
            if type(error) is not Exception or "timed out during startup" not in str(error):
                raise
            ray.shutdown()
            if attempt + 1 == START_ATTEMPTS:
                raise ClusterError("Ray did not start in time: this machine is too busy") from None


def _own_folder() -> tuple[str, IO[bytes]]:
    """A folder for a Ray of our own, and the lock that says it is in use; those of killed drivers are removed."""
    for lock in Path(tempfile.gettempdir()).glob("ethnos-ray-*/in-use"):
        with suppress(OSError), lock.open("rb") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix="ethnos-ray-")
    held = (Path(folder) / "new").open("wb")
    fcntl.flock(held, fcntl.LOCK_EX)
    (Path(folder) / "new").rename(Path(folder) / "in-use")  # nobody may see it before it is locked
    return folder, held


def _has_token() -> bool:
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or Path(named or Path.home() / ".ray" / "auth_token").is_file()


def placement_for(society: Society) -> Placement:
    """How the agents of a society are spread over actors on this machine or cluster.

    `auto` gives each agent its own process while the founders are at most 25 per core and their processes fit in
    half of the free memory; above that the agents share one actor per core.
    """
    founders = sum(c.count for c in society.population)
    if society.agents_per_actor != "auto":
        return Placement(society.agents_per_actor, 1_000_000, _spares(founders) if society.agents_per_actor == 1 else 0)
    cores = max(1, int(_ray.cluster_resources().get("CPU", 1)))
    free_mb = psutil.virtual_memory().available // 2**20
    own = min(OWN_PROCESSES_PER_CORE * cores, free_mb // 2 // MB_PER_ACTOR)
    if founders <= own:
        return Placement(1, max(1, own), _spares(founders))
    return Placement(1, cores)


def _spares(founders: int) -> int:
    """Actors to keep ready for births: a quarter more than there are founders, since starting one takes seconds."""
    return max(2, founders // 4)


class _RayMeters:
    """Ethnos' meters as Ray's metrics, which each node offers to Prometheus."""

    def __init__(self, run: str) -> None:
        self._run = run
        kinds = {"counter": _metrics.Counter, "gauge": _metrics.Gauge}
        self._made: dict[str, Any] = {
            name: _metrics.Histogram(name, m.meaning, boundaries=list(m.bounds), tag_keys=("run",))
            if m.sort == "histogram"
            else kinds[m.sort](name, m.meaning, tag_keys=("run", m.label) if m.label else ("run",))
            for name, m in METERS.items()
        }

    def add(self, name: str, amount: float = 1.0, label: str = "") -> None:
        if amount > 0:
            self._made[name].inc(amount, tags=self._tags(name, label))

    def set(self, name: str, value: float, label: str = "") -> None:
        self._made[name].set(value, tags=self._tags(name, label))

    def observe(self, name: str, value: float) -> None:
        self._made[name].observe(value, tags=self._tags(name, ""))

    def _tags(self, name: str, label: str) -> dict[str, str]:
        key = METERS[name].label
        return {"run": self._run, key: label} if key else {"run": self._run}


class _World:
    """The actor around the world-state service."""

    def __init__(self, path: str, secret: str) -> None:
        logs.configure()
        self._run = RunDirectory(Path(path))
        self._secret = secret
        self._address: str | None = None
        self._ready = threading.Event()

    def serve(self, local: bool, tls: bool) -> str:
        society = parse(self._run.society.read_text("utf-8"), str(self._run.society))
        service = WorldService(
            self._run, society, placement_for(society), self._secret, tls=tls, meters=_RayMeters(self._run.name)
        )
        bind = "127.0.0.1" if local else _ray.util.get_node_ip_address()
        try:
            with logs.about(run=self._run.name):
                return asyncio.run(service.run(bind, self._announce))
        finally:
            self._ready.set()

    def is_here(self) -> bool:
        """Whoever gets an answer to this knows that the process is up."""
        return True

    def _announce(self, address: str) -> None:
        self._address = address
        self._ready.set()

    def address(self) -> str | None:
        """Where it listens; waits for that. None if it failed before it did."""
        self._ready.wait()
        return self._address


class _Engine:
    """The actor around an engine's server. It owns the GPUs that the server is given, and comes back with its node."""

    def __init__(self, engine: str, local: bool) -> None:
        spec = SglangSpec.model_validate_json(engine)
        managed = spec.managed
        assert managed is not None
        if not local and managed.host == "127.0.0.1":
            managed = managed.model_copy(update={"host": _ray.util.get_node_ip_address()})
        self._server = SglangServer(managed, spec.api_key_env, log_of(spec.name))

    async def start(self) -> str:
        """Its URL, once it serves."""
        await self._server.start()
        return self._server.url

    async def restart(self) -> str:
        await self._server.restart()
        return self._server.url

    async def stop(self) -> None:
        await self._server.stop()


class _EngineElsewhere:
    """An engine's server as the pool sees it, through the actor that looks after it."""

    alive = True

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self.url = ""

    async def start(self) -> None:
        self.url = await self._call("start")

    async def restart(self) -> None:
        self.url = await self._call("restart")

    async def stop(self) -> None:
        await self._call("stop")

    async def _call(self, name: str) -> Any:
        try:
            return await getattr(self._actor, name).remote()
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Trouble | EthnosError) else Unreachable(str(error)) from None
        except RayActorError as error:
            raise Unreachable(f"its actor is gone: {error}") from None


class _Models:
    """The actor around a society's models; asynchronous, so that all agents can wait at once."""

    def __init__(self, society: str, path: str, actors: dict[str, str]) -> None:
        """`actors` names who looks after the engines that are ours to start, by the engines' names."""

        def serve(spec: SglangSpec) -> _EngineElsewhere:
            return _EngineElsewhere(ray.get_actor(actors[spec.name]))

        self._models = Models(parse(society), spent_before(RunDirectory(Path(path))), serve)
        self._starting: asyncio.Task[Models] | None = None
        self._meters = _RayMeters(Path(path).name)
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect to the engines and start those that are ours to start, once per life of this actor."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._models.__aenter__())
            self._telling = asyncio.create_task(self._tell())
        await self._starting

    async def _tell(self) -> None:
        """Pass the pools' figures on, every few seconds."""
        totals = Totals(self._meters)
        await self._starting  # type: ignore[misc]
        while True:
            told_of(self._meters, totals, self._models.stats())
            await asyncio.sleep(EVERY_S)

    async def special_tokens(self) -> dict[str, list[str]]:
        await self.start()
        return self._models.special_tokens()

    async def stop(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        await self._models.__aexit__()

    async def ask(self, model: str, request: Request, traceparent: str = "") -> Reply:
        await self.start()
        with traces.span("think", traceparent, model=model):
            reply = await self._models.ask(model, request)
            traces.note(engine=reply.engine, prompt_tokens=reply.prompt_tokens, cached_tokens=reply.cached_tokens)
            traces.note(completion_tokens=reply.completion_tokens, attempts=reply.attempts, error=reply.error)
        return reply

    async def stats(self) -> dict[str, Any]:
        return self._models.stats()


class _Agents:
    """The actor around a host of agents."""

    def __init__(self, society: str, models: str) -> None:
        """`models` is the name of the actor that all thinking goes through; empty if nobody thinks."""
        logs.configure()
        thinking = ray.get_actor(models) if models else None
        special = _ray.get(thinking.special_tokens.remote()) if thinking else None
        self._host = Host(parse(society), _asking(thinking), special, own_process=True)

    def live(self, address: str, token: str, number: int, incarnation: int) -> str | None:
        """Why the run ended; None if the world was lost."""
        try:
            return asyncio.run(self._host.live(address, token, number, incarnation))
        except Lost:
            time.sleep(RETRY_S)
            return None


def _asking(models: Any) -> Ask:
    """How an actor's minds reach the models. (A coroutine method would make the whole actor asynchronous.)"""

    async def ask(model: str, request: Request) -> Reply:
        try:
            reply: Reply = await models.ask.remote(model, request, traces.here())
        except RayTaskError as error:
            raise _cause(error) from None
        return reply

    return ask


class Supervisor:
    """Runs one society on Ray: starts what is missing, restarts what died, until the world says it is over."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._society = parse(run.society.read_text("utf-8"), str(run.society))
        self._text = run.society.read_text("utf-8")
        self._secret = secrets.token_urlsafe(32)
        self._local = not os.environ.get("RAY_ADDRESS")
        """On a Ray of our own nothing listens beyond this machine."""
        self._beside_disk = NodeAffinitySchedulingStrategy(_ray.get_runtime_context().get_node_id(), soft=False)
        """For what reads or writes the run's directory: the node that has it."""
        remote_world = _ray.remote(
            max_restarts=-1, max_concurrency=2, num_cpus=0, scheduling_strategy=self._beside_disk
        )(_World)
        self._world = remote_world.remote(str(run.path.resolve()), self._secret)
        self._remote_agents = _ray.remote(**self._agents_placing())(_Agents)
        self._engines: dict[str, Any] = {}
        """The actors that look after the engines of ours, by the engines' names."""
        self._models_name = f"models-{secrets.token_hex(8)}" if self._society.models else ""
        self._models: Any = None
        self._hosts: list[Any] = []
        self._living: dict[Any, int] = {}
        """Reference of a host's `live` call to the host's number."""
        self._incarnations: list[int] = []
        self._status: control.Status | None = None
        self._asked_to_stop = False
        self._deaths = 0
        self._tick_at_death = -1
        self._address = ""
        self._serving: Any = None
        self._watcher: _Watcher | None = None

    def _agents_placing(self) -> dict[str, Any]:
        """What Ray is told of where agents live. Raises ClusterError if a Ray of our own cannot have it."""
        where = self._society.agents_on
        short = [f"{n:g} {r}" for r, n in where.resources.items() if n > _here(r)]
        if self._local and (where.labels or short):
            raise ClusterError(
                f"agents_on asks for {', '.join([*(f'{k}={v}' for k, v in where.labels.items()), *short])}, which this "
                "machine on its own has not. Join a cluster that has it (RAY_ADDRESS), or leave agents_on out"
            )
        return {
            "max_restarts": -1,
            "num_cpus": where.resources.get("CPU", 0),
            "num_gpus": where.resources.get("GPU", 0),
            "resources": {r: n for r, n in where.resources.items() if r not in ("CPU", "GPU")},
            "label_selector": where.labels or None,
            "scheduling_strategy": "SPREAD",
        }

    def run(self, on_status: Callable[[control.Status], None], stop: threading.Event) -> None:
        """Until the run is over. Raises what ended it if that was an error."""
        try:
            if self._society.models:
                self._start_models(on_status, stop)
            self._serve()
            while True:
                self._follow(on_status)
                if stop.is_set() and not self._asked_to_stop:
                    self._asked_to_stop = self._ask_to_stop()
                done, _ = ray.wait([self._serving, *self._living], num_returns=1, timeout=0.05)
                if self._serving in done:
                    if self._world_is_over():
                        break
                    self._count_death()
                    self._serve()
                elif done:
                    self._restart_host(done[0])
            if self._watcher is not None:
                self._watcher.join()
                self._follow(on_status)
        finally:
            self._end()

    def _follow(self, on_status: Callable[[control.Status], None]) -> None:
        """Pass news on, and start the actors that they ask for."""
        status = self._watcher.latest if self._watcher else None
        if status is not None and status is not self._status:
            self._status = status
            self._start_hosts(status.hosts_wanted)
            on_status(status)

    def _count_death(self) -> None:
        """A service that dies again and again without getting anywhere is given up."""
        tick = self._status.tick if self._status else -1
        self._deaths = self._deaths + 1 if tick <= self._tick_at_death else 1
        self._tick_at_death = tick
        if self._deaths > MOST_DEATHS:
            raise ClusterError(f"the world-state service died {self._deaths} times at tick {tick}")

    def _start_models(self, on_status: Callable[[control.Status], None], stop: threading.Event) -> None:
        """The actor that all thinking goes through, and its engines. Raises what keeps them from starting."""
        for spec in (s for _, specs in engines(self._society) for s in specs):
            if isinstance(spec, SglangSpec) and spec.managed is not None:
                self._engines[spec.name] = self._start_engine(spec, spec.managed)
        remote = _ray.remote(
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=100_000,
            num_cpus=0,
            scheduling_strategy=self._beside_disk,
        )(_Models)
        self._models = remote.options(name=self._models_name).remote(
            self._text,
            str(self._run.path.resolve()),
            {name: self._engine_name(name) for name in self._engines},
        )
        waits_for = "engine " + ", ".join(self._engines) if self._engines else "models"
        on_status(control.Status(tick=-1, ticks=self._society.ticks, phase=STARTING, reason=waits_for))
        started = self._models.start.remote()
        try:
            while not ray.wait([started], timeout=0.2)[0]:
                if stop.is_set():
                    raise ClusterError(
                        f"stopped before it had its {waits_for}; go on with: ethnos resume {self._run.name}"
                    )
            ray.get(started)
        except RayTaskError as error:
            raise _cause(error) from None
        except RayActorError as error:
            raise ClusterError(f"the models' actor did not start: {error}") from None

    def _start_engine(self, spec: SglangSpec, managed: ManagedSglang) -> Any:
        """An actor with the GPUs that an engine asks for; on a cluster it waits for a node that has them."""
        wanted = {"GPU": managed.gpus, **managed.resources}
        if self._local and (short := [f"{n:g} {r}" for r, n in wanted.items() if n > _here(r)]):
            raise ClusterError(
                f"engine {spec.name} needs {', '.join(short)}, and this machine has less. Join a cluster that has it "
                "(RAY_ADDRESS), or set num_gpus: 0 for a server that needs no GPU"
            )
        remote = _ray.remote(
            num_gpus=managed.gpus,
            num_cpus=0,
            resources=managed.resources,
            label_selector=managed.labels or None,
            scheduling_strategy="SPREAD",
            max_restarts=-1,
            max_task_retries=-1,
        )(_Engine)
        return remote.options(name=self._engine_name(spec.name)).remote(spec.model_dump_json(), self._local)

    def _engine_name(self, engine: str) -> str:
        return f"{self._models_name}-{engine}"

    def _serve(self) -> None:
        """Start serving, wait until it listens, and watch it."""
        self._await_world()
        self._serving = self._world.serve.remote(self._local, certificates() is not None)
        try:
            address = ray.get(self._world.address.remote())
        except RayActorError:
            address = None
        if address is None:
            return
        self._address = address
        contact = json.dumps({"address": self._address, "token": self._secret}).encode()
        write_durably(self._run.contact, contact, mode=0o600)
        self._watcher = _Watcher(self._address, token_for(self._secret, "look"))

    def _await_world(self) -> None:
        """Wait until the world's process is up. Raises ClusterError if it does not come.

        Ray fails calls to an actor that is restarting, within seconds; that is no further death of it.
        """
        until = time.monotonic() + BACK_S
        while time.monotonic() < until:
            try:
                ray.get(self._world.is_here.remote(), timeout=BACK_S)
                return
            except ActorUnavailableError:
                time.sleep(RETRY_S)
            except (RayActorError, GetTimeoutError):
                return  # the call that comes next meets the same and is counted
        raise ClusterError(f"the world-state service did not start again within {BACK_S:.0f} s")

    def _world_is_over(self) -> bool:
        """False if its process died; raises what the service raised."""
        try:
            ray.get(self._serving, timeout=10)
            return True
        except RayActorError:
            return False
        except RayTaskError as error:
            raise _cause(error) from None

    def _start_hosts(self, wanted: int) -> None:
        for number in range(len(self._hosts), wanted):
            self._hosts.append(self._remote_agents.remote(self._text, self._models_name))
            self._incarnations.append(0)
            self._live(number)

    def _live(self, number: int) -> None:
        incarnation = self._incarnations[number]
        self._incarnations[number] += 1
        ref = self._hosts[number].live.remote(self._address, token_for(self._secret, "act"), number, incarnation)
        self._living[ref] = number

    def _restart_host(self, ref: Any) -> None:
        number = self._living.pop(ref)
        try:
            if ray.get(ref, timeout=10) is not None:
                return
        except RayActorError:
            pass
        except RayTaskError as error:
            raise _cause(error) from None
        self._live(number)

    def _ask_to_stop(self) -> bool:
        with suppress(grpc.RpcError):
            with channel(self._address) as opened:
                control_pb2_grpc.ControlStub(opened).Stop(
                    control.StopRequest(reason="stopped by its user"),
                    metadata=metadata(token_for(self._secret, "control")),
                    timeout=10,
                )
            return True
        return False

    def _end(self) -> None:
        with suppress(OSError):
            self._run.contact.unlink(missing_ok=True)
        if self._models is not None:
            with suppress(RayActorError, RayTaskError, GetTimeoutError):
                ray.get(self._models.stop.remote(), timeout=10)
        models = [self._models] if self._models is not None else []
        for actor in (*self._hosts, self._world, *models, *self._engines.values()):
            ray.kill(actor)


class _Watcher:
    """Keeps the latest status of a run, in a thread of its own."""

    def __init__(self, address: str, token: str) -> None:
        self.latest: control.Status | None = None
        self._thread = threading.Thread(target=self._watch, args=(address, token), daemon=True)
        self._thread.start()

    def _watch(self, address: str, token: str) -> None:
        with suppress(grpc.RpcError), channel(address) as opened:
            stub = control_pb2_grpc.ControlStub(opened)
            for status in stub.Watch(control.WatchRequest(), metadata=metadata(token)):
                self.latest = status

    def join(self) -> None:
        self._thread.join(timeout=2)


def _here(resource: str) -> float:
    """How much of a resource this Ray has."""
    return float(_ray.cluster_resources().get(resource, 0.0))


def _cause(error: RayTaskError) -> Exception:
    """The error of ours inside Ray's, if there is one."""
    cause = error.cause
    if isinstance(cause, EthnosError):
        return cause
    return ClusterError(f"the run failed: {cause!r}")


def run_on_ray(
    run: RunDirectory,
    on_status: Callable[[control.Status], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Bring a run to its end on Ray, from wherever its record ends."""
    with ray_session():
        Supervisor(run).run(on_status or (lambda status: None), stop or threading.Event())


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster, and what a short task found on it."""

    address: str
    alive: bool
    resources: dict[str, float]
    labels: dict[str, str]
    versions: str = ""
    """Of Python, Ray and Ethnos, in words."""
    skew_s: float = 0.0
    """How far its clock is ahead of this one's."""


def survey() -> list[Node]:
    """The nodes of the cluster, by address, each looked at from inside. Raises ClusterError."""
    with ray_session():
        return sorted((_surveyed(n) for n in _ray.nodes()), key=lambda n: n.address)


def _surveyed(node: dict[str, Any]) -> Node:
    known = (node["NodeManagerAddress"], bool(node["Alive"]), dict(node["Resources"]), dict(node.get("Labels") or {}))
    if not known[1]:
        return Node(*known)
    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    look = _ray.remote(num_cpus=0, scheduling_strategy=there)(_look)
    try:
        ray.get(look.remote(), timeout=SURVEY_S)  # the first call waits for a process, which is no skew
        asked = now().timestamp()
        versions, time_there = ray.get(look.remote(), timeout=SURVEY_S)
    except (GetTimeoutError, RayTaskError, RayError) as error:
        raise ClusterError(f"node {known[0]} runs no task: {type(error).__name__}") from None
    return Node(*known, versions, time_there - (asked + now().timestamp()) / 2)


def _look() -> tuple[str, float]:
    versions = f"Python {platform.python_version()}, Ray {version('ray')}, Ethnos {version('ethnos')}"
    return versions, now().timestamp()


def map_on_ray(
    work: Callable[[str], None], items: Sequence[str], at_once: int | None, on_done: Callable[[int], None]
) -> None:
    """Do the same for each of some items, so many at once, each on a core; tells how many are done.

    A worker that dies is replaced and does its item again. Raises what `work` raises.
    """
    with ray_session():
        task = _ray.remote(num_cpus=1, max_retries=5)(work)
        todo = list(reversed(items))
        running: list[Any] = []
        limit = at_once or max(1, int(_ray.cluster_resources().get("CPU", 1)))
        done = 0
        while todo or running:
            while todo and len(running) < limit:
                running.append(task.remote(todo.pop()))
            over, running = ray.wait(running, num_returns=1)
            for ref in over:
                try:
                    ray.get(ref)
                except RayTaskError as error:
                    raise _cause(error) from None
                done += 1
                on_done(done)


__all__ = ["Node", "Supervisor", "map_on_ray", "placement_for", "ray_session", "run_on_ray", "survey"]

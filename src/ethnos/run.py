"""Running a society: make its directory, then bring it to its end."""

import threading
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ethnos.errors import RunBusy, RunError
from ethnos.record.directory import Column, Flow, Kind, Manifest, Parent, RunDirectory, now, runs_folder
from ethnos.record.log import check_whole, read_segment
from ethnos.record.schema import FORMAT
from ethnos.society import Society
from ethnos.wire.v1.control_pb2 import Status
from ethnos.world.events import COLUMNS
from ethnos.world.rebuild import society_of
from ethnos.world.spec import EventSpec, ScenarioSpec, kind_of, rules_digest

_VERSIONS = ("ethnos", "numpy", "pyarrow", "msgspec")
"""Libraries on which draws and bytes depend."""


def create(society: Society, name: str, folder: Path | None = None, parent: Parent | None = None) -> RunDirectory:
    """A run directory for a society, nothing in it yet; for a branch with its parent. Raises RunExists."""
    spec = ScenarioSpec(society.scenario_class())
    manifest = Manifest(
        name=name,
        format=FORMAT,
        ethnos=version("ethnos"),
        scenario=society.scenario,
        seed=society.seed,
        ticks=society.ticks,
        created=now(),
        state="running",
        kinds={e.kind: Kind(e.doc, _columns(e)) for e in spec.events.values()},
        conserved={
            quantity: [Flow(kind_of(f.event), f.field, f.sign) for f in flows]
            for quantity, flows in spec.scenario.conserved.items()
        },
        versions={package: version(package) for package in _VERSIONS},
        parent=parent,
        society=sha256(society.to_yaml().encode()).hexdigest(),
        rules=rules_digest(spec),
    )
    return RunDirectory.create((folder or runs_folder()) / name, society.to_yaml(), manifest)


def run(
    society: Society,
    *,
    name: str,
    on_status: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> RunDirectory:
    """Run a society on Ray from its first tick to its last, in a new directory of that name.

    `on_status` is called about as often as a tick ends; setting `stop` ends the run after the tick under way.
    Raises RunExists, SocietyError, ClusterError, RecordFull.
    """
    from ethnos.actors.cluster import run_on_ray

    directory = create(society, name)
    run_on_ray(directory, on_status, stop)
    return directory


def resume(
    directory: RunDirectory,
    *,
    on_status: Callable[[Status], None] | None = None,
    stop: threading.Event | None = None,
) -> RunDirectory:
    """Bring a run that was stopped or crashed, or a new branch, to its end, on Ray, from its last committed tick.

    Raises RunBusy if somebody is writing it, RunError if it cannot go on, RecordDamaged, ClusterError, RecordFull.
    """
    from ethnos.actors.cluster import run_on_ray

    check_resumable(directory)
    directory.go_on()
    run_on_ray(directory, on_status, stop)
    return directory


def check_resumable(run: RunDirectory) -> None:
    """Whether a run can go on from where its record ends. Nothing is changed. Raises RunError that says why not."""
    manifest = run.manifest()
    if manifest.state == "finished":
        raise RunError(
            f"run {run.name} is over: {manifest.reason}. For more of it, branch off its end: "
            f"ethnos fork {run.name} --at {manifest.tick} --set ticks={2 * manifest.ticks}"
        )
    run.check_unaltered()
    if run.is_locked():
        raise RunBusy(f"run {run.name} is being written by another process")
    society = society_of(run)
    if manifest.rules and rules_digest(ScenarioSpec(society.scenario_class())) != manifest.rules:
        raise RunError(
            f"the scenario {society.scenario} declares other parameters, actions or events than when run "
            f"{run.name} was made. Resume it with the version it was made with: {_made_with(manifest)}"
        )
    check_whole(run, [list(read_segment(path)) for path in run.segments()])


def _made_with(manifest: Manifest) -> str:
    return ", ".join(f"{package} {number}" for package, number in manifest.versions.items())


def run_here(society: Society, *, name: str) -> RunDirectory:
    """Run a society in this process, without Ray: quick for small scripted ones. The record is the same."""
    from ethnos.actors.here import run_here as bring_to_its_end

    directory = create(society, name)
    bring_to_its_end(directory)
    return directory


_SQL_TYPES = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR", bool: "BOOLEAN"}


def _columns(event: EventSpec) -> list[Column]:
    """The columns of the view of one kind of event: types from its annotations, meanings from their metadata."""
    hints = get_type_hints(event.cls)
    return [
        Column(name, _sql_type(hints[name]), *event.describe(name), common=name in COLUMNS)
        for name in (*event.columns, *event.extra)
    ]


def _sql_type(hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is Literal:
        return "VARCHAR" if all(isinstance(a, str) for a in get_args(hint)) else "JSON"
    if origin in (Union, UnionType):
        inner = [a for a in get_args(hint) if a is not type(None)]
        return _sql_type(inner[0]) if len(inner) == 1 else "JSON"
    return _SQL_TYPES.get(hint, "JSON")


__all__ = ["check_resumable", "create", "resume", "run", "run_here"]

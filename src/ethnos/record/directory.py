"""A run's directory: where things are, its manifest, and who may write.

society.yaml     what was asked for, every default written out
manifest.json    versions, seed, state, and the derived schema of its kinds of event
lock             held by the one process that writes
wal/             Arrow IPC segments; the newest is the open one
events/ decisions/ ticks/    sealed Parquet parts, named by their first and last tick
snapshots/       world state every so many ticks
"""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from ethnos.errors import RecordDamaged, RunBusy, RunError, RunExists, RunNotFound, SocietyError
from ethnos.record.schema import FORMAT, TABLES

State = Literal["running", "finished", "stopped", "crashed"]


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of the view of one kind of event."""

    name: str
    type: Literal["BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "JSON"]
    meaning: str = ""
    unit: str = ""
    common: bool = False
    """Whether it is a column of `events`, too; otherwise it is a field of `data`."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of event."""

    meaning: str
    columns: list[Column]


class Flow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a kind of event changes a conserved quantity."""

    kind: str
    field: str
    sign: int


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a branch comes from: it shares its parent's history up to and including `tick`."""

    name: str
    path: str
    """The parent's directory, as seen from the branch's."""
    tick: int
    digest: str
    """The parent's digest at that tick."""
    seq: int
    """The number of the branch's first event of its own."""


class Manifest(msgspec.Struct):
    """What a run says of itself. Holds nothing a reader has to trust: it is validated like any input."""

    name: str
    format: int
    ethnos: str
    scenario: str
    seed: int
    ticks: int
    """How many ticks were asked for."""
    created: datetime
    state: Literal["running", "finished", "stopped"]
    kinds: dict[str, Kind]
    conserved: dict[str, list[Flow]]
    versions: dict[str, str]
    """Versions of the libraries on which draws and bytes depend."""
    reason: str = ""
    """Why it ended, in words."""
    digest: str = ""
    """Digest at its end; empty while it runs."""
    tick: int = -1
    """The last tick at its end."""
    parent: Parent | None = None
    """The run it branched off, if it is a branch."""
    society: str = ""
    """SHA-256 of society.yaml, hex: it is not to be altered."""
    rules: str = ""
    """Digest of all that the scenario declares (see `rules_digest`): another version of it may decide otherwise."""


def runs_folder() -> Path:
    """Where runs live: $ETHNOS_RUNS_DIR, else ./runs."""
    return Path(os.environ.get("ETHNOS_RUNS_DIR") or "runs")


class RunDirectory:
    """The paths and the manifest of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.society = path / "society.yaml"
        self.manifest_path = path / "manifest.json"
        self.wal = path / "wal"
        self.snapshots = path / "snapshots"
        self.contact = path / "contact.json"
        """Address and token of the world-state service while it runs; readable by its owner alone."""

    @classmethod
    def create(cls, path: Path, society: str, manifest: Manifest) -> "RunDirectory":
        """Make a new run. Raises RunExists if the name is taken, SocietyError if it is unfit."""
        if not re.fullmatch(r"\w[\w.\-]{0,99}", manifest.name) or manifest.name != path.name:
            raise SocietyError(f"{manifest.name!r} cannot name a run: use letters, digits, '.', '-' and '_'")
        path.parent.mkdir(parents=True, exist_ok=True)
        run = cls(path)
        try:
            path.mkdir()
        except FileExistsError:
            raise RunExists(f"there is a run named {path.name!r} in {path.parent}; choose another --name") from None
        try:
            for folder in (run.wal, run.snapshots, *(path / t for t in TABLES)):
                folder.mkdir()
            write_durably(run.society, society.encode())
            run.write_manifest(manifest)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise RunError(f"cannot make the run {path}: {error.strerror}") from error
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return run

    @classmethod
    def find(cls, name: str | Path) -> "RunDirectory":
        """The run of that name in the runs folder, or at that path. Raises RunNotFound."""
        for path in (Path(name), runs_folder() / name):
            if (path / "manifest.json").is_file():
                return cls(path)
        raise RunNotFound(f"no run named {str(name)!r} in {runs_folder()}; `ethnos runs` lists them")

    def parts(self, table: str) -> list[Path]:
        """The sealed parts of a table, in order."""
        return sorted((self.path / table).glob("*.parquet"))

    def segments(self) -> list[Path]:
        """The segments of the write-ahead log, in order."""
        return sorted(self.wal.glob("*.arrows"))

    def manifest(self) -> Manifest:
        """Raises RecordDamaged if there is none to be understood."""
        try:
            manifest = msgspec.json.decode(self.manifest_path.read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise RecordDamaged(f"{self.manifest_path} is not a manifest: {error}") from None
        if manifest.format != FORMAT:
            raise RecordDamaged(
                f"run {self.name} has record format {manifest.format}, this version of Ethnos reads {FORMAT}"
            )
        return manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Raises RunError if it cannot be written."""
        try:
            write_durably(self.manifest_path, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        except OSError as error:
            raise RunError(f"cannot write {self.manifest_path}: {error.strerror}") from error

    def finish(self, state: Literal["finished", "stopped"], reason: str, digest: str, tick: int) -> None:
        """Note in the manifest how the run ended."""
        manifest = self.manifest()
        manifest.state, manifest.reason, manifest.digest, manifest.tick = state, reason, digest, tick
        self.write_manifest(manifest)

    def go_on(self) -> None:
        """Note in the manifest that the run has not ended after all."""
        manifest = self.manifest()
        if manifest.state != "running":
            manifest.state, manifest.reason, manifest.digest, manifest.tick = "running", "", "", -1
            self.write_manifest(manifest)

    def check_unaltered(self) -> None:
        """Raises RunError if society.yaml is not what the run was made with."""
        said = self.manifest().society
        if said and sha256(self.society.read_bytes()).hexdigest() != said:
            raise RunError(
                f"{self.society} was altered since run {self.name} was made. Put it back, or branch off: "
                f"ethnos fork {self.name} --at TICK --set KEY=VALUE"
            )

    def state(self) -> State:
        """What the manifest says, and `crashed` if it says `running` but nobody holds the lock."""
        said = self.manifest().state
        return "crashed" if said == "running" and not self.is_locked() else said

    def is_locked(self) -> bool:
        """Whether somebody writes it. Asks without leaving a trace, also where one may only read."""
        try:
            with (self.path / "lock").open("rb") as file:
                return not _locked(file, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer. Raises RunBusy, RunError. The lock goes with the process that holds it."""
        with _opened(self.path / "lock") as file:
            for wait in (0, 0.02, 0.1, 0.2):  # `is_locked`, elsewhere, may hold it for a moment
                time.sleep(wait)
                if _locked(file, fcntl.LOCK_EX):
                    break
            else:
                raise RunBusy(f"run {self.name} is being written by another process")
            yield


def _opened(path: Path) -> BinaryIO:
    """A file to write to. Raises RunError if that cannot be, such as on a read-only disk."""
    try:
        return path.open("ab")
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def _locked(file: BinaryIO, how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lineage(run: RunDirectory) -> list[tuple[RunDirectory, int | None]]:
    """The run and those it branched off, the eldest first, each with the last of its ticks that counts for `run`.

    None: all of them. Raises RecordDamaged if a parent is not where it was.
    """
    found: list[tuple[RunDirectory, int | None]] = [(run, None)]
    while (parent := found[0][0].manifest().parent) is not None:
        branch, until = found[0]
        elder = RunDirectory(Path(os.path.normpath(branch.path.resolve() / parent.path)))
        if not elder.manifest_path.is_file():
            raise RecordDamaged(f"run {branch.name} branched off {parent.name!r}, which is not at {elder.path}")
        if any(elder.path == known.path.resolve() for known, _ in found):
            raise RecordDamaged(f"run {branch.name} claims to have branched off itself")
        found.insert(0, (elder, parent.tick if until is None else min(parent.tick, until)))
    return found


def all_runs() -> list[RunDirectory]:
    """The runs in the runs folder, by name."""
    return [RunDirectory(path.parent) for path in sorted(runs_folder().glob("*/manifest.json"))]


def find_all(names: Iterable[str]) -> list[RunDirectory]:
    """The runs of these names; `exp*` stands for all in the runs folder that fit. Raises RunNotFound."""
    found: dict[Path, RunDirectory] = {}
    for name in names:
        for run in _matching(name):
            found.setdefault(run.path.resolve(), run)
    return list(found.values())


def _matching(name: str) -> list[RunDirectory]:
    if not is_pattern(name) or (Path(name) / "manifest.json").is_file():
        return [RunDirectory.find(name)]
    runs = [run for run in all_runs() if fnmatchcase(run.name, name)]
    if not runs:
        raise RunNotFound(f"no run in {runs_folder()} fits {name!r}; `ethnos runs` lists them")
    return runs


def is_pattern(name: str) -> bool:
    """Whether it stands for all runs that fit it."""
    return any(c in name for c in "*?[")


def next_name(stem: str) -> str:
    """`<stem>-<n>` with the first number above those that are taken."""
    stem = re.sub(r"[^\w.\-]+", "-", stem).strip(".-")[:80] or "run"
    pattern = re.compile(re.escape(stem) + r"-(\d{1,9})")
    folder = runs_folder()
    taken = (pattern.fullmatch(path.name) for path in folder.iterdir()) if folder.is_dir() else ()
    return f"{stem}-{max((int(m[1]) for m in taken if m), default=0) + 1}"


def write_durably(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a whole file: readers see the old one or the new one, also after a crash."""
    aside = path.with_name(f".{path.name}.aside")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    put_in_place(aside, path)


def put_in_place(aside: Path, path: Path) -> None:
    """Rename a finished, fsynced file to its name, and make the name durable."""
    aside.rename(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def now() -> datetime:
    """The wall clock: for provenance only, never in anything a digest covers."""
    return datetime.now(UTC)

"""This machine: versions, disk, clock, open files, memory."""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from statistics import median

import psutil
from packaging.requirements import Requirement

from ethnos.doctor.finding import Finding, notice, ok, problem
from ethnos.doctor.need import Need
from ethnos.society import Society

SYNCS = 20
SLOW_SYNC_MS = 20.0
"""A tick waits for one write to reach the disk."""
HOPELESS_SYNC_MS = 500.0
LEAST_FREE = 2 * 2**30
LEAST_FREE_INODES = 10_000
MAX_SKEW_S = 2.0
BUILT = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock that goes right shows an earlier time."""
LONGEST_SOCKET_PATH = 107
RAY_SOCKET = "/ethnos-ray-XXXXXXXX/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store"
_IN_MEMORY = {"tmpfs", "ramfs"}
_OF_THE_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"}


def versions(society: Society | None) -> Iterator[Finding]:
    """Whether what Ethnos was installed with is there, and in versions that it takes."""
    wrong = [w for text in requires("ethnos") or () if (w := _unmet(Requirement(text), society))]
    python = ".".join(map(str, sys.version_info[:3]))
    for text in wrong:
        yield problem(
            "versions",
            text,
            "a run fails where that is used, or comes out otherwise elsewhere",
            "make a fresh environment: pip install -c constraints.txt ethnos",
        )
    if not wrong:
        yield ok("versions", f"Ethnos {version('ethnos')}, Python {python}, Ray {version('ray')}")


def _unmet(wanted: Requirement, society: Society | None) -> str:
    """What is wrong with a requirement; empty if nothing, or if it is one of an extra that is not needed."""
    kinds = {spec.kind for specs in society.models.values() for spec in specs} if society else set[str]()
    if wanted.marker and not any(wanted.marker.evaluate({"extra": e}) for e in ("", *kinds)):
        return ""
    try:
        there = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is not installed"
    if wanted.specifier.contains(there, prereleases=True):
        return ""
    return f"{wanted.name} is {there}, wanted is {wanted.specifier}"


def disk(folder: Path, need: Need) -> Iterator[Finding]:
    """Whether runs can be written, last, fit, and how long a commit takes."""
    place = _existing(folder)
    if not os.access(place, os.W_OK | os.X_OK):
        yield problem(
            "disk",
            f"{place} cannot be written by this user",
            "no run can be made",
            "choose another place with ETHNOS_RUNS_DIR, or mend its permissions",
        )
        return
    yield _kind_of_disk(place)
    yield _space(place, need)
    yield _speed(place)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that there is."""
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.is_dir())


def _kind_of_disk(place: Path) -> Finding:
    kind = filesystem(place)
    if kind in _IN_MEMORY:
        return problem(
            "disk",
            f"{place} is on {kind}, which is memory",
            "runs are lost when the machine restarts, and eat the memory that agents need",
            "put ETHNOS_RUNS_DIR on a disk",
        )
    if kind in _OF_THE_NETWORK:
        return notice(
            "disk",
            f"{place} is on {kind}",
            "each tick waits for the network, and locks may not hold between machines",
            "keep runs on a local disk and let sealed parts be copied: docs/deploy/storage.md",
        )
    return ok("disk", f"{place} is on {kind or 'an unknown filesystem'}")


def filesystem(place: Path) -> str:
    """The kind of filesystem a folder is on; empty if that cannot be told."""
    mounts = {Path(p.mountpoint): p.fstype for p in psutil.disk_partitions(all=True)}
    resolved = place.resolve()
    return next((mounts[p] for p in (resolved, *resolved.parents) if p in mounts), "")


def _space(place: Path, need: Need) -> Finding:
    left = os.statvfs(place)
    free, inodes = left.f_bavail * left.f_frsize, left.f_favail
    wanted = max(LEAST_FREE, need.disk_bytes)
    found = f"{free / 2**30:.1f} GiB free in {place}"
    if free < wanted or (left.f_files and inodes < LEAST_FREE_INODES):
        return problem(
            "disk",
            f"{found}, {inodes} files more; this wants about {wanted / 2**30:.1f} GiB",
            "the run stops when the disk is full (it can be resumed then)",
            "free some space, or put ETHNOS_RUNS_DIR elsewhere",
        )
    return ok("disk", found)


def _speed(place: Path) -> Finding:
    took = sync_ms(place)
    found = f"a commit of 1 KB takes {took:.1f} ms"
    if took > HOPELESS_SYNC_MS:
        return problem("disk", found, "ticks wait for the disk longer than for anything else", "take another disk")
    if took > SLOW_SYNC_MS:
        return notice("disk", found, "each tick is that much longer", "take a local disk, best an SSD")
    return ok("disk", found)


def sync_ms(place: Path) -> float:
    """Median time until a small write is on disk, in ms."""
    times = []
    with tempfile.TemporaryFile(dir=place) as file:
        for _ in range(SYNCS):
            start = time.perf_counter()
            file.write(bytes(1024))
            file.flush()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1000)
    return median(times)


def clock(folder: Path) -> Iterator[Finding]:
    """Whether this machine's clock can be right, and agrees with the disk's."""
    place, now = _existing(folder), datetime.now(UTC)
    if now < BUILT:
        yield problem(
            "clock",
            f"it shows {now:%Y-%m-%d %H:%M}",
            "certificates are refused as not valid yet, and the record's times are wrong",
            "set the clock, best by NTP",
        )
        return
    with tempfile.NamedTemporaryFile(dir=place) as file:
        skew = Path(file.name).stat().st_mtime - datetime.now(UTC).timestamp()
    if abs(skew) > MAX_SKEW_S:
        yield notice(
            "clock",
            f"the disk under {place} is {skew:+.1f} s off",
            "times on the record and of files contradict each other",
            "keep both machines' clocks by NTP",
        )
    else:
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC, as on the disk")


def open_files(need: Need) -> Iterator[Finding]:
    """Whether this process and its children may open as many files and make as many processes as they will."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = float("inf") if soft == resource.RLIM_INFINITY else soft
    if limit < need.files:
        yield problem(
            "files",
            f"{soft} open files are allowed (at most {hard}), about {need.files} will be wanted",
            "actors and connections fail with 'too many open files' in the middle of a run",
            "ulimit -n 65536 before the start, or LimitNOFILE, or ulimits in the container",
        )
    else:
        yield ok("files", f"{soft} open files are allowed")
    yield from _processes(need)


THREADS_PER_ACTOR = 25


def _processes(need: Need) -> Iterator[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    wanted = 500 + THREADS_PER_ACTOR * need.actors
    group = _number(Path("/sys/fs/cgroup/pids.max"))
    limits = [n for n in (None if soft == resource.RLIM_INFINITY else soft, group) if n is not None]
    if limits and min(limits) < wanted:
        yield problem(
            "files",
            f"{min(limits)} processes and threads are allowed, about {wanted} will be wanted",
            "actors fail to start: 'resource temporarily unavailable'",
            "ulimit -u, TasksMax or the container's pids limit; or more agents to an actor",
        )


def memory(need: Need) -> Iterator[Finding]:
    """Whether the agents' processes fit."""
    free_mb = psutil.virtual_memory().available // 2**20
    cage = _number(Path("/sys/fs/cgroup/memory.max"))
    if cage is not None:
        used = _number(Path("/sys/fs/cgroup/memory.current")) or 0
        free_mb = min(free_mb, (cage - used) // 2**20)
    wanted = 1024 + need.memory_mb
    if free_mb < wanted:
        yield problem(
            "memory",
            f"{free_mb:,} MB are free, about {wanted:,} MB will be wanted",
            "Ray or the kernel kills processes; the run goes on, slower and slower",
            "agents_per_actor: auto, or a larger number; or more nodes",
        )
    else:
        yield ok("memory", f"{free_mb:,} MB are free, about {wanted:,} MB will be wanted")


def temporary() -> Iterator[Finding]:
    """Whether Ray can put its sockets into the folder for temporary files."""
    folder = tempfile.gettempdir()
    length = len(folder + RAY_SOCKET)
    if length > LONGEST_SOCKET_PATH:
        yield problem(
            "ray",
            f"the folder for temporary files has a long name: {folder}",
            f"Ray's sockets would have names of {length} bytes, {LONGEST_SOCKET_PATH} are possible: it does not start",
            "TMPDIR=/tmp",
        )


def _number(path: Path) -> int | None:
    """The number in a file of the kernel's; None if there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None

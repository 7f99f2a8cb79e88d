"""Copies of a run elsewhere: on any filesystem that pyarrow or fsspec reaches, such as s3://bucket/runs.

The log stays on the world's own disk; what is sealed never changes again and is copied as it is sealed. So a copy is
the run as of some tick, and can be read, resumed and branched like any other once it is fetched back.

What is lost with what: a process, a node that comes back: nothing. The world's disk: the ticks since the last part was
sealed. The remote place: nothing, as long as the disk is there. Both: the run.
"""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from ethnos.errors import RunError, RunExists
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.record.schema import TABLES

_log = logging.getLogger("ethnos.replica")

PLACE = "ETHNOS_REPLICA"
"""The environment variable that names where copies go. Keys are where the store's own client looks for them."""
ATTEMPTS = 4
FIRST_WAIT_S = 0.5
CHUNK = 4 * 2**20
_ORDER = (*TABLES, "snapshots", "annotations", "health")
"""`ticks` last among the tables: whoever finds a tick there finds the rest of it."""


class Replica:
    """The copy of one run below a place."""

    def __init__(self, place: str, name: str) -> None:
        """Raises RunError if there is no such kind of place."""
        self._fs, root = filesystem(place)
        self._root = f"{root.rstrip('/')}/{name}"
        self.uri = f"{place.rstrip('/')}/{name}"

    def push(self, run: RunDirectory) -> int:
        """Copy what is not there yet; returns how many files. Raises RunError if the place does not take it."""
        try:
            there = self._sizes()
            done = sum(self._put(path, name) for path, name in _lasting(run) if there.get(name) != path.stat().st_size)
            for path in (run.society, run.manifest_path):
                done += self._put(path, path.name)
            return done
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{self.uri} does not take a copy of run {run.name}: {error}") from None

    def fetch(self, path: Path) -> RunDirectory:
        """Bring the copy to a folder that is not there yet. Raises RunExists, RunError."""
        if path.exists():
            raise RunExists(f"there is a run at {path} already")
        aside = path.with_name(f".{path.name}.fetching")
        try:
            names = self._sizes()
            if "manifest.json" not in names:
                raise RunError(f"there is no run at {self.uri}")
            for name in sorted(names):
                self._get(name, _inside(aside, name))
            aside.rename(path)
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{self.uri} cannot be fetched: {error}") from None
        return RunDirectory(path)

    def _sizes(self) -> dict[str, int]:
        """What is there, by its name inside the run."""
        chosen = pafs.FileSelector(self._root, recursive=True, allow_not_found=True)
        cut = len(self._root.strip("/")) + 1
        infos = self._fs.get_file_info(chosen)
        return {i.path.strip("/")[cut:]: i.size for i in infos if i.type == pafs.FileType.File}

    def _put(self, path: Path, name: str) -> int:
        for attempt in range(ATTEMPTS):
            try:
                self._put_once(path, f"{self._root}/{name}")
                return 1
            except (OSError, pa.ArrowException):
                if attempt + 1 == ATTEMPTS:
                    raise
                time.sleep(FIRST_WAIT_S * 2**attempt)
        return 0

    def _put_once(self, path: Path, where: str) -> None:
        """Object stores show a file when it is whole; elsewhere it is written aside and renamed."""
        whole = isinstance(self._fs, pafs.S3FileSystem | pafs.GcsFileSystem)
        aside = where if whole else f"{where}.aside"
        if not whole:
            self._fs.create_dir(where.rpartition("/")[0], recursive=True)
        with path.open("rb") as source, self._fs.open_output_stream(aside) as target:
            while data := source.read(CHUNK):
                target.write(data)
        if not whole:
            self._fs.move(aside, where)

    def _get(self, name: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._fs.open_input_stream(f"{self._root}/{name}") as source:
            write_durably(path, source.read())


def _lasting(run: RunDirectory) -> Iterator[tuple[Path, str]]:
    """Files that never change once they are there, with their names inside the run, in the order to copy them in."""
    for folder in _ORDER:
        for path in sorted((run.path / folder).glob("*")):
            if path.is_file() and not path.name.startswith(".") and path.suffix != ".aside":
                yield path, f"{folder}/{path.name}"


def _inside(folder: Path, name: str) -> Path:
    """Names come from elsewhere: none may lead out. Raises RunError."""
    path = Path(os.path.normpath(folder / name))
    if folder not in path.parents:
        raise RunError(f"a file called {name!r} is no part of a run")
    return path


def filesystem(place: str) -> tuple[pafs.FileSystem, str]:
    """The filesystem of a place and the path in it; what pyarrow does not know is left to fsspec. Raises RunError."""
    try:
        if "://" not in place:
            return pafs.LocalFileSystem(), str(Path(place).absolute())
        if (endpoint := os.environ.get("AWS_ENDPOINT_URL")) and place.startswith("s3://"):
            parts = urlsplit(endpoint)
            return pafs.S3FileSystem(endpoint_override=parts.netloc, scheme=parts.scheme), place.removeprefix("s3://")
        fs, path = pafs.FileSystem.from_uri(place)
        return fs, path
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, ValueError) as error:
        if (found := _by_fsspec(place)) is not None:
            return found
        raise RunError(f"no filesystem is known for {place}: {error}") from None


def _by_fsspec(place: str) -> tuple[pafs.FileSystem, str] | None:
    try:
        import fsspec

        fs, path = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError):
        return None
    return pafs.PyFileSystem(pafs.FSSpecHandler(fs)), path


def replica_of(run: RunDirectory) -> Replica | None:
    """Where the environment wants a copy of a run; None if it does not."""
    place = os.environ.get(PLACE)
    return Replica(place, run.name) if place else None


__all__ = ["PLACE", "Replica", "filesystem", "replica_of"]

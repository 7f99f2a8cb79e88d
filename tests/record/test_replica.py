"""Copies of runs on a real S3-compatible server and in folders: pushed as they are sealed, fetched, gone on with."""

import asyncio
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from moto.server import ThreadedMotoServer
from typer.testing import CliRunner

from ethnos.actors.here import Here, run_here
from ethnos.cli.app import app
from ethnos.errors import RunError, RunExists
from ethnos.record import log as log_module
from ethnos.record import replica as module
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.replica import Replica, filesystem
from ethnos.record.verify import verify
from ethnos.run import create
from ethnos.world.clock import Clock
from tests.tiny import make_run, no_model, orchard

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"http://{host}:{port}"
    moto.stop()


@pytest.fixture(params=["s3", "folder", "fsspec"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: str) -> str:
    if request.param == "folder":
        return str(tmp_path / "copies")
    if request.param == "fsspec":
        pytest.importorskip("fsspec")
        return f"memory://{tmp_path.name}"
    for name, value in (
        ("AWS_ENDPOINT_URL", server),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    parts = server.removeprefix("http://")
    bucket = tmp_path.name.replace("_", "-")[-40:].strip("-")
    pafs.S3FileSystem(endpoint_override=parts, scheme="http", allow_bucket_creation=True).create_dir(bucket)
    return f"s3://{bucket}/some/folder"


def test_a_copy_is_the_run(place: str, tmp_path: Path) -> None:
    made = make_run("copied").run
    copy = Replica(place, "copied")
    assert copy.push(made) == 5
    assert copy.push(made) == 2, "only what changes goes again"
    back = copy.fetch(tmp_path / "copied")
    found = verify(back)
    assert found.ok
    assert found.digest == made.manifest().digest
    with pytest.raises(RunExists):
        copy.fetch(tmp_path / "copied")


def test_a_disk_that_is_lost_costs_what_was_not_sealed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts go out as they are sealed; the copy goes on to the same end."""
    monkeypatch.setenv(module.PLACE, place)
    monkeypatch.setattr(log_module, "SEAL_TICKS", 5)
    society = orchard(30)
    run = create(society, "lost")
    with Log(run) as log:
        clock = Clock(society, log)
        clock.recover()
        here = Here(clock, society, no_model)
        for _ in range(17):
            asyncio.run(clock.tick(here))
    shutil.rmtree(run.path)
    done = CliRunner().invoke(app, ["copy", "lost", place, "--back"])
    assert done.exit_code == 0, done.output
    back = RunDirectory.find("lost")
    assert back.state() == "crashed"
    assert int(back.parts("ticks")[-1].stem.split("-")[1]) == 14
    run_here(back)
    elsewhere = create(society, "elsewhere")
    monkeypatch.delenv(module.PLACE)
    run_here(elsewhere)
    assert back.manifest().digest == elsewhere.manifest().digest


def test_a_place_that_is_away_costs_the_run_nothing(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(module.PLACE, str(tmp_path / "file" / "copies"))
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(logging.getLogger("ethnos"), "propagate", True)
    run = create(orchard(10), "alone")
    run_here(run)
    assert verify(run).ok
    assert any("does not take a copy" in r.getMessage() for r in caplog.records)


def test_places_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no filesystem"):
        filesystem("nowhere://x")
    with pytest.raises(RunError, match="there is no run"):
        Replica(str(tmp_path), "nobody").fetch(tmp_path / "x")


def test_a_copy_cannot_write_outside_of_its_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no part of a run"):
        module._inside(tmp_path / "run", "../../etc/passwd")
    assert module._inside(tmp_path / "run", "events/a.parquet") == tmp_path / "run" / "events" / "a.parquet"

"""A world of one's own: written by a command, installed as a package, found, run and validated."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ethnos.errors import SocietyError
from ethnos.starting import start_world


def ask(place: Path, *words: str) -> Any:
    command = [sys.executable, "-c", "from ethnos.cli import main; main()", *words, "--json"]
    return json.loads(within(place, command).stdout)


def within(place: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(place), "ETHNOS_RUNS_DIR": str(place / "runs")}
    done = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of a new world."""
    return start_world("bank_run", tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def place(home: Path) -> Path:
    """Where it is installed, by pip."""
    place = home.parent / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    within(home, [*pip, "--target", str(place), str(home)])
    return place


def test_a_new_world_works_before_anything_in_it_is_changed(home: Path, place: Path) -> None:
    told = ask(place, "validate", "bank_run")
    assert told["ok"] and told["validations"][0]["world"] == "bank_run"
    shipped = "from ethnos.society import shipped_societies; print(*shipped_societies())"
    assert "bank_run" in within(place, [sys.executable, "-c", shipped]).stdout.split(), "what the dashboard offers"
    within(place, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(home / "tests")])


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_new_world_runs_by_its_name(place: Path) -> None:
    told = ask(place, "run", "bank_run", "--ticks", "5", "--name", "mine")
    assert told["tick"] == 5 and told["decisions"] == 25


@pytest.mark.parametrize("name", ["terra", "json", "Upper", "two words", "class", "../up", "naïve", ""])
def test_names_that_will_not_do_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SocietyError, match="cannot name a world|taken"):
        start_world(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    start_world("mine", tmp_path)
    with pytest.raises(SocietyError, match="is there already"):
        start_world("mine", tmp_path)

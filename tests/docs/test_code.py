"""Every block of code in the documentation runs, and prints what it is said to print, as far as that can last."""

import json
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ethnos
from ethnos.actors import cluster, here
from ethnos.cli.app import app
from ethnos.record.reader import connect, query
from ethnos.testing import check_scenario
from tests.docs.pages import PAGES, ROOT, Block, Typed, all_blocks, blocks, typed

EXAMPLES = ROOT / "examples"
PYTHON = [p for p in PAGES if blocks(p, "python")]
CONSOLE = [p for p in PAGES if "$ ethnos" in p.read_text("utf-8")]


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with the run that the pages speak of."""
    folder = tmp_path_factory.mktemp("docs") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHNOS_RUNS_DIR", str(folder))
        ethnos.run_here(ethnos.load_society("terra", ["ticks=40"]), name="first")
    return folder


@pytest.fixture
def reader(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody who has that run and follows the pages from the root of a clone."""
    monkeypatch.setenv("ETHNOS_RUNS_DIR", str(home))
    monkeypatch.chdir(ROOT)
    yield
    sys.modules.pop("el_farol", None)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", PYTHON, ids=ids)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page, one after the other in one module."""
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks(page, "python"):
        exec(compile(block.text, str(block), "exec"), module.__dict__)  # noqa: S102 - our own pages


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("block", all_blocks("sql"), ids=str)
def test_sql_runs(block: Block) -> None:
    several = block.text.startswith("SELECT run,")
    with connect(ethnos.RunDirectory.find("first"), run_column=several) as con:
        query(con, block.text.rstrip().rstrip(";"))


@pytest.mark.parametrize("page", CONSOLE, ids=ids)
def test_commands_run(page: Path, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a page, one after the other, in this process instead of on Ray: the record is the same."""
    monkeypatch.setattr(cluster, "run_on_ray", lambda run, on_status=None, stop=None: here.run_here(run))
    monkeypatch.chdir(ROOT)
    for block in blocks(page, "console"):
        for command in typed(block):
            if command.words[0] == "cd":
                monkeypatch.chdir(command.words[1])
            elif command.words[0] == "ethnos":
                _check(command, block)
    sys.modules.pop("el_farol", None)


def _check(command: Typed, block: Block) -> None:
    result = CliRunner().invoke(app, command.words[1:])
    assert result.exit_code == 0, f"{block}: {command.words}: {result.output} {result.exception}"
    said = [line for line in command.prints if line.strip()]
    printed = [line for line in result.stdout.splitlines() if line.strip()]
    if said and command.words[1] == "sql":
        assert said[0].split() == printed[0].split(), f"{block}: other columns"
    elif said:
        assert _names(said) <= _names(printed), f"{block}: other facts"


def _names(lines: list[str]) -> set[str]:
    """What facts are called, in lines of a name and a value."""
    return {line.split("  ")[0] for line in lines}


def test_the_scenario_in_one_file_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    check_scenario(runpy.run_path(str(EXAMPLES / "el_farol.py"), run_name="el_farol_example")["ElFarol"])


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_the_scenario_in_one_file_runs_on_ray(runs: Path) -> None:
    """A Ray of its own, started where the file is, as a reader would."""
    command = [sys.executable, "-c", "from ethnos.cli import main; main()", "run", "el-farol.yaml", "--ticks", "5"]
    done = subprocess.run([*command, "--json"], cwd=EXAMPLES, env={**os.environ}, capture_output=True, timeout=800)
    assert done.returncode == 0, done.stderr.decode()
    summary: dict[str, Any] = json.loads(done.stdout)
    assert (summary["tick"], summary["decisions"]) == (5, 500)


def test_the_sweep_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHNOS_RUNS_DIR", "replaced by the example")
    runpy.run_path(str(EXAMPLES / "sweep.py"))


def test_the_picture_in_the_readme_can_be_made(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "readme-picture", tmp_path / "a.svg"], timeout=60)
    assert done.returncode == 0
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<svg")

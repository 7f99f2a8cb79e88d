"""What the documentation names is there."""

import re
from pathlib import Path

import pytest
import yaml

import ethnos
from ethnos.cli.app import app
from tests.docs.pages import PAGES, ROOT, all_blocks, typed

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = (
    "actors/",
    "analytics/",
    "bench/",
    "deploy/",
    "docs/",
    "examples/",
    "protos/",
    "scripts/",
    "societies/",
    "src/",
    "tests/",
    "world/",
)

PUBLIC = [
    "Agent",
    "Cohort",
    "Decision",
    "EthnosError",
    "Event",
    "Flow",
    "Meta",
    "Mind",
    "News",
    "Params",
    "Refused",
    "RunDirectory",
    "Scenario",
    "Society",
    "Tick",
    "Turn",
    "load_society",
    "open_run",
    "resume",
    "run",
    "run_here",
]


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t.partition("#")[0] for t in LINK.findall(page.read_text("utf-8")) if "://" not in t]
    assert not [t for t in targets if t and not (page.parent / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_paths_are_those_of_the_repository(page: Path) -> None:
    named = [c for c in CODE.findall(page.read_text("utf-8")) if c.startswith(FOLDERS) and re.fullmatch(r"[\w./-]+", c)]
    made = {"bench/society.json"}
    assert not [c for c in named if c not in made and not (ROOT / c).exists()]


def test_public_names() -> None:
    """Public means listed: a change here is a change for users, and belongs in CHANGELOG.md."""
    assert ethnos.__all__ == PUBLIC
    assert all(hasattr(ethnos, name) for name in PUBLIC)


def command_names() -> set[str]:
    groups = {g.name or "" for g in app.registered_groups}
    return groups | {c.name or c.callback.__name__ for c in app.registered_commands if c.callback and not c.hidden}


def test_the_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    table = "\n".join(line.split("|")[1] for line in readme.splitlines() if line.startswith("| `ethnos "))
    listed = {code.removeprefix("ethnos ").split()[0] for code in CODE.findall(table)}
    assert listed == command_names()


def test_every_target_of_make_exists() -> None:
    made = {c.words[1] for b in all_blocks("console") for c in typed(b) if c.words[0] == "make"}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert made <= targets


def test_the_example_in_the_readme_is_the_file() -> None:
    example = (ROOT / "examples" / "el_farol.py").read_text("utf-8")
    assert example in [b.text for b in all_blocks("python")]


def test_yaml_is_yaml() -> None:
    for block in all_blocks("yaml"):
        assert isinstance(yaml.safe_load(block.text), dict), block

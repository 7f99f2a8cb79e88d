"""A world to begin with: a small package that runs, is tested and is validated before anything in it is changed."""

import keyword
import sys
from importlib import resources
from pathlib import Path

from ethnos.errors import SocietyError
from ethnos.world.scenarios import known

FILES = {
    "pyproject.txt": "pyproject.toml",
    "world.txt": "{name}/__init__.py",
    "truths.txt": "{name}/truths.py",
    "society.txt": "{name}/societies/{name}.yaml",
    "test.txt": "tests/test_{name}.py",
}
"""Templates in `ethnos/template`, and where each goes."""


def start_world(name: str, folder: Path) -> Path:
    """Write the package `name` into `folder`, and return its path. Raises SocietyError; overwrites nothing."""
    _check_name(name)
    home = folder / name
    if home.exists():
        raise SocietyError(f"{home} is there already")
    for template, place in FILES.items():
        path = home / place.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_filled(template, name), "utf-8")
    return home


def _check_name(name: str) -> None:
    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        raise SocietyError(f"{name!r} cannot name a world: use small letters, digits and _, as in bank_run")
    if name in known() or name in sys.stdlib_module_names or name == "ethnos":
        raise SocietyError(f"the name {name!r} is taken")


def _filled(template: str, name: str) -> str:
    text = (resources.files("ethnos") / "template" / template).read_text("utf-8")
    title = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("@name@", name).replace("@Title@", title)


__all__ = ["start_world"]

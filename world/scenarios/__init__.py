"""The worlds, each in a module or a package of its own, prose first."""

import importlib
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ethnos.errors import SocietyError
from ethnos.world.scenario import Scenario

BUILT_IN = {
    "chain": "ethnos.world.scenarios.chain:TransmissionChain",
    "commons": "ethnos.world.scenarios.commons:Commons",
    "donor": "ethnos.world.scenarios.donor:DonorGame",
    "terra": "ethnos.world.scenarios.terra:Terra",
}
"""The worlds that come with Ethnos, by name."""

GROUP = "ethnos.worlds"
"""The group of entry points by which an installed package offers worlds of its own: `name = "module:Class"`."""

_NEEDED = ("State", "Observation", "actions", "neutral", "minds")
"""What a scenario has to declare, beside its methods."""


def known() -> dict[str, str]:
    """Where each world is that can be named: those that come with Ethnos, and those of installed packages."""
    offered = {e.name: e.value for e in sorted(entry_points(group=GROUP)) if e.name not in BUILT_IN}
    return BUILT_IN | offered


def society_folders() -> Iterator[Path]:
    """Where installed packages that offer worlds keep society files: `societies/` in the module's own folder."""
    for name, where in known().items():
        module = where.partition(":")[0]
        if name not in BUILT_IN and (found := find_spec(module.partition(".")[0])) and found.submodule_search_locations:
            yield from (Path(place) / "societies" for place in found.submodule_search_locations)


def find(name: str) -> type[Scenario[Any, Any]]:
    """The scenario called `name`: one that is `known`, or `module:Class` on the path or in the current folder.

    >>> find("terra").__name__
    'Terra'
    """
    where = BUILT_IN.get(name) or known().get(name, name)
    module, colon, attribute = where.partition(":")
    if not colon:
        raise SocietyError(f"no scenario {name!r}{_hint(name, list(known()))}; or give module:Class")
    found: Any = getattr(_module(module, name), attribute, None)
    if not _is_scenario(found):
        raise SocietyError(f"{module} has no scenario {attribute!r}{_near(module, attribute)}")
    missing = [n for n in _NEEDED if not hasattr(found, n)] + sorted(found.__abstractmethods__)
    if missing:
        raise SocietyError(f"scenario {name!r} does not say what its {', '.join(missing)} are; see docs/scenarios.md")
    return found  # type: ignore[no-any-return]


def _is_scenario(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Scenario) and thing is not Scenario


def _module(module: str, name: str) -> Any:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SocietyError(f"scenario {name!r}: {error}") from error
    except (Exception, SystemExit) as error:
        raise SocietyError(f"scenario {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        if added:
            sys.path.remove(here)


def _near(module: str, attribute: str) -> str:
    return _hint(attribute, [n for n, v in vars(sys.modules[module]).items() if _is_scenario(v)])


def _hint(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f", did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}" if known else ""

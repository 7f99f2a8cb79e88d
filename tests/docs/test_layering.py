"""Dependencies point downwards only, as docs/architecture.md says, and one module speaks of Ray."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ethnos"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("dashboard",),
    (
        "run",
        "fork",
        "sweep",
        "replay",
        "control",
        "importers",
        "testing",
        "conformance",
        "validation",
        "starting",
        "world.truths",
        "background",
        "interview",
        "anthropologist",
        "parameters",
        "seat",
        "views",
        "doctor",
        "certificates",
    ),
    ("actors.cluster", "actors.here", "actors.thinking"),
    ("actors.host",),
    ("actors.minds",),
    ("actors.inference",),
    ("analytics",),
    ("world.service",),
    ("world.clock", "world.outside"),
    ("world.vitals", "world.hosts", "world.edge", "world.gate", "world.scheduler", "world.rebuild"),
    ("society", "models"),
    ("record",),
    ("world.world",),
    ("world.scenarios",),
    ("world.spec",),
    ("world.contacts", "world.feed"),
    ("world.graph", "world.texts", "world.ledger", "world.sharing", "world.pairing", "world.orders"),
    ("world.scenario",),
    ("world.events", "world.turn", "world.prose", "world.interventions", "world.limits"),
    ("engines",),
    ("transport", "rights", "meters", "logs", "traces"),
    ("chance", "errors", "wire"),
)
"""From the top down; modules in one row may use each other. A name stands for all modules below it."""

EXCEPTIONS = {"society": ("actors.minds",)}
"""A society file's check makes each mind once to see whether it can be made."""

PURE = (
    "world.world",
    "world.spec",
    "world.scenario",
    "world.scenarios",
    "world.events",
    "world.turn",
    "world.graph",
    "world.contacts",
    "world.feed",
    "world.texts",
    "world.ledger",
    "world.sharing",
    "world.pairing",
    "world.orders",
    "chance",
)
"""What the same decisions must always give the same results in: plain functions over plain data."""
IMPURE = {"asyncio", "grpc", "os", "pickle", "random", "secrets", "socket", "threading", "time", "uuid"}


def modules() -> dict[str, Path]:
    paths = [p for p in SOURCE.rglob("*.py") if "wire" not in p.parts]
    for link in SOURCE.iterdir():
        if link.is_symlink() and link.is_dir():
            paths += [SOURCE / link.name / p.relative_to(link.resolve()) for p in link.resolve().rglob("*.py")]
    named = {".".join(p.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): p for p in paths}
    return {name: path for name, path in named.items() if name != "__init__"}


def imports(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in a file, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names)


def layer(module: str) -> int | None:
    """The number of the layer a module is in, from the top; the longest name that fits counts."""
    fits = [(len(n), i) for i, names in enumerate(LAYERS) for n in names if module == n or module.startswith(f"{n}.")]
    return max(fits)[1] if fits else None


MODULES = modules()


def test_every_module_has_its_place() -> None:
    lost = [m for m in MODULES if layer(m) is None and m not in ("actors", "world", "analytics")]
    assert not lost, f"say in LAYERS, and in docs/architecture.md, where these belong: {lost}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_dependencies_point_downwards(module: str) -> None:
    mine = layer(module)
    used = (i.removeprefix("ethnos.") for i in imports(MODULES[module]) if i.startswith("ethnos."))
    upward = [u for u in used if mine is not None and (theirs := layer(u)) is not None and theirs < mine]
    assert not [u for u in upward if not u.startswith(EXCEPTIONS.get(module, ()))]


def test_one_module_speaks_of_ray() -> None:
    speaking = [m for m, p in MODULES.items() if any(i.split(".")[0] == "ray" for i in imports(p))]
    assert speaking == ["actors.cluster"]


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if any(m == p or m.startswith(f"{p}.") for p in PURE)])
def test_worlds_know_no_clock_and_no_machine(module: str) -> None:
    assert not IMPURE & {i.split(".")[0] for i in imports(MODULES[module])}


def test_analytics_reads_the_record_and_no_more() -> None:
    read = {i for m, p in MODULES.items() if m.startswith("analytics.") for i in imports(p) if i.startswith("ethnos.")}
    assert all(i.startswith(("ethnos.analytics", "ethnos.record", "ethnos.errors")) for i in read), read

"""What the platform promises, held against every world there is; a new one is found by itself."""

from pathlib import Path

import pytest

from ethnos.conformance import CHECKS, Specimen, specimen
from ethnos.run import run
from ethnos.world.scenarios import known

WORLDS = sorted(known())


@pytest.fixture(scope="module")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Specimen]:
    """One undisturbed run of each world."""
    return {world: specimen(world, tmp_path_factory.mktemp(world)) for world in WORLDS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("world", WORLDS)
def test_every_world_keeps_every_promise(world: str, check: object, specimens: dict[str, Specimen]) -> None:
    assert callable(check)
    check(specimens[world])


@pytest.mark.ray
@pytest.mark.usefixtures("ray", "runs")
@pytest.mark.parametrize("agents_per_actor", [3, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("world", [w for w in WORLDS if w != "terra"])  # tests/cluster packs Terra in three ways
def test_where_agents_live_changes_nothing(
    world: str, agents_per_actor: int, specimens: dict[str, Specimen], tmp_path: Path
) -> None:
    given = specimens[world]
    packed = given.society.model_copy(update={"agents_per_actor": agents_per_actor})
    assert run(packed, name="packed").manifest().digest == given.digest

"""What all tests share: a runs folder of their own, and one Ray for the whole session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

SOCIETY = """
scenario: terra
seed: 7
ticks: 40
population:
  - cohort: beings
    count: 10
    mind: forager
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty runs folder that the code under test uses."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("ETHNOS_RUNS_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def ray() -> Iterator[None]:
    """One Ray cluster of our own; starting it takes seconds."""
    from ethnos.actors.cluster import ray_session

    with ray_session():
        yield

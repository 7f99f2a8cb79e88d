"""Runs for pages to show."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

import ethnos


@pytest.fixture(autouse=True)
def same_main() -> Iterator[None]:
    """Streamlit makes each script that it runs the main module, which processes started later would run again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="package")
def village(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of Terra, 60 ticks."""
    folder = tmp_path_factory.mktemp("village")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETHNOS_RUNS_DIR", str(folder))
        ethnos.run_here(ethnos.load_society("terra", ["ticks=60", "seed=3"]), name="village")
    return folder


@pytest.fixture
def in_village(village: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That folder as the runs folder."""
    monkeypatch.setenv("ETHNOS_RUNS_DIR", str(village))
    st.cache_resource.clear()
    yield village
    st.cache_resource.clear()

"""The folder of a Ray of our own: kept while it is in use, removed when its driver was killed."""

import tempfile
from pathlib import Path

import pytest

from ethnos.actors.cluster import _own_folder


def test_folders_that_nobody_uses_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used, held = _own_folder()
    left, released = _own_folder()
    released.close()  # as when its process is killed
    another = tmp_path / "ethnos-ray-of-an-older-version"
    another.mkdir()
    new, held_too = _own_folder()
    assert {str(p) for p in tmp_path.iterdir()} == {used, new, str(another)}
    assert left != new
    held.close()
    held_too.close()

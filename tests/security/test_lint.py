"""Nothing that comes from outside is unpickled, evaluated or run; a check that keeps it so."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_layering import MODULES

FORBIDDEN_MODULES = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "jsonpickle"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_NAMES = {
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.Loader", "yaml.UnsafeLoader"),
    *("os.system", "os.popen", "numpy.load", "np.load", "torch.load", "pd.read_pickle", "read_pickle"),
    *("tempfile.mktemp", "ssl._create_unverified_context"),
}
PLANTED = {
    "import pickle": "pickle",
    "from cloudpickle import loads": "cloudpickle",
    "eval(text)": "eval",
    "x = yaml.load(text, Loader=yaml.Loader)": "yaml.load",
    "np.load(path, allow_pickle=True)": "np.load",
    "os.system(text)": "os.system",
    "subprocess.run(text, shell=True)": "shell=True",
    "con.execute(f'SELECT {text}')": None,
}


def dangers(code: str) -> set[str]:
    """What a module uses that it must not."""
    found = set[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= FORBIDDEN_MODULES & {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= FORBIDDEN_MODULES & {(node.module or "").split(".")[0]}
        elif isinstance(node, ast.Attribute):
            found |= FORBIDDEN_NAMES & {ast.unparse(node)}
        elif isinstance(node, ast.Call):
            found |= FORBIDDEN_CALLS & {ast.unparse(node.func)}
            found |= {"shell=True" for k in node.keywords if k.arg == "shell" and ast.unparse(k.value) == "True"}
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_nothing_is_unpickled_or_evaluated(module: str) -> None:
    assert not dangers(MODULES[module].read_text("utf-8"))


@pytest.mark.parametrize("code", [c for c, name in PLANTED.items() if name])
def test_the_check_sees_what_is_planted(code: str) -> None:
    assert PLANTED[code] in dangers(code)


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import pickle\npickle.loads(b'')\n", "S301"),
        ("eval('1')\n", "S307"),
        ("exec('1')\n", "S102"),
        ("import yaml\nyaml.load('', Loader=yaml.Loader)\n", "S506"),
        ("import subprocess\nsubprocess.run('x', shell=True)\n", "S602"),
        ("import hashlib\nhashlib.md5(b'')\n", "S324"),
        ("def f(con, x):\n    con.execute(f'SELECT * FROM {x}')\n", "S608"),
    ],
)
def test_ruff_is_set_to_see_it_too(code: str, rule: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--stdin-filename", "src/ethnos/planted.py", "-"]
    done = subprocess.run(command, cwd=ROOT, input=code.encode(), capture_output=True, timeout=60)
    assert rule in done.stdout.decode()


def test_no_file_of_ours_holds_a_key() -> None:
    """Private keys are made by `ethnos certificates`, never shipped."""
    marks = (b"BEGIN PRIVATE " + b"KEY", b"BEGIN EC PRIVATE " + b"KEY")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, timeout=60)
    files = [Path(ROOT / n) for n in tracked.stdout.decode().split("\0") if n]
    assert not [f for f in files if f.is_file() and any(m in f.read_bytes() for m in marks)]

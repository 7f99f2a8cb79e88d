"""Starting the dashboard: Streamlit in this process's place, on this machine alone unless asked otherwise."""

import os
import secrets
import sys
from pathlib import Path

from ethnos.dashboard.rights import ACT, LOOK
from ethnos.errors import EthnosError

ENTRY = Path(__file__).parent / "entry" / "app.py"
BLUE, SKY = "#0072B2", "#56B4E9"
HERE = ("127.0.0.1", "localhost", "::1")


def command(address: str, port: int, *, browser: bool) -> list[str]:
    """How Streamlit is started: no statistics, no file watcher, no traces of code on pages."""
    options = {
        "server.address": address,
        "server.port": port,
        "server.headless": str(not browser).lower(),
        "server.fileWatcherType": "none",
        "server.enableStaticServing": "false",
        "server.maxUploadSize": 1,
        "browser.gatherUsageStats": "false",
        "runner.magicEnabled": "false",
        "theme.light.primaryColor": BLUE,
        "theme.dark.primaryColor": SKY,
        "client.toolbarMode": "viewer",
        "client.showErrorDetails": "none",
        "client.showErrorLinks": "false",
    }
    flags = [f"--{key}={value}" for key, value in options.items()]
    return [sys.executable, "-P", "-m", "streamlit", "run", str(ENTRY), *flags]


def environment(runs: Path, address: str) -> dict[str, str]:
    """Its environment: where runs are, and beyond this machine the two tokens, made here if nobody set them."""
    tokens = {name: os.environ.get(name, "") for name in (LOOK, ACT)}
    if address not in HERE:
        tokens = {name: token or secrets.token_urlsafe(18) for name, token in tokens.items()}
    return {**os.environ, "ETHNOS_RUNS_DIR": str(runs.resolve()), **{n: t for n, t in tokens.items() if t}}


def check() -> None:
    """Raises EthnosError if what the dashboard needs is not installed."""
    from importlib.util import find_spec

    if missing := [name for name in ("streamlit", "altair") if find_spec(name) is None]:
        raise EthnosError(f"the dashboard needs {' and '.join(missing)}: pip install 'ethnos[dashboard]'")

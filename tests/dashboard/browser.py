"""The dashboard as people have it: its own process, looked at in a real browser without a window."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Page, TimeoutError, expect, sync_playwright

CHROMIUM = shutil.which(os.environ.get("ETHNOS_CHROMIUM", "chromium"))
"""The browser of the system; Playwright's own is not needed."""
PATIENCE_MS = 90_000
"""For what must come: a society starts a cluster of its own, and machines may be slow."""
FOLLOWING_MS = 5_000


@contextmanager
def dashboard(runs: Path, **environment: str) -> Iterator[str]:
    """`ethnos dashboard` on a folder of runs; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-c", "from ethnos.cli import main; main()", "dashboard", str(runs)]
    log = runs / ".dashboard.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--no-browser", "--port", str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text("utf-8")
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).close()  # noqa: S310
            return
        except OSError:
            continue


@contextmanager
def browser(width: int = 1280, height: int = 1000, *, dark: bool = False) -> Iterator[Page]:
    """A page of Chromium that goes nowhere but to this machine; fails at its end if it asked for anything else."""
    asked: list[str] = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("request", lambda r: asked.append(r.url) if not _ours(r.url) else None)
        page.route(lambda url: not _ours(url), lambda route: route.abort())
        try:
            yield page
        finally:
            chromium.close()
    assert not asked, f"the page asked for {asked[:5]}"


def _ours(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:"))


def settled(page: Page) -> None:
    """Streamlit has run the page to its end, or is at it all the time because the page follows a society."""
    with suppress(TimeoutError):
        page.wait_for_function("!document.querySelector('[data-test-script-state=\"running\"]')", timeout=FOLLOWING_MS)
    page.wait_for_timeout(300)

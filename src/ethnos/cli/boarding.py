"""`ethnos dashboard`: opens it in a browser."""

import os
import sys
from pathlib import Path

from ethnos.cli.output import print_line
from ethnos.dashboard import launch
from ethnos.dashboard.rights import ACT, LOOK
from ethnos.record.directory import runs_folder


def dashboard(folder: Path | None, address: str, port: int, *, browser: bool) -> None:
    """Become the dashboard. Raises EthnosError if it is not installed."""
    launch.check()
    environment = launch.environment(folder or runs_folder(), address)
    if address not in launch.HERE:
        print_line(f"token to look:    {environment[LOOK]}", error=True)
        print_line(f"token to control: {environment[ACT]}", error=True)
        print_line("Both travel unencrypted: put a proxy with TLS, or an SSH tunnel, in front.", error=True)
    command = launch.command(address, port, browser=browser)
    sys.stdout.flush()
    os.execve(command[0], command, environment)  # noqa: S606

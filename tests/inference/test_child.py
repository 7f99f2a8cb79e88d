"""Servers that we start do not outlive us."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import psutil

from ethnos.actors.inference.engines.child import Child

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(60)
"""


def gone(pid: int, within: float = 10.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


async def grandchild(path: Path) -> int:
    while not path.exists() or not path.read_text():
        await asyncio.sleep(0.02)
    return int(path.read_text())


async def test_stopping_stops_the_whole_family(tmp_path: Path):
    child = Child([sys.executable, "-c", FAMILY, str(tmp_path / "pid")], {})
    await child.start()
    pid = await grandchild(tmp_path / "pid")
    assert child.alive
    await child.stop()
    assert not child.alive and gone(pid)
    await child.stop()


async def test_what_it_says_is_logged(tmp_path: Path):
    child = Child(
        [sys.executable, "-c", "import os; print(os.environ['WORD'])"], {"WORD": "hello"}, tmp_path / "a" / "log"
    )
    await child.start()
    while child.alive:
        await asyncio.sleep(0.02)
    assert child.returncode == 0 and (tmp_path / "a" / "log").read_text() == "hello\n"


def test_when_we_are_killed_it_ends(tmp_path: Path):
    program = (
        "import asyncio, sys\n"
        "from ethnos.actors.inference.engines.child import Child\n"
        "async def main():\n"
        f"    await Child([sys.executable, '-c', {FAMILY!r}, {str(tmp_path / 'pid')!r}], {{}}).start()\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    pid = asyncio.run(grandchild(tmp_path / "pid"))
    parent.kill()
    parent.wait()
    assert gone(pid)


async def test_a_program_that_is_not_there(tmp_path: Path):
    child = Child([str(tmp_path / "nothing")], {}, tmp_path / "log")
    await child.start()
    while child.alive:
        await asyncio.sleep(0.02)
    assert child.returncode == 127 and "cannot start" in (tmp_path / "log").read_text()


async def test_when_its_guard_is_killed_it_ends(tmp_path: Path):
    child = Child([sys.executable, "-c", "import time; time.sleep(60)"], {})
    await child.start()
    assert child._process is not None
    guard = psutil.Process(child._process.pid)
    while not guard.children():
        await asyncio.sleep(0.02)
    [program] = guard.children()
    guard.kill()
    assert gone(program.pid)
    await child.stop()

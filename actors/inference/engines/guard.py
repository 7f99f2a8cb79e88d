"""Runs a program and ends it, with all it started, when whoever started us is gone. A script, not for import.

Whoever started us holds the other end of our standard input: when that closes, by will or by death, it is over.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

GRACE = 15.0
PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>: the signal a process gets when its parent dies."""
_prctl = ctypes.CDLL(None).prctl


def main(command: list[str]) -> int:
    try:
        # Whoever kills us with SIGKILL, as Ray does with the children of its dead workers, kills the program as well.
        program = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, 9)
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        return 127
    threading.Thread(target=_watch, args=(program,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: _end(program))
    code = program.wait()
    _kill(program, signal.SIGKILL)
    return code


def _watch(program: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 4096):
        pass
    _end(program)


def _end(program: "subprocess.Popen[bytes]") -> None:
    _kill(program, signal.SIGTERM)
    timer = threading.Timer(GRACE, _kill, args=(program, signal.SIGKILL))
    timer.daemon = True
    timer.start()


def _kill(program: "subprocess.Popen[bytes]", number: int) -> None:
    try:
        os.killpg(program.pid, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The command line: `ethnos run`, `runs`, `show`, `verify`, `sql`, `schema`, `picture`, `import`."""

import os
import sys

from ethnos.errors import EthnosError


def main() -> None:
    """Entry point. Errors that a user can do something about are one message and exit code 1."""
    _open_streams()
    from ethnos.cli.app import app
    from ethnos.logs import configure

    configure()
    try:
        try:
            app(prog_name="ethnos")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _leave_silently()
    except EthnosError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """Batch systems may close standard streams, and terminals may not take every character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _leave_silently() -> None:
    """Whoever read our output has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _fail(message: str) -> None:
    from ethnos.cli.output import safe

    for line in message.split("\n"):
        sys.stderr.write(f"{safe(line)}\n")
    sys.exit(1)

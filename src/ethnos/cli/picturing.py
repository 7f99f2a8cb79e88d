"""`ethnos picture`: a run as an SVG."""

import sys
from pathlib import Path

from ethnos.analytics.picture import draw
from ethnos.cli.output import print_line
from ethnos.errors import EthnosError
from ethnos.record.directory import RunDirectory


def picture(name: str, tick: int | None, output: Path | None, *, force: bool) -> None:
    """Draw a run to a file; `-` is standard output."""
    run = RunDirectory.find(name)
    path = output or Path(f"{run.name}.svg")
    if str(path) != "-" and path.exists() and not force:
        raise EthnosError(f"{path} exists; --force overwrites it")
    drawn = draw(run, tick)
    if str(path) == "-":
        sys.stdout.write(drawn)
        return
    path.write_text(drawn, "utf-8")
    print_line(f"Wrote {path}.", error=True)

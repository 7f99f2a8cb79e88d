"""`ethnos copy`: a run to another place, and back."""

from ethnos.cli.output import print_line
from ethnos.record.directory import RunDirectory, runs_folder
from ethnos.record.replica import Replica


def copy(name: str, place: str, *, back: bool) -> None:
    """Push what is not there yet, or fetch all of it."""
    if back:
        replica = Replica(place, name)
        run = replica.fetch(runs_folder() / name)
        print_line(f"{run.path}: {run.state()}, from {replica.uri}")
        return
    run = RunDirectory.find(name)
    replica = Replica(place, run.path.resolve().name)
    files = replica.push(run)
    print_line(f"{replica.uri}: {files} files copied")

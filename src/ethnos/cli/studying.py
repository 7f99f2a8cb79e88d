"""`ethnos study`."""

from pathlib import Path

from ethnos.analytics.study import codebook, comparing
from ethnos.analytics.study.studying import Plan, Studied, follow, study
from ethnos.cli.output import print_line, print_table
from ethnos.errors import EthnosError
from ethnos.record.directory import RunDirectory, find_all
from ethnos.record.studied import folder


def studied(names: list[str], path: Path | None, model: str | None, coders: int, *, live: bool) -> None:
    """Study each run, then compare them if there are several."""
    book = codebook.read(path) if path else codebook.read()
    runs = find_all(names)
    if live and len(runs) > 1:
        raise EthnosError("--follow keeps up with one run")
    for run in runs:
        plan = _plan(run, book, model, coders)
        for done in follow(run, plan) if live else [study(run, plan)]:
            _tell(run, done)
    if len(runs) > 1:
        _compare(runs)


def _plan(run: RunDirectory, book: codebook.Codebook, model: str | None, coders: int) -> Plan:
    if model is None:
        return Plan(book)
    from ethnos.anthropologist import model_coders

    return Plan(book, model_coders(run, model, coders))


def _tell(run: RunDirectory, done: Studied) -> None:
    print_line(
        f"{run.name}: tick {done.tick}; windows {done.fresh} new, {done.kept} kept; "
        f"annotations {done.accepted} accepted, {done.rejected} rejected; {done.findings} findings"
    )
    print_line(f"{folder(run) / 'report.html'}")


def _compare(runs: list[RunDirectory]) -> None:
    first, *others = runs
    for other in others:
        found = comparing.compare(first, other)
        print_line(f"{other.name} against {first.name}: {comparing.METHOD}")
        print_table(comparing.HEADER, [c.cells() for c in found], right=list(comparing.HEADER[1:]))
        place = comparing.write(first, other, found)
        print_line(str(place))

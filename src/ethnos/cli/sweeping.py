"""`ethnos sweep`: one society under many conditions."""

from pathlib import Path

from ethnos.cli.output import print_json, print_line, print_table
from ethnos.sweep import Condition, Estimate, as_plain, run_sweep


def sweep(path: Path, name: str | None, workers: int | None, *, quiet: bool, as_json: bool) -> None:
    """Run a sweep, or what is left of it, and print one table over all its runs."""
    found = run_sweep(path, name, workers, (lambda *_: None) if quiet else _tell)
    if as_json:
        print_json({"sweep": name or path.stem, "conditions": as_plain(found)})
    elif not quiet:
        _print(found)


def _tell(over: int, runs: int) -> None:
    print_line(f"{over} of {runs} runs are over", error=True)


def _print(found: list[Condition]) -> None:
    for measure in found[0].estimates:
        rows = [(_values(c), len(c.runs), *_told(c.estimates[measure])) for c in found]
        columns = ("condition", "runs", "mean", "95 % interval", "difference", "effect (d)")
        print_table(columns, rows, right=columns[1:], title=measure)
    print_line("Differences and effects are against the first condition.")


def _values(condition: Condition) -> str:
    return ", ".join(f"{k.rpartition('.')[2]}={v}" for k, v in condition.values.items()) or "as it is"


def _told(e: Estimate) -> tuple[str, ...]:
    effect = "" if e.effect is None else f"{e.effect:+.2f}"
    return f"{e.mean:.4g}", f"{e.low:.4g} to {e.high:.4g}", f"{e.difference:+.4g}", effect

"""`ethnos validate`: what must come out of worlds, measured; `ethnos new-world`: a world to begin with."""

from collections.abc import Sequence
from pathlib import Path

from ethnos.cli.output import print_json, print_line, print_table, safe
from ethnos.starting import start_world
from ethnos.validation import Verdict
from ethnos.validation import validate as measure
from ethnos.world.scenarios import find, known

COLUMNS = ("world", "what", "target", "measured", "interval", "n", "verdict")

HEAD = """# What is known of the worlds, and what came out

Made by `ethnos validate --page docs/validation.md`. Each line is a target that does not come from Ethnos: a closed
form, a published value, or an independent simulation. It is measured in n replicates with seeds 1 to n, so that anybody
gets the same figures. An interval spans 3.29 standard errors to either side (99.9 %), or all values where every
replicate has to hit the target. `ethnos validate --quick` takes fewer replicates; CI runs that.
"""


def validate(worlds: Sequence[str], page: Path | None, *, quick: bool, as_json: bool) -> int:
    """Measure and print; returns the exit code."""
    names = list(worlds) or [name for name in known() if find(name).validations]
    verdicts = []
    for verdict in measure(names, quick=quick):
        verdicts.append(verdict)
        if not as_json:
            print_line(f"{verdict.world}: {verdict.validation.name}: {_verdict(verdict)}", error=True)
    failed = sum(not v.measured.holds for v in verdicts)
    if page is not None:
        page.write_text(as_page(verdicts), "utf-8")
    if as_json:
        print_json({"ok": not failed, "validations": [v.as_plain() for v in verdicts]})
    else:
        print_table(COLUMNS, map(_row, verdicts), right=("measured", "n"))
        print_line(f"{len(verdicts) - failed} of {len(verdicts)} hold")
    return bool(failed)


def _verdict(verdict: Verdict) -> str:
    return "holds" if verdict.measured.holds else "DOES NOT HOLD"


def _row(verdict: Verdict) -> tuple[object, ...]:
    m, v = verdict.measured, verdict.validation
    span = f"{m.low:.4g} to {m.high:.4g}"
    return verdict.world, v.name, str(v.target), f"{m.value:.4g}", span, verdict.replicates, _verdict(verdict)


def as_page(verdicts: Sequence[Verdict]) -> str:
    """The table as a page of the documentation, one section for each world."""
    parts = [HEAD]
    for world in dict.fromkeys(v.world for v in verdicts):
        parts.append(f"\n## {safe(world)}\n\n| what | source | target | measured | interval | n | verdict |")
        parts.append("| --- | --- | --- | --- | --- | --- | --- |")
        parts += [_line(v) for v in verdicts if v.world == world]
    return "\n".join(parts) + "\n"


def _line(verdict: Verdict) -> str:
    _, name, *rest = _row(verdict)
    return "| " + " | ".join(safe(c).replace("|", "\\|") for c in (name, verdict.validation.source, *rest)) + " |"


def new_world(name: str, folder: Path) -> None:
    """Write it, and say what to do next."""
    made = start_world(name, folder)
    print_line(f"{made} is a world. Next:")
    for command in (f"cd {made}", "pip install -e .", f"ethnos run {name}", f"ethnos validate {name}", "pytest"):
        print_line(f"  {command}")

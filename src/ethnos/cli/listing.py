"""Commands that look at runs: `runs`, `show`, `schema`, `verify`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ethnos.analytics.sparkline import sparkline
from ethnos.analytics.summary import Outline, Summary, outline, summarise
from ethnos.analytics.thinking import Thinking
from ethnos.cli.output import number, print_facts, print_json, print_line, print_table, safe
from ethnos.errors import RunError
from ethnos.record import describe
from ethnos.record.directory import RunDirectory, all_runs, runs_folder
from ethnos.record.verify import Verification
from ethnos.record.verify import verify as verified


def runs(*, as_json: bool) -> None:
    """List the runs in the runs folder, the newest first."""
    found = [_glance(run) for run in all_runs()]
    found.sort(key=lambda f: (isinstance(f, Outline), f.created if isinstance(f, Outline) else 0), reverse=True)
    if as_json:
        print_json({"folder": str(runs_folder()), "runs": [_as_dict(f) for f in found]})
    elif found:
        columns = ("run", "state", "scenario", "tick", "population", "", "when")
        print_table(columns, [_row(f) for f in found], right=("tick", "population"))
    else:
        print_line(f"There are no runs in {runs_folder()}. Make one: ethnos run terra")


def _glance(run: RunDirectory) -> Outline | tuple[str, str]:
    """What a run looks like; or its name and what is wrong with it."""
    try:
        return outline(run)
    except RunError as error:
        return run.name, str(error)


def _as_dict(found: Outline | tuple[str, str]) -> dict[str, Any]:
    if isinstance(found, Outline):
        return asdict(found)
    return {"name": found[0], "state": "damaged", "reason": found[1]}


def _row(found: Outline | tuple[str, str]) -> Sequence[object]:
    if not isinstance(found, Outline):
        return (found[0], "damaged", found[1])
    when = found.created.astimezone().strftime("%Y-%m-%d %H:%M")
    tick = f"{max(found.tick, 0)}/{found.ticks}"
    curve = sparkline(found.curve, 24)
    return found.name, found.state, found.scenario, tick, found.population, curve, when


def show(name: str, *, as_json: bool) -> None:
    """Summarise a run."""
    summary = summarise(RunDirectory.find(name))
    if as_json:
        print_json(asdict(summary))
    else:
        print_summary(summary)


def print_summary(s: Summary) -> None:
    """A run on one screen."""
    cohorts = ", ".join(f"{c.count} {c.cohort} ({c.mind})" for c in s.cohorts)
    deaths = ", ".join(f"{n} {cause}" for cause, n in s.deaths.items())
    troubles = f"{s.rejected} rejected, {s.late} late, {s.failed} failed"
    print_facts(
        [
            ("run", s.name),
            ("asked for", f"{s.scenario}, {s.ticks} ticks, seed {s.seed}: {cohorts}"),
            ("state", f"{s.state} at tick {s.tick}" + f" ({s.reason})" * bool(s.reason)),
            ("population", f"{sparkline(s.curve)} {s.population} now, {s.peak} at most"),
            ("births", f"{s.births}, after {s.founders} founders"),
            ("deaths", f"{sum(s.deaths.values())}" + f": {deaths}" * bool(deaths)),
            ("artifacts", s.artifacts),
            ("messages", s.messages),
            ("decisions", f"{number(s.decisions)}: {troubles}"),
            ("events", f"{number(s.events)}, {s.seconds:.1f} s spent in ticks"),
            *(_thinking(s.thinking) if s.thinking else ()),
            ("digest", s.digest),
        ]
    )


def _thinking(t: Thinking) -> Iterator[tuple[str, object]]:
    """What models did, and a few of their decisions in their own words."""
    stages = ", ".join(f"{n} {stage}" for stage, n in t.stages.items())
    cached = t.cached_tokens / t.prompt_tokens if t.prompt_tokens else 0.0
    yield "thinking", f"{number(t.turns)} turns: {stages}; {t.decisions_per_s:.2f} decisions/s"
    yield (
        "tokens",
        f"{number(t.prompt_tokens)} read ({cached:.0%} cached), {number(t.completion_tokens)} written; "
        f"{number(t.tokens_per_s)} tokens/s" + f", cost {t.cost:,.4f}" * bool(t.cost),
    )
    for e in t.examples:
        yield "for example", f"tick {e.tick}, {e.agent}: {safe(e.action, 90)} because: {safe(e.reason, 160)}"


def schema(name: str, *, as_json: bool) -> None:
    """Print what can be asked of a run."""
    tables = describe.tables(RunDirectory.find(name))
    if as_json:
        print_json({"run": name, "tables": [asdict(t) for t in tables]})
        return
    for table in tables:
        print_line(f"{table.name} ({table.sort}): {table.meaning}")
        rows = [(c.name, c.type, c.unit, c.meaning) for c in table.columns]
        print_table(("column", "type", "unit", "meaning"), rows)


def verify(name: str, *, as_json: bool) -> bool:
    """Check a record against itself; returns whether it is sound."""
    found = verified(RunDirectory.find(name))
    if as_json:
        failed = [c.name for c in found.checks if not c.ok]
        print_json({**asdict(found), "ok": found.ok, "failed": failed})
    else:
        _print_verification(found)
    return found.ok


def _print_verification(found: Verification) -> None:
    rows = [("ok" if c.ok else "WRONG", c.name, c.detail) for c in found.checks]
    print_table(("", "check", "finding"), rows)
    residual = "unknown" if found.ledger_residual is None else f"{found.ledger_residual:g}"
    print_facts(
        [
            ("run", found.run),
            ("last tick", found.ticks),
            ("events", number(found.events)),
            ("ledger residual", residual),
            ("digest", found.digest),
        ]
    )

"""`ethnos doctor`: what will go wrong on this machine or cluster, before it does."""

from dataclasses import asdict

from ethnos import doctor as checks
from ethnos import society as societies
from ethnos.cli.output import print_facts, print_json, print_line

_MARKS = {"ok": "ok", "notice": "notice", "problem": "PROBLEM"}


def doctor(source: str | None, *, as_json: bool) -> int:
    """Print what was found; returns the exit code."""
    society = societies.load(source) if source else None
    found = checks.examine(society)
    problems = [f for f in found if f.level == "problem"]
    if as_json:
        print_json({"ok": not problems, "findings": [asdict(f) for f in found]})
        return bool(problems)
    for f in found:
        print_facts([(f"{_MARKS[f.level]:8}{f.check}", f.found)])
        if f.level != "ok":
            print_facts([("            then", f.consequence), ("            so", f.remedy)])
    print_line()
    print_line(f"{len(problems)} problems" if problems else "Nothing stands in the way of a run.")
    return bool(problems)

"""`ethnos probe`: what a persona does to a model, before anybody trusts a society of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

from ethnos import society as societies
from ethnos.actors.minds.probe import Finding, probe
from ethnos.actors.thinking import Models
from ethnos.cli.output import print_json, print_table
from ethnos.errors import SocietyError
from ethnos.society import Society

Persona = Mapping[str, float | str]


def ask(source: str, model: str | None, personas: list[str], repeats: int, *, as_json: bool) -> None:
    """Ask a society's model the questionnaire under each persona. Raises SocietyError."""
    society = societies.load(source)
    chosen = _model(society, model)
    found = asyncio.run(_probe(society, chosen, _personas(society, personas), repeats))
    if as_json:
        print_json({"model": chosen, "findings": [_plain(f) for f in found]})
        return
    columns = list(asdict(found[0])) if found else []
    rows = [[f"{v:.2f}" if isinstance(v, float) else v for v in asdict(f).values()] for f in found]
    print_table(columns, rows, columns[2:], title=f"{chosen}: how far it goes along")


def _plain(finding: Finding) -> dict[str, object]:
    """Shares of no usable answers at all are null: JSON has no NaN."""
    return {k: None if v != v else v for k, v in asdict(finding).items()}


def _model(society: Society, name: str | None) -> str:
    names = list(society.models)
    if not names:
        raise SocietyError("this society names no models; see docs/models.md")
    if name is not None and name not in names:
        raise SocietyError(f"no model {name!r}; there are: {', '.join(names)}")
    return name or names[0]


def _personas(society: Society, given: list[str]) -> dict[str, Persona]:
    """Nobody in particular, the society's cohorts that have traits of their own, and those that were given."""
    cohorts = {c.cohort: dict(c.persona) for c in society.population if c.persona}
    return {"nobody": {}, **cohorts, **dict(map(_parsed, given))}


def _parsed(text: str) -> tuple[str, Persona]:
    """`kind:agreeableness=1,dominance=-1` is a persona called kind."""
    name, colon, traits = text.partition(":")
    pairs = [t.partition("=") for t in traits.split(",")] if colon else []
    try:
        return name, {key.strip(): float(value) for key, _, value in pairs}
    except ValueError:
        raise SocietyError(f"--persona {text}: write it as name:trait=number,trait=number") from None


async def _probe(society: Society, model: str, personas: dict[str, Persona], repeats: int) -> list[Finding]:
    async with Models(society) as models:
        return await probe(partial(models.ask, model), personas, repeats=repeats)

"""What differs between two runs, with intervals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethnos.analytics.asking import rows
from ethnos.analytics.study.report import STYLE
from ethnos.analytics.svg import element, words
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.record.reader import connect
from ethnos.record.studied import folder

RESAMPLES = 2_000
BLOCK = 25
METHOD = (
    f"means per tick, difference with a 95 % interval from a moving-block bootstrap over ticks (blocks of {BLOCK}, "
    f"{RESAMPLES} resamples; Künsch 1989). It speaks of the change within these two runs, not of chance between seeds."
)
HEADER = ("measure", "first", "second", "difference", "from", "to")
PER_TICK = """
WITH counted AS (
    SELECT tick, count(*) FILTER (kind = 'born') AS births, count(*) FILTER (kind = 'died') AS deaths,
           count(*) FILTER (kind = 'said') AS messages, count(*) FILTER (kind = 'energy_given') AS gifts,
           count(*) FILTER (kind = 'energy_taken') AS thefts,
           count(*) FILTER (kind IN ('artifact_created', 'artifact_modified')) AS texts,
           count(*) FILTER (kind = 'rejected') AS refusals
    FROM events WHERE tick > 0 GROUP BY tick
)
SELECT t.population, coalesce(births, 0) AS births, coalesce(deaths, 0) AS deaths, coalesce(messages, 0) AS messages,
       coalesce(gifts, 0) AS gifts, coalesce(thefts, 0) AS thefts, coalesce(texts, 0) AS texts,
       coalesce(refusals, 0) AS refusals
FROM ticks t LEFT JOIN counted c USING (tick) WHERE t.tick > 0 ORDER BY t.tick
"""


@dataclass(frozen=True)
class Difference:
    """One measure in two runs, per tick, and between which values the difference lies."""

    measure: str
    first: float
    second: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether no difference lies outside the interval."""
        return self.low > 0 or self.high < 0

    def cells(self) -> list[str]:
        """As a row of a table."""
        figures = (self.first, self.second, self.second - self.first, self.low, self.high)
        return [self.measure, *(f"{v:.3f}" for v in figures)]


def compare(first: RunDirectory, second: RunDirectory) -> list[Difference]:
    """Second less first, per measure."""
    a, b = _series(first), _series(second)
    return [_difference(name, a[name], b[name]) for name in a if a[name].size and b[name].size]


def _series(run: RunDirectory) -> dict[str, Any]:
    with connect(run) as con:
        found = rows(con, PER_TICK)
    names = list(found[0]) if found else []
    return {n: np.array([r[n] for r in found], dtype=float) for n in names}


def _difference(name: str, a: Any, b: Any) -> Difference:
    rng = np.random.default_rng(0)
    spread = _resampled(b, rng) - _resampled(a, rng)
    low, high = np.quantile(spread, [0.025, 0.975])
    return Difference(name, float(a.mean()), float(b.mean()), float(low), float(high))


def _resampled(values: Any, rng: np.random.Generator) -> Any:
    """Means of resampled series, of which each is put together from blocks."""
    block = min(BLOCK, len(values))
    sums = np.convolve(values, np.ones(block), "valid") / block
    return sums[rng.integers(len(sums), size=(RESAMPLES, -(-len(values) // block)))].mean(axis=1)


def write(first: RunDirectory, second: RunDirectory, found: list[Difference]) -> Path:
    """A page beside the first run's report."""
    top = element("tr", "".join(element("th", h) for h in (*HEADER, "")))
    body = "".join(
        element("tr", "".join(element("td", words(c)) for c in (*d.cells(), "differs" if d.clear else "not clear")))
        for d in found
    )
    title = f"{second.name} against {first.name}"
    head = f'<meta charset="utf-8"><title>{words(title)}</title><style>{STYLE}</style>'
    page = element("h1", words(title)) + element("p", words(METHOD, 500), class_="lead") + element("table", top + body)
    place = folder(first) / f"against-{second.name}.html"
    write_durably(place, f'<!doctype html><html lang="en"><head>{head}</head><body>{page}</body></html>\n'.encode())
    return place


__all__ = ["HEADER", "METHOD", "Difference", "compare", "write"]

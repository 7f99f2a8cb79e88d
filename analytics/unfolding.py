"""How a run unfolded: curves over its ticks, what happened in them, and how unequal its members were."""

from collections.abc import Sequence
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows

POINTS = 240
"""Points of a curve: a longer run is cut into so many stretches of ticks, each with its last or mean value."""
STRETCHES = 40
"""Points of the curve of inequality, which costs more."""

CURVES = """
WITH cut AS (
    SELECT greatest(1, CAST(ceil((max(tick) + 1) / $points) AS BIGINT)) AS width FROM ticks
), flat AS (
    SELECT tick // width AS part, tick, population, decisions, rejected, late + failed AS troubles, elapsed,
           CAST(stocks AS JSON) AS stocks FROM ticks, cut
), counted AS (
    SELECT tick // width AS part, count(*) FILTER (kind = 'born' AND tick > 0) AS births,
           count(*) FILTER (kind = 'died') AS deaths, count(*) FILTER (kind = 'said') AS messages
    FROM events, cut WHERE kind IN ('born', 'died', 'said') GROUP BY part
)
SELECT max(f.tick) AS tick, arg_max(f.population, f.tick) AS population, sum(f.decisions) AS decisions,
       sum(f.rejected) AS rejected, sum(f.troubles) AS troubles, any_value(coalesce(c.births, 0)) AS births,
       any_value(coalesce(c.deaths, 0)) AS deaths, any_value(coalesce(c.messages, 0)) AS messages,
       CAST(arg_max(f.stocks, f.tick) AS VARCHAR) AS stocks
FROM flat f LEFT JOIN counted c USING (part) GROUP BY part ORDER BY part
"""

STOCKS = """
SELECT tick, entry.key AS stock, entry.value AS value FROM (
    SELECT tick, unnest(map_entries(CAST(CAST(stocks AS JSON) AS MAP(VARCHAR, DOUBLE)))) AS entry
    FROM ticks WHERE tick % greatest(1, CAST(ceil((SELECT max(tick) + 1 FROM ticks) / $points) AS BIGINT)) = 0
) ORDER BY tick, stock
"""

FEED = """
SELECT e.seq, e.tick, e.kind, a.name AS agent, o.name AS other, e.amount, e.text, e.data, e.agent_id, e.target_id
FROM (
    SELECT * FROM events
    WHERE tick BETWEEN $first AND $last AND seq < $before
      AND (len($kinds) = 0 OR list_contains($kinds, kind))
      AND ($agent IS NULL OR agent_id = $agent OR target_id = $agent OR actor_id = $agent)
      AND ($words = '' OR contains(lower(coalesce(text, '')), lower($words)))
    ORDER BY seq DESC LIMIT $rows
) e
LEFT JOIN agents a ON a.agent_id = e.agent_id LEFT JOIN agents o ON o.agent_id = e.target_id
ORDER BY e.seq DESC
"""

ENERGY = """
WITH moments AS (
    SELECT CAST(round(i * (SELECT max(tick) FROM ticks) / $parts) AS BIGINT) AS moment FROM range(1, $parts + 1) r(i)
), change AS (
    SELECT tick, agent_id, amount FROM events WHERE kind IN ('settled', 'ate', 'energy_taken')
    UNION ALL SELECT tick, target_id, amount FROM events WHERE kind = 'energy_given'
    UNION ALL SELECT tick, target_id, amount + CAST(data ->> 'endowment' AS DOUBLE) FROM events
              WHERE kind = 'reproduced'
    UNION ALL SELECT tick, agent_id, -amount FROM events WHERE kind IN ('energy_given', 'artifact_created')
    UNION ALL SELECT tick, target_id, -amount FROM events WHERE kind = 'energy_taken'
    UNION ALL SELECT tick, agent_id, -amount - CAST(data ->> 'cost' AS DOUBLE) FROM events WHERE kind = 'reproduced'
), steps AS (
    SELECT agent_id, tick, sum(sum(amount)) OVER (PARTITION BY agent_id ORDER BY tick) AS had
    FROM change WHERE agent_id IS NOT NULL GROUP BY agent_id, tick
), living AS (
    SELECT moment, agent_id, born FROM (SELECT DISTINCT moment FROM moments)
    JOIN agents ON born <= moment AND (died IS NULL OR died > moment)
), held AS (
    SELECT l.moment, greatest(0, s.had - (l.moment - l.born + CASE WHEN l.born > 0 THEN 1 ELSE 0 END)) AS energy
    FROM living l ASOF JOIN steps s ON s.agent_id = l.agent_id AND s.tick <= l.moment
), ranked AS (
    SELECT moment, energy, row_number() OVER (PARTITION BY moment ORDER BY energy) AS i,
           count(*) OVER (PARTITION BY moment) AS n
    FROM held
)
SELECT moment AS tick, sum((2 * i - n - 1) * energy) / nullif(any_value(n) * sum(energy), 0) AS gini,
       avg(energy) AS mean, quantile_cont(energy, 0.5) AS median
FROM ranked GROUP BY moment ORDER BY moment
"""
"""Energy of the living as the events of Terra add it up; see `ethnos.analytics.grid`."""


@dataclass(frozen=True)
class Filter:
    """Which events of a run to look at."""

    first: int = 0
    last: int = 2**62
    kinds: Sequence[str] = ()
    """None: all."""
    agent: int | None = None
    """One that it happened to, or that did it, or that was concerned."""
    words: str = ""
    """Part of its text."""
    before: int = 2**62
    """Only events with a smaller seq: the next page."""
    rows: int = 100


def curves(con: DuckDBPyConnection, points: int = POINTS) -> list[Row]:
    """One row per stretch of ticks: population at its end; births, deaths, messages and decisions in it."""
    return rows(con, CURVES, {"points": points})


def stocks(con: DuckDBPyConnection, points: int = POINTS) -> list[Row]:
    """What the world conserves: tick, stock, value."""
    return rows(con, STOCKS, {"points": points})


def feed(con: DuckDBPyConnection, wanted: Filter) -> list[Row]:
    """What happened, the latest first. Texts are untrusted."""
    values = {**vars(wanted), "kinds": list(wanted.kinds)}
    return rows(con, FEED, values)


def inequality(con: DuckDBPyConnection, parts: int = STRETCHES) -> list[Row]:
    """Tick, Gini coefficient, mean and median of the energy of the living, in a world that records as Terra does."""
    return rows(con, ENERGY, {"parts": parts})


def last_tick(con: DuckDBPyConnection) -> int:
    """The last committed tick; -1 before the first."""
    row = con.execute("SELECT coalesce(max(tick), -1) FROM ticks").fetchone()
    return int(row[0]) if row else -1

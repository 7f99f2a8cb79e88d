"""Who has how much. Wealth is kept in the record as changes; see `world/scenarios/terra/events.py`."""

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.analytics.measures.measure import Measure, derived, group, table

WEALTH = """
WITH change AS (
    SELECT tick, agent_id, amount FROM events WHERE kind IN ('settled', 'ate', 'energy_taken')
    UNION ALL SELECT tick, agent_id, -amount FROM events WHERE kind IN ('energy_given', 'artifact_created')
    UNION ALL SELECT tick, target_id, amount FROM events WHERE kind = 'energy_given'
    UNION ALL SELECT tick, target_id, -amount FROM events WHERE kind = 'energy_taken'
    UNION ALL SELECT tick, agent_id, -amount - CAST(data ->> 'cost' AS DOUBLE) FROM events WHERE kind = 'reproduced'
    UNION ALL SELECT tick, target_id, amount + CAST(data ->> 'endowment' AS DOUBLE) FROM events
              WHERE kind = 'reproduced'
), changed AS (SELECT agent_id, tick, sum(amount) AS amount FROM change WHERE agent_id IS NOT NULL GROUP BY ALL
), lived AS (
    SELECT agent_id, born, unnest(range(born, coalesce(died, last + 1))) AS tick
    FROM agents, (SELECT max(tick) AS last FROM ticks)
)
SELECT l.tick, l.agent_id, greatest(0, sum(coalesce(c.amount, 0)) OVER (PARTITION BY l.agent_id ORDER BY l.tick)
       - (l.tick - l.born + CASE WHEN l.born > 0 THEN 1 ELSE 0 END)) AS wealth
FROM lived l LEFT JOIN changed c USING (agent_id, tick)
"""
GINI = """
SELECT tick, agent_id, wealth, row_number() OVER (PARTITION BY tick ORDER BY wealth, agent_id) AS rank,
       count(*) OVER (PARTITION BY tick) AS n FROM wealth
"""
_GINI = """count(*) AS agents, avg(wealth) AS mean,
sum((2 * rank - n - 1) * wealth) / nullif(any_value(n) * sum(wealth), 0) AS gini"""


def gini(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Gini's coefficient among the living at the end of each tick; over the run: at the last tick anybody lived."""
    ranked = derived(con.sql(WEALTH), "wealth", GINI)
    if by == "tick":
        return table(ranked.aggregate(f"tick, {_GINI}", "tick").order("tick"))
    return table(ranked.aggregate(f"tick, {_GINI}", "tick").order("tick DESC").limit(1))


def wealth(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Wealth over the ticks of lives."""
    totals = "avg(wealth) AS mean, min(wealth) AS least, max(wealth) AS most, max_by(wealth, tick) AS last"
    return group(con, con.sql(WEALTH), totals, by)


LORENZ = """
SELECT row_number() OVER w / count(*) OVER () AS agents, sum(wealth) OVER w / nullif(sum(wealth) OVER (), 0) AS share
FROM wealth WHERE tick = (SELECT max(tick) FROM wealth)
WINDOW w AS (ORDER BY wealth, agent_id ROWS UNBOUNDED PRECEDING) ORDER BY agents
"""


def lorenz(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Lorenz's curve at the last tick anybody lived: what share the poorest have."""
    return table(derived(con.sql(WEALTH), "wealth", LORENZ))


_NEEDS = ("settled", "ate", "energy_given", "energy_taken", "reproduced")
MEASURES = (
    Measure(
        "wealth",
        "Wealth",
        "what an agent has got less what it gave, lost and used up",
        "energy",
        "ledger",
        wealth,
        _NEEDS,
    ),
    Measure(
        "gini",
        "Inequality of wealth",
        "G = sum_i (2 i - n - 1) x_i / (n sum x), x ascending",
        "0 to 1",
        "Gini 1912",
        gini,
        _NEEDS,
        by=("tick",),
    ),
    Measure(
        "lorenz",
        "Lorenz curve",
        "L(i/n) = sum of the i least / sum of all",
        "share",
        "Lorenz 1905",
        lorenz,
        _NEEDS,
        by=(),
    ),
)

"""What agents do, say, give, take, and where they go; and what their thinking costs."""

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.analytics.measures.measure import Measure, grouped, table

RECIPROCITY = """
WITH pair AS (
    SELECT agent_id, target_id, sum(amount) AS amount FROM events
    WHERE kind = 'energy_given' AND agent_id <> target_id GROUP BY ALL
)
SELECT p.agent_id, 0 AS tick, p.amount AS given, least(p.amount, coalesce(b.amount, 0)) AS returned,
       b.amount IS NOT NULL AS mutual
FROM pair p LEFT JOIN pair b ON b.agent_id = p.target_id AND b.target_id = p.agent_id
"""
PLACES = """
WITH size AS (
    SELECT min(CAST(data ->> 'width' AS DOUBLE)) AS w, min(CAST(data ->> 'height' AS DOUBLE)) AS h
    FROM events WHERE kind = 'world_made'
), place AS (
    SELECT agent_id, x, y, tick, seq, coalesce(lead(tick) OVER (PARTITION BY agent_id ORDER BY seq),
           (SELECT max(tick) + 1 FROM ticks)) AS next
    FROM events WHERE kind IN ('born', 'settled', 'moved') AND x IS NOT NULL AND agent_id IS NOT NULL
), stay AS (
    SELECT p.agent_id, p.x, p.y, p.tick, least(p.next, coalesce(a.died, p.next)) - p.tick AS ticks
    FROM place p JOIN agents a USING (agent_id) WHERE least(p.next, coalesce(a.died, p.next)) > p.tick
), middle AS (
    SELECT agent_id, any_value(w) AS w, any_value(h) AS h,
           coalesce(atan2(sum(ticks * sin(2 * pi() * x / w)), sum(ticks * cos(2 * pi() * x / w))) * any_value(w)
                    / (2 * pi()), sum(ticks * x) / sum(ticks)) AS mx,
           coalesce(atan2(sum(ticks * sin(2 * pi() * y / h)), sum(ticks * cos(2 * pi() * y / h))) * any_value(h)
                    / (2 * pi()), sum(ticks * y) / sum(ticks)) AS my
    FROM stay, size GROUP BY agent_id
), away AS (
    SELECT s.*, s.x - m.mx - coalesce(m.w * round((s.x - m.mx) / m.w), 0) AS dx,
           s.y - m.my - coalesce(m.h * round((s.y - m.my) / m.h), 0) AS dy
    FROM stay s JOIN middle m USING (agent_id)
)
SELECT agent_id, min(tick) AS tick, count(DISTINCT (x, y)) AS cells, sum(ticks)::BIGINT AS ticks,
       sqrt(sum(ticks * (dx * dx + dy * dy)) / sum(ticks)) AS radius
FROM away GROUP BY agent_id
"""
_GIVING = "count(*) AS transfers, sum(amount) AS amount, count(DISTINCT agent_id) AS {who}"
_COST = """count(*) AS turns, sum(prompt_tokens)::BIGINT AS prompt_tokens, sum(cached_tokens)::BIGINT AS cached_tokens,
sum(completion_tokens)::BIGINT AS completion_tokens, avg(latency) AS mean_latency,
quantile_cont(latency, 0.95) AS latency_95, count(*) FILTER (stage IN ('gave_up', 'late', 'failed')) AS failures,
sum(cost) AS cost"""


def reciprocity(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """How much of what is given comes back from whom it went to."""
    totals = """count(*) AS pairs, count(*) FILTER (mutual) AS mutual, sum(given) AS given,
                sum(returned) / nullif(sum(given), 0) AS reciprocity"""
    return grouped(RECIPROCITY, totals)(con, by)


def home_range(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """How far from the middle of their lives agents are, on a torus if the world is one."""
    if by == "agent":
        return table(con.sql(PLACES).order("agent_id"))
    return grouped(PLACES, "count(*) AS agents, avg(cells) AS mean_cells, avg(radius) AS mean_radius")(con, by)


MEASURES = (
    Measure(
        "activity",
        "Turns and what became of them",
        "decisions by outcome",
        "turns",
        "counted",
        grouped(
            "SELECT tick, agent_id, outcome, action FROM decisions",
            "count(*) AS turns, count(*) FILTER (outcome = 'done') AS done, "
            "count(*) FILTER (outcome = 'rejected') AS rejected, count(*) FILTER (outcome = 'late') AS late, "
            "count(*) FILTER (outcome = 'failed') AS failed, entropy(action) AS action_entropy",
        ),
    ),
    Measure(
        "messages",
        "Messages",
        "messages, their length, and who hears them",
        "messages",
        "counted",
        grouped(
            "SELECT tick, agent_id, text, listeners FROM messages WHERE agent_id IS NOT NULL",
            "count(*) AS messages, avg(length(text)) AS mean_characters, avg(listeners) AS mean_listeners",
        ),
        ("said", "heard"),
    ),
    Measure(
        "giving",
        "Giving",
        "transfers that the giver chose, and their sum",
        "energy",
        "counted",
        grouped("SELECT tick, agent_id, amount FROM events WHERE kind = 'energy_given'", _GIVING.format(who="givers")),
        ("energy_given",),
    ),
    Measure(
        "reciprocity",
        "Reciprocity of giving",
        "r = sum_ij min(w_ij, w_ji) / sum_ij w_ij",
        "share",
        "Squartini et al. 2013",
        reciprocity,
        ("energy_given",),
        by=("agent", "cohort"),
    ),
    Measure(
        "aggression",
        "Aggression",
        "transfers that the taker chose, and their sum",
        "energy",
        "counted",
        grouped("SELECT tick, agent_id, amount FROM events WHERE kind = 'energy_taken'", _GIVING.format(who="takers")),
        ("energy_taken",),
    ),
    Measure(
        "home_range",
        "Territory",
        "cells; radius = root of the mean squared distance from the mean place, "
        "each place weighted by the ticks spent there",
        "cells",
        "radius of gyration; circular mean on a torus",
        home_range,
        ("moved",),
        by=("agent", "cohort"),
    ),
    Measure(
        "cost",
        "Cost of thinking",
        "sums over turns that went to a model",
        "tokens, ms",
        "counted",
        grouped("SELECT * FROM calls", _COST),
    ),
)

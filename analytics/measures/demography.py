"""Who lives, how long, and with how many descendants."""

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.analytics.measures.measure import Measure, grouped, library, table

LIVES = """
SELECT coalesce(a.cohort, '') AS cohort, coalesce(a.died, t.last) - a.born AS age, a.died IS NOT NULL AS seen,
       count(*) AS n
FROM agents a, (SELECT max(tick) AS last FROM ticks) t GROUP BY ALL ORDER BY ALL
"""
LINEAGES = """
WITH RECURSIVE line AS (
    SELECT agent_id AS founder, agent_id, 0 AS depth FROM agents WHERE parent_id IS NULL
    UNION ALL
    SELECT l.founder, a.agent_id, l.depth + 1 FROM line l JOIN agents a ON a.parent_id = l.agent_id
)
SELECT l.founder AS agent_id, f.cohort, f.born AS tick, count(*) AS size, max(l.depth) AS depth,
       count(*) FILTER (a.died IS NULL) AS alive
FROM line l JOIN agents a USING (agent_id) JOIN agents f ON f.agent_id = l.founder GROUP BY ALL ORDER BY 1
"""


def survival(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Kaplan-Meier's curve with its 95 % interval: who still lives is censored at the last tick."""
    fitter = library("lifelines").KaplanMeierFitter
    lives = con.sql(LIVES).df()
    groups = [(None, lives)] if by is None else list(lives.groupby("cohort"))
    return pa.concat_tables([_curve(fitter(), rows, name) for name, rows in groups if len(rows)] or [_EMPTY])


_EMPTY = pa.table(
    {
        n: pa.array([], pa.string() if n == "cohort" else pa.float64())
        for n in ("cohort", "age", "at_risk", "deaths", "survival", "low", "high")
    }
)


def _curve(fitter: object, rows: object, name: str | None) -> pa.Table:
    fitter.fit(rows["age"], rows["seen"], weights=rows["n"])  # type: ignore[attr-defined, index]
    events = fitter.event_table  # type: ignore[attr-defined]
    curve = fitter.survival_function_.iloc[:, 0]  # type: ignore[attr-defined]
    bounds = fitter.confidence_interval_  # type: ignore[attr-defined]
    columns = {
        "age": curve.index,
        "at_risk": events["at_risk"],
        "deaths": events["observed"],
        "survival": curve,
        "low": bounds.iloc[:, 0],
        "high": bounds.iloc[:, 1],
    }
    named = {"cohort": pa.array([name] * len(curve), pa.string())}
    return pa.table({**named, **{k: pa.array(v.to_numpy(), pa.float64()) for k, v in columns.items()}})


def lineages(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Each founder's line; or over all, or by cohort: how many lines, how large, how many of them live."""
    found = con.sql(LINEAGES)
    if by == "agent":
        return table(found)
    totals = """count(*) AS lineages, avg(size) AS mean_size, max(size) AS largest, max(depth) AS depth,
                count(*) FILTER (alive > 0) AS living"""
    if by == "cohort":
        return table(found.aggregate(f"cohort, {totals}", "cohort").order("cohort"))
    return table(found.aggregate(totals))


MEASURES = (
    Measure(
        "population",
        "Population",
        "agents alive at the end of a tick",
        "agents",
        "counted",
        grouped(
            "SELECT tick, population FROM ticks",
            "avg(population) AS mean, min(population) AS least, "
            "max(population) AS most, max_by(population, tick) AS last",
        ),
        by=("tick",),
    ),
    Measure(
        "survival",
        "Survival curve",
        "S(t) = prod over ages a <= t of (1 - deaths_a / at_risk_a)",
        "share",
        "Kaplan and Meier 1958; lifelines",
        survival,
        by=("cohort",),
    ),
    Measure(
        "age_at_death",
        "Age at death",
        "tick of death - tick of birth",
        "ticks",
        "counted",
        grouped(
            "SELECT died AS tick, agent_id, died - born AS age FROM agents WHERE died IS NOT NULL",
            "count(*) AS deaths, avg(age) AS mean, median(age) AS median, min(age) AS least, max(age) AS most",
        ),
    ),
    Measure(
        "births",
        "Births per agent",
        "children / agents",
        "children",
        "counted",
        grouped(
            "SELECT a.born AS tick, a.agent_id, count(c.agent_id) AS children FROM agents a "
            "LEFT JOIN agents c ON c.parent_id = a.agent_id GROUP BY ALL",
            "count(*) AS agents, sum(children)::BIGINT AS children, avg(children) AS per_agent, max(children) AS most",
        ),
        by=("agent", "cohort"),
    ),
    Measure(
        "lineages",
        "Lineage sizes",
        "size = the founder and all its descendants",
        "agents",
        "counted",
        lineages,
        by=("agent", "cohort"),
    ),
)

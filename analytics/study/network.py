"""Who had to do with whom in a window, signed and weighted, and which communities that makes."""

from duckdb import DuckDBPyConnection
from networkx import Graph
from networkx.algorithms.community import louvain_communities

from ethnos.analytics.asking import Row, rows

WEIGHTS = {"heard": 0.5, "energy_given": 1.0, "energy_taken": -1.0, "reproduced": 10.0, "artifact_handed_over": 5.0}
"""What one event, or one unit of energy that changed hands, adds to an edge."""
BY_AMOUNT = ("energy_given", "energy_taken")
EDGES = """
WITH per_kind AS (
    SELECT CASE WHEN kind = 'heard' THEN target_id ELSE agent_id END AS source,
           CASE WHEN kind = 'heard' THEN agent_id ELSE target_id END AS target, kind,
           count(*) AS n, CAST(CASE WHEN kind IN (SELECT unnest($by_amount)) THEN sum(coalesce(amount, 0))
           ELSE count(*) END AS DOUBLE) AS units, min(seq) AS first_seq, max(seq) AS last_seq
    FROM events WHERE kind IN (SELECT unnest($kinds)) AND tick BETWEEN $first AND $last
      AND agent_id IS NOT NULL AND target_id IS NOT NULL AND agent_id <> target_id
    GROUP BY source, target, kind
)
SELECT CAST($window AS BIGINT) AS window_no, source, target, kind, units, n, first_seq, last_seq FROM per_kind
ORDER BY source, target, kind
"""


def edges(con: DuckDBPyConnection, window: int, first: int, last: int) -> list[Row]:
    """Edges by kind of event between two ticks: window, source, target, kind, weight, n, first_seq, last_seq."""
    values = {
        "kinds": list(WEIGHTS),
        "by_amount": list(BY_AMOUNT),
        "first": first,
        "last": last,
        "window": window,
    }
    return [
        {
            "window": r["window_no"],
            **{k: r[k] for k in ("source", "target", "kind")},
            "weight": r["units"] * WEIGHTS[r["kind"]],
            **{k: r[k] for k in ("n", "first_seq", "last_seq")},
        }
        for r in rows(con, EDGES, values)
    ]


def communities(found: list[Row], window: int) -> list[list[int]]:
    """Groups of three and more that are bound by positive ties (Louvain, Blondel et al. 2008), the largest first."""
    ties: dict[tuple[int, int], float] = {}
    for e in found:
        pair = (min(e["source"], e["target"]), max(e["source"], e["target"]))
        ties[pair] = ties.get(pair, 0.0) + e["weight"]
    graph = Graph()
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in sorted(ties.items()) if w > 0)
    if not graph:
        return []
    groups = [sorted(g) for g in louvain_communities(graph, seed=window) if len(g) >= 3]
    return sorted(groups, key=lambda g: (-len(g), g))


__all__ = ["WEIGHTS", "communities", "edges"]

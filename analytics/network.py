"""Who has to do with whom: a signed weighted network of interactions, its communities and its structure.

Every edge names its evidence: how many rows, the first and the last `seq`, and `evidence` returns them all.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

import networkx as nx
import pyarrow as pa
from duckdb import DuckDBPyConnection

WEIGHTS: Mapping[str, float] = {
    "message": 0.5,
    "presence": 0.1,
    "gift": 1.0,
    "taking": -1.0,
    "parent": 10.0,
    "handover": 5.0,
}
"""Per message heard, per tick side by side, per unit given, per unit taken, per child, per artifact handed over."""
SEED = 0
TIES = 8
"""Overlapping communities are sought among the strongest ties of each agent, as many as this: cliques explode."""

CONTACTS = """
SELECT 'message' AS kind, target_id AS source, agent_id AS target, 1.0 AS amount, tick, seq FROM events
WHERE kind = 'heard'
UNION ALL SELECT 'gift', agent_id, target_id, amount, tick, seq FROM events WHERE kind = 'energy_given'
UNION ALL SELECT 'taking', agent_id, target_id, amount, tick, seq FROM events WHERE kind = 'energy_taken'
UNION ALL SELECT 'parent', target_id, agent_id, 1.0, tick, seq FROM events WHERE kind = 'born'
UNION ALL SELECT 'handover', agent_id, target_id, 1.0, tick, seq FROM events WHERE kind = 'artifact_handed_over'
"""
PRESENCE = """
WITH size AS (SELECT min(CAST(data ->> 'width' AS DOUBLE)) AS w, min(CAST(data ->> 'height' AS DOUBLE)) AS h
              FROM events WHERE kind = 'world_made'),
moved AS (SELECT agent_id, tick, max(seq) AS seq, max_by(x, seq) AS x, max_by(y, seq) AS y FROM events
          WHERE kind IN ('born', 'settled', 'moved') AND x IS NOT NULL AND y IS NOT NULL AND agent_id IS NOT NULL
          GROUP BY ALL),
stay AS (SELECT *, coalesce(lead(tick) OVER (PARTITION BY agent_id ORDER BY tick), 1 + (SELECT max(tick) FROM ticks))
         AS next FROM moved),
spot AS (SELECT s.agent_id, s.seq, s.x, s.y, unnest(range(s.tick, least(s.next, coalesce(a.died, s.next)))) AS tick
         FROM stay s JOIN agents a USING (agent_id)),
near AS (SELECT s.*, coalesce((s.x + i + w) % w, s.x + i) AS nx, coalesce((s.y + j + h) % h, s.y + j) AS ny
         FROM spot s, size, range(-1, 2) r(i), range(-1, 2) q(j))
SELECT DISTINCT 'presence' AS kind, least(n.agent_id, s.agent_id) AS source, greatest(n.agent_id, s.agent_id) AS target,
       1.0 AS amount, s.tick, greatest(n.seq, s.seq) AS seq
FROM near n JOIN spot s ON s.tick = n.tick AND s.x = n.nx AND s.y = n.ny AND s.agent_id <> n.agent_id
"""
SUMMED = """
SELECT tick // $size AS window, source, target, c.kind, sum(c.amount) * any_value(w.weight) AS weight, count(*) AS n,
       min(seq) AS first_seq, max(seq) AS last_seq
FROM (SELECT * FROM contacts UNION ALL SELECT * FROM presence) c
JOIN (SELECT unnest($kinds) AS kind, unnest($weights) AS weight) w ON w.kind = c.kind
WHERE source IS NOT NULL AND target IS NOT NULL AND source <> target
GROUP BY tick // $size, source, target, c.kind ORDER BY 1, 2, 3, 4
"""
FOUND = """
SELECT c.tick, c.seq, c.kind, c.amount FROM (SELECT * FROM contacts UNION ALL SELECT * FROM presence) c
WHERE source = $source AND target = $target AND c.kind = $kind AND tick BETWEEN $first AND $last ORDER BY tick, seq
"""
_FOREVER = 2**62


def edges(con: DuckDBPyConnection, weights: Mapping[str, float] | None = None, window: int | None = None) -> pa.Table:
    """The network: window, source, target, kind, weight, n (rows of evidence), first_seq, last_seq.

    Windows of so many ticks are numbered from 0; without it there is one. `weights` changes some of `WEIGHTS`; a
    weight of 0 leaves that kind out. To be side by side is to be at most one cell apart, diagonals too, at the end of
    a tick; its edges go from the lower id to the higher, and its evidence is the later of both arrivals.
    """
    weighed = {k: float(v) for k, v in {**WEIGHTS, **(weights or {})}.items() if v}
    _prepare(con)
    values = {"size": window or _FOREVER, "kinds": list(weighed), "weights": list(weighed.values())}
    return con.sql(SUMMED, params=values).to_arrow_table()


def evidence(
    con: DuckDBPyConnection, source: int, target: int, kind: str, first: int = 0, last: int = _FOREVER
) -> pa.Table:
    """The rows behind one edge between two ticks: tick, seq, kind, amount."""
    _prepare(con)
    values = {"source": source, "target": target, "kind": kind, "first": first, "last": last}
    return con.sql(FOUND, params=values).to_arrow_table()


def _prepare(con: DuckDBPyConnection) -> None:
    con.sql(CONTACTS).create_view("contacts", replace=True)
    con.sql(PRESENCE).create_view("presence", replace=True)


def graphs(found: pa.Table) -> dict[int, nx.Graph]:
    """For each window an undirected graph: `weight` is the sum over kinds and both directions."""
    made: dict[int, nx.Graph] = {}
    for row in found.to_pylist():
        graph = made.setdefault(row["window"], nx.Graph())
        a, b = sorted((row["source"], row["target"]))
        before = graph.get_edge_data(a, b, {"weight": 0.0})["weight"]
        graph.add_edge(a, b, weight=before + row["weight"])
    return {w: _ordered(g) for w, g in sorted(made.items())}


def _ordered(graph: nx.Graph) -> nx.Graph:
    """The same graph with nodes and edges in order: what is found in it then depends on nothing else."""
    ordered = nx.Graph()
    ordered.add_nodes_from(sorted(graph))
    ordered.add_edges_from(sorted((*sorted((a, b)), d) for a, b, d in graph.edges(data=True)))
    return ordered


def _part(graph: nx.Graph, sign: int) -> nx.Graph:
    """The ties of one sign, with their strength as weight."""
    part = nx.Graph()
    part.add_nodes_from(graph)
    part.add_weighted_edges_from((a, b, abs(w)) for a, b, w in graph.edges(data="weight") if w * sign > 0)
    return part


def communities(found: pa.Table) -> pa.Table:
    """Communities among positive ties: window, method, community, agent.

    `louvain` (Blondel et al. 2008) gives each agent one; `cliques` (3-clique percolation, Palla et al. 2005) some
    agents several and others none. They are numbered by size, then by the lowest id.
    """
    rows = []
    for window, graph in graphs(found).items():
        good = _part(graph, 1)
        for method, groups in (("louvain", _louvain(good)), ("cliques", _cliques(good))):
            ranked = sorted((sorted(g) for g in groups), key=lambda g: (-len(g), g))
            rows += [(window, method, i, agent) for i, group in enumerate(ranked) for agent in group]
    return _table(rows, {"window": pa.int64(), "method": pa.string(), "community": pa.int64(), "agent": pa.int64()})


def _louvain(graph: nx.Graph) -> Sequence[Iterable[int]]:
    return list(nx.community.louvain_communities(graph, seed=SEED)) if graph else []


def _cliques(graph: nx.Graph) -> Sequence[Iterable[int]]:
    strong = nx.Graph()
    for node in graph:
        ties = sorted(graph[node].items(), key=lambda tie: (-tie[1]["weight"], tie[0]))
        strong.add_edges_from((node, other) for other, _ in ties[:TIES])
    return list(nx.community.k_clique_communities(strong, 3))


def structure(found: pa.Table, grouped: pa.Table) -> pa.Table:
    """One row per window: modularity, reciprocity by sign, clustering, entropy of the partition, negative cuts.

    Reciprocity is the share of ordered pairs with a tie of that sign whose reverse has one, too. Negative cuts: what
    share of the weight of negative ties runs between communities (1: all quarrels are with others). Entropy: Shannon's
    of the communities' shares, in nats. The partition is Louvain's.
    """
    groups = _partitions(grouped)
    rows = [_structure(w, g, groups.get(w, []), found) for w, g in graphs(found).items()]
    whole, real = pa.int64(), pa.float64()
    columns = {"window": whole, "agents": whole, "ties": whole, "communities": whole}
    names = ("modularity", "entropy", "clustering", "negative_cuts", "reciprocity_positive", "reciprocity_negative")
    return _table(rows, {**columns, **dict.fromkeys(names, real)})


def _structure(window: int, graph: nx.Graph, groups: Sequence[set[int]], found: pa.Table) -> tuple[Any, ...]:
    good, bad = _part(graph, 1), _part(graph, -1)
    of = {a: i for i, g in enumerate(groups) for a in g}
    hostile = [(of[a] != of[b], w) for a, b, w in bad.edges(data="weight")]
    total = sum(w for _, w in hostile)
    cut = sum(w for parted, w in hostile if parted) / total if total else None
    modularity = nx.community.modularity(good, groups) if good.size() else None
    shares = [len(g) / len(graph) for g in groups]
    entropy = -sum(p * log(p) for p in shares) + 0.0
    clustering = nx.average_clustering(good) if len(good) else None
    both = (_reciprocity(found, window, 1), _reciprocity(found, window, -1))
    return window, len(graph), graph.size(), len(groups), modularity, entropy, clustering, cut, *both


def _reciprocity(found: pa.Table, window: int, sign: int) -> float | None:
    """Presence has no direction and does not count."""
    pairs = {
        (r["source"], r["target"])
        for r in found.to_pylist()
        if r["window"] == window and r["weight"] * sign > 0 and r["kind"] != "presence"
    }
    return sum((b, a) in pairs for a, b in pairs) / len(pairs) if pairs else None


def participation(found: pa.Table, grouped: pa.Table) -> pa.Table:
    """Each agent's participation coefficient, 1 - sum over communities of (ties there / all ties)^2, positive ties.

    Guimera and Amaral 2005: 0 if all its ties are within one community.
    """
    groups, rows = _partitions(grouped), []
    for window, graph in graphs(found).items():
        of = {a: i for i, g in enumerate(groups.get(window, [])) for a in g}
        good = _part(graph, 1)
        for node in good:
            there: dict[int, float] = {}
            for other, tie in good[node].items():
                there[of[other]] = there.get(of[other], 0.0) + tie["weight"]
            total = sum(there.values())
            rows.append((window, node, 1 - sum((t / total) ** 2 for t in there.values()) if total else None))
    return _table(rows, {"window": pa.int64(), "agent": pa.int64(), "participation": pa.float64()})


def changes(grouped: pa.Table, least: float = 0.3) -> pa.Table:
    """What becomes of Louvain's communities from one window to the next: window, change, before, after, jaccard.

    Two are matched if they share at least `least` of the members of both together (Jaccard). Who has no match before
    has `formed`, none after has `dissolved`; several before: `merged`; several after: `split`; else it `stayed`.
    """
    windows, rows = _partitions(grouped), []
    for earlier, later in zip(list(windows), list(windows)[1:], strict=False):
        rows += _changes(later, windows[earlier], windows[later], least)
    kinds = {"window": pa.int64(), "change": pa.string(), "before": pa.int64(), "after": pa.int64()}
    return _table(rows, {**kinds, "jaccard": pa.float64()})


def _changes(window: int, before: Sequence[set[int]], after: Sequence[set[int]], least: float) -> list[tuple[Any, ...]]:
    alike = {(i, j): len(a & b) / len(a | b) for i, a in enumerate(before) for j, b in enumerate(after)}
    pairs = {p: s for p, s in alike.items() if s >= least}
    forward, backward = [i for i, _ in pairs], [j for _, j in pairs]
    rows: list[tuple[Any, ...]] = []
    for (i, j), score in pairs.items():
        change = "merged" if backward.count(j) > 1 else "split" if forward.count(i) > 1 else "stayed"
        rows.append((window, change, i, j, score))
    rows += [(window, "dissolved", i, None, None) for i in range(len(before)) if i not in forward]
    return rows + [(window, "formed", None, j, None) for j in range(len(after)) if j not in backward]


def _partitions(grouped: pa.Table) -> dict[int, list[set[int]]]:
    """Louvain's communities of each window, as sets, by their numbers."""
    found: dict[int, list[set[int]]] = {}
    for row in grouped.to_pylist():
        if row["method"] == "louvain":
            groups = found.setdefault(row["window"], [])
            groups.extend(set() for _ in range(row["community"] + 1 - len(groups)))
            groups[row["community"]].add(row["agent"])
    return dict(sorted(found.items()))


def _table(rows: Sequence[tuple[Any, ...]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(v, t) for v, t in zip(values, columns.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))

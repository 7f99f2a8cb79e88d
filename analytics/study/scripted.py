"""The coder without a model: what a codebook needs, looked for in the record by SQL."""

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import rows
from ethnos.analytics.study.annotation import Annotation, Subject
from ethnos.analytics.study.codebook import MOST_EVIDENCE, Code, Codebook

ROLES = """
CREATE OR REPLACE TEMP TABLE study_roles AS
SELECT agent_id AS agent, target_id AS other, 'agent' AS role, seq, tick, kind FROM events
WHERE tick BETWEEN $first AND $last AND agent_id IS NOT NULL AND kind IN (SELECT unnest($kinds))
UNION ALL
SELECT target_id, agent_id, 'target', seq, tick, kind FROM events
WHERE tick BETWEEN $first AND $last AND target_id IS NOT NULL AND kind IN (SELECT unnest($kinds))
"""
CODED = """
WITH mine AS (
    SELECT r.*, CASE WHEN $both THEN other END AS partner FROM study_roles r
    WHERE kind IN (SELECT unnest($kinds)) AND ($role = 'either' OR role = $role)
      AND (NOT $both OR other <> agent)
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY agent, partner, other, role ORDER BY seq) AS nth FROM mine
), held AS (
    SELECT agent, partner FROM ranked GROUP BY ALL
    HAVING count(DISTINCT seq) >= $least AND count(DISTINCT other) >= $others
       AND (NOT $both OR count(DISTINCT role) = 2)
), cited AS (
    SELECT r.agent, r.partner, r.seq, r.tick,
           row_number() OVER (PARTITION BY r.agent, r.partner ORDER BY nth, seq) AS place
    FROM ranked r JOIN held h ON h.agent = r.agent AND h.partner IS NOT DISTINCT FROM r.partner
)
SELECT agent, partner, list(DISTINCT seq ORDER BY seq) AS evidence, min(tick) AS first, max(tick) AS last
FROM cited WHERE place <= $most GROUP BY ALL ORDER BY agent, partner
"""
INSIDE = """
WITH member AS (SELECT unnest($communities) AS community, unnest($members) AS agent), mine AS (
    SELECT a.community, r.seq, r.tick, r.other,
           row_number() OVER (PARTITION BY a.community, r.other ORDER BY r.seq) AS nth
    FROM study_roles r JOIN member a ON a.agent = r.agent
    JOIN member b ON b.agent = r.other AND b.community = a.community
    WHERE r.role = 'agent' AND r.kind IN (SELECT unnest($kinds))
), held AS (
    SELECT community FROM mine GROUP BY community HAVING count(*) >= $least AND count(DISTINCT other) >= $others
), cited AS (
    SELECT *, row_number() OVER (PARTITION BY community ORDER BY nth, seq) AS place
    FROM mine JOIN held USING (community)
)
SELECT community, list(seq ORDER BY seq) AS evidence, min(tick) AS first, max(tick) AS last
FROM cited WHERE place <= $most GROUP BY community ORDER BY community
"""


def coded(
    con: DuckDBPyConnection, book: Codebook, window: int, first: int, last: int, communities: Sequence[Subject]
) -> list[Annotation]:
    """Every code with `needs` that the events between two ticks show, of agents and of communities."""
    codes = [c for c in book.codes if c.needs]
    kinds = sorted({k for c in codes if c.needs for k in c.needs.kinds})
    con.execute(ROLES, {"first": first, "last": last, "kinds": kinds})
    found: list[Annotation] = []
    for code in codes:
        if code.subject == "agent":
            found += _agents(con, code, book, window)
        else:
            found += _communities(con, code, book, communities)
    return found


def _agents(con: DuckDBPyConnection, code: Code, book: Codebook, window: int) -> list[Annotation]:
    needs = code.needs
    assert needs is not None
    values = {
        "kinds": needs.kinds,
        "role": needs.role,
        "both": needs.both_ways,
        "least": needs.at_least,
        "others": needs.others,
        "most": MOST_EVIDENCE,
    }
    return [
        _annotation(Subject("agent", r["agent"], (r["agent"],), window), code, book, r)
        for r in rows(con, CODED, values)
    ]


def _communities(
    con: DuckDBPyConnection, code: Code, book: Codebook, communities: Sequence[Subject]
) -> list[Annotation]:
    needs = code.needs
    assert needs is not None
    values = {
        "kinds": needs.kinds,
        "communities": [i for i, c in enumerate(communities) for _ in c.members],
        "members": [m for c in communities for m in c.members],
        "least": needs.at_least,
        "others": needs.others,
        "most": MOST_EVIDENCE,
    }
    found = rows(con, INSIDE, values) if communities else []
    return [_annotation(communities[r["community"]], code, book, r) for r in found]


def _annotation(s: Subject, code: Code, book: Codebook, r: dict[str, object]) -> Annotation:
    first, last, evidence = r["first"], r["last"], r["evidence"]
    assert isinstance(first, int) and isinstance(last, int) and isinstance(evidence, list)
    note = f"{code.meaning} {len(evidence)} events."
    claim = (s.kind, s.id, s.members, s.window, code.name, first, last, tuple(evidence), 1.0, note)
    return Annotation(*claim, coder="scripted", instrument="rule", model="", prompt="", codebook=book.id)


__all__ = ["coded"]

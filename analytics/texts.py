"""Artifacts: the texts that agents leave behind, their versions, their readers, and what came of what."""

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows

LIST = """
SELECT f.artifact_id, f.name, a.name AS author, f.author_id, f.created, f.versions, f.readers, f.gone, f.text
FROM artifacts f LEFT JOIN agents a ON a.agent_id = f.author_id
WHERE f.created <= $tick AND ($words = '' OR contains(lower(f.text || f.name), lower($words)))
ORDER BY f.readers DESC, f.versions DESC, f.artifact_id LIMIT $rows OFFSET $skip
"""
VERSIONS = """
SELECT e.tick, e.seq, CAST(e.data ->> 'version' AS BIGINT) AS version, e.agent_id, a.name AS author, e.text
FROM events e LEFT JOIN agents a ON a.agent_id = e.agent_id
WHERE e.artifact_id = $artifact AND e.kind IN ('artifact_created', 'artifact_modified') ORDER BY e.seq LIMIT 1000
"""
READERS = """
SELECT e.agent_id, a.name, count(*) AS times, min(e.tick) AS first, max(e.tick) AS last
FROM events e LEFT JOIN agents a ON a.agent_id = e.agent_id
WHERE e.artifact_id = $artifact AND e.kind = 'artifact_read' GROUP BY ALL ORDER BY first, e.agent_id LIMIT 500
"""
ROOTS = """
WITH made AS (SELECT artifact_id, agent_id, tick FROM events WHERE kind = 'artifact_created' AND agent_id IS NOT NULL),
reads AS (
    SELECT r.agent_id, r.artifact_id, r.tick FROM events r WHERE r.kind = 'artifact_read'
)
SELECT m.artifact_id AS child, r.artifact_id AS parent, max(r.tick) AS read, m.tick AS made
FROM made m JOIN reads r ON r.agent_id = m.agent_id AND r.tick <= m.tick AND r.tick >= m.tick - $ticks
WHERE r.artifact_id <> m.artifact_id AND (m.artifact_id = $artifact OR r.artifact_id = $artifact)
GROUP BY ALL ORDER BY made, parent LIMIT 200
"""


def texts(con: DuckDBPyConnection, tick: int, words: str = "", limit: int = 100, skip: int = 0) -> list[Row]:
    """Artifacts made up to a tick, the most read first. Names and texts are untrusted."""
    return rows(con, LIST, {"tick": tick, "words": words, "rows": limit, "skip": skip})


def versions(con: DuckDBPyConnection, artifact: int) -> list[Row]:
    """Every version of one artifact, with who wrote it and when."""
    return rows(con, VERSIONS, {"artifact": artifact})


def readers(con: DuckDBPyConnection, artifact: int) -> list[Row]:
    """Who read it, how often, and from when to when."""
    return rows(con, READERS, {"artifact": artifact})


def kin(con: DuckDBPyConnection, artifact: int, ticks: int = 20) -> list[Row]:
    """Artifacts whose author had read another in the `ticks` before making it: child, parent, read, made.

    Those are ways an idea may have gone, no proof that it did: texts are not compared.
    """
    return rows(con, ROOTS, {"artifact": artifact, "ticks": ticks})

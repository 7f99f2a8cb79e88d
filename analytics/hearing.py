"""Who hears whom: the network of exposure, from `heard` events alone, and the evidence for each of its edges."""

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows

EDGES = """
SELECT h.target_id AS speaker_id, s.name AS speaker, h.agent_id AS listener_id, l.name AS listener, count(*) AS heard,
       min(h.tick) AS first, max(h.tick) AS last
FROM events h LEFT JOIN agents s ON s.agent_id = h.target_id LEFT JOIN agents l ON l.agent_id = h.agent_id
WHERE h.kind = 'heard' AND h.tick BETWEEN $first AND $last AND h.target_id IS NOT NULL
GROUP BY ALL ORDER BY heard DESC, speaker_id, listener_id LIMIT $rows
"""
EVIDENCE = """
SELECT h.tick, h.seq, s.text, CAST(h.data ->> 'said' AS BIGINT) AS said
FROM events h LEFT JOIN events s ON s.seq = CAST(h.data ->> 'said' AS BIGINT)
WHERE h.kind = 'heard' AND h.target_id = $speaker AND h.agent_id = $listener AND h.tick BETWEEN $first AND $last
ORDER BY h.seq LIMIT $rows
"""


def edges(con: DuckDBPyConnection, first: int, last: int, limit: int = 400) -> list[Row]:
    """Who heard whom how often between two ticks, the strongest first."""
    return rows(con, EDGES, {"first": first, "last": last, "rows": limit})


def evidence(
    con: DuckDBPyConnection, speaker: int, listener: int, first: int, last: int, limit: int = 100
) -> list[Row]:
    """The events behind one edge, with the words that were heard. Untrusted."""
    values = {"speaker": speaker, "listener": listener, "first": first, "last": last, "rows": limit}
    return rows(con, EVIDENCE, values)

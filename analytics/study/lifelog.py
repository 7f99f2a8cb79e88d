"""Life logs: every event that concerns an agent, with its `seq`, in the order in which it happened.

An event concerns whom it happened to, the other one, and whose decision caused it. Of what the world does by itself, an
agent's log has the making of the world, what all living used up, the food it ate later, and the end of artifacts that
it had written, read or held.
"""

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows

CONCERNED = """
WITH wanted AS (SELECT * FROM agents WHERE agent_id IN (SELECT unnest($agents))),
direct AS (
    SELECT agent_id AS agent, seq, 'self' AS role FROM events
    WHERE agent_id IN (SELECT unnest($agents)) AND tick BETWEEN $first AND $last
    UNION SELECT target_id, seq, 'other' FROM events
    WHERE target_id IN (SELECT unnest($agents)) AND tick BETWEEN $first AND $last
    UNION SELECT actor_id, seq, 'cause' FROM events
    WHERE actor_id IN (SELECT unnest($agents)) AND tick BETWEEN $first AND $last
),
touched AS (
    SELECT DISTINCT agent_id AS agent, artifact_id FROM events
    WHERE artifact_id IS NOT NULL AND agent_id IN (SELECT unnest($agents))
    UNION SELECT target_id, artifact_id FROM events
    WHERE artifact_id IS NOT NULL AND target_id IN (SELECT unnest($agents))
),
meals AS (
    SELECT agent_id AS agent, x, y, seq FROM events
    WHERE kind = 'ate' AND agent_id IN (SELECT unnest($agents)) AND tick BETWEEN $first AND $last
),
grown AS (
    SELECT agent, max(f.seq) AS seq, m.seq AS eaten, m.x, m.y
    FROM meals m JOIN events f ON f.kind = 'food_spawned' AND f.x = m.x AND f.y = m.y AND f.seq < m.seq GROUP BY ALL
),
ambient AS (
    SELECT w.agent_id AS agent, e.seq, 'world' AS role FROM wanted w JOIN events e
    ON (e.kind = 'world_made' AND w.born BETWEEN $first AND $last)
    OR (e.kind = 'burned' AND e.tick > w.born AND e.tick <= coalesce(w.died, e.tick))
    WHERE e.agent_id IS NULL AND (e.kind = 'world_made' OR e.tick BETWEEN $first AND $last)
    UNION SELECT t.agent, e.seq, 'world' FROM touched t
    JOIN events e ON e.artifact_id = t.artifact_id AND e.agent_id IS NULL
    WHERE e.tick BETWEEN $first AND $last AND e.kind <> 'artifact_created'
    UNION SELECT agent, seq, 'world' FROM grown
    UNION SELECT g.agent, d.seq, 'world' FROM grown g JOIN events d
    ON d.kind = 'food_decayed' AND d.x = g.x AND d.y = g.y AND d.seq > g.seq AND d.seq < g.eaten
    UNION SELECT w.agent_id, e.seq, 'world' FROM wanted w JOIN events e
    ON e.kind IN ('intervened', 'intervention_refused') AND e.agent_id IS NULL AND e.tick BETWEEN $first AND $last
    AND e.tick >= w.born AND e.tick <= coalesce(w.died, e.tick)
),
concerned AS (SELECT * FROM direct UNION ALL SELECT * FROM ambient)
"""
LOG = """
SELECT c.agent, c.role, e.seq, e.tick, e.kind, e.actor_id, e.agent_id, e.target_id, e.artifact_id, e.x, e.y, e.amount,
       coalesce(CASE WHEN e.kind = 'heard' THEN said.text WHEN e.kind = 'artifact_read' THEN read.text END, e.text)
       AS text, e.data
FROM (
    SELECT agent, seq, list_extract(['self', 'other', 'cause', 'world'],
                                    min(list_position(['self', 'other', 'cause', 'world'], role))) AS role
    FROM concerned GROUP BY agent, seq
) c JOIN events e USING (seq)
LEFT JOIN events said ON e.kind = 'heard' AND said.seq = CAST(e.data ->> 'said' AS BIGINT)
LEFT JOIN (
    SELECT artifact_id, CAST(data ->> 'version' AS BIGINT) AS version, any_value(text) AS text FROM events
    WHERE kind IN ('artifact_created', 'artifact_modified') GROUP BY ALL
) read ON e.kind = 'artifact_read' AND read.artifact_id = e.artifact_id
    AND read.version = CAST(e.data ->> 'version' AS BIGINT)
ORDER BY c.agent, e.seq
"""
PAIRS = "SELECT DISTINCT agent, seq FROM concerned WHERE seq IN (SELECT unnest($seqs))"


def log(con: DuckDBPyConnection, agents: Sequence[int], first: int = 0, last: int = 2**40) -> list[Row]:
    """The life logs of one agent, or of all members of a community, between two ticks. Texts are untrusted.

    A row is an event; `role` is self, other, cause or world. What was heard or read has its words in `text`.
    """
    return rows(con, CONCERNED + LOG, {"agents": list(agents), "first": first, "last": last})


def concerns(
    con: DuckDBPyConnection, agents: Sequence[int], seqs: Sequence[int], first: int, last: int
) -> set[tuple[int, int]]:
    """Which of these events are in which of these agents' logs: pairs of agent and `seq`."""
    values = {"agents": list(agents), "seqs": list(seqs), "first": first, "last": last}
    return {(r["agent"], r["seq"]) for r in rows(con, CONCERNED + PAIRS, values)}


def line(row: Row, limit: int = 400) -> str:
    """One line of a log, as a model is shown it: `[seq] tick kind ...`."""
    who = [f"{k}={row[k]}" for k in ("agent_id", "target_id", "artifact_id", "amount") if row[k] is not None]
    text = [repr(row["text"][:limit])] if row["text"] else []
    return " ".join([f"[{row['seq']}]", f"tick {row['tick']}", row["kind"], *who, *text])


__all__ = ["concerns", "line", "log"]

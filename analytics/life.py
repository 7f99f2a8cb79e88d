"""One agent's life, from the record: who it is, where it was, what it thought, said and did."""

import json
from collections.abc import Iterator
from difflib import ndiff
from typing import Any

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, row, rows
from ethnos.errors import QueryError

WHO = """
SELECT a.*, p.name AS parent, (SELECT count(*) FROM decisions d WHERE d.agent_id = a.agent_id) AS decisions,
       (SELECT count(*) FROM decisions d WHERE d.agent_id = a.agent_id AND outcome = 'rejected') AS rejected
FROM agents a LEFT JOIN agents p ON p.agent_id = a.parent_id WHERE a.agent_id = $agent
"""
EVERYBODY = """
SELECT agent_id, name, cohort, generation, born, died FROM agents
WHERE ($words = '' OR contains(lower(name), lower($words)) OR CAST(agent_id AS VARCHAR) = $words)
  AND (died IS NULL OR NOT $living)
ORDER BY died IS NOT NULL, agent_id LIMIT $rows
"""
ANCESTORS = """
WITH RECURSIVE line AS (
    SELECT agent_id, name, parent_id, born, died, 0 AS steps FROM agents WHERE agent_id = $agent
    UNION ALL
    SELECT a.agent_id, a.name, a.parent_id, a.born, a.died, steps + 1 FROM agents a
    JOIN line ON a.agent_id = line.parent_id WHERE steps < 1000
)
SELECT steps, agent_id, name, born, died FROM line ORDER BY steps
"""
DESCENDANTS = """
WITH RECURSIVE line AS (
    SELECT agent_id, name, parent_id, born, died, 0 AS steps FROM agents WHERE agent_id = $agent
    UNION ALL
    SELECT a.agent_id, a.name, a.parent_id, a.born, a.died, steps + 1 FROM agents a
    JOIN line ON a.parent_id = line.agent_id WHERE steps < 1000
)
SELECT steps, agent_id, name, parent_id, born, died FROM line WHERE steps > 0 ORDER BY steps, agent_id LIMIT 500
"""
PATH = """
SELECT tick, x, y, kind FROM events
WHERE agent_id = $agent AND kind IN ('born', 'settled', 'moved') AND x IS NOT NULL AND tick <= $tick
ORDER BY seq DESC LIMIT 2000
"""
ENERGY = """
WITH life AS (SELECT born, coalesce(died, $tick) AS until FROM agents WHERE agent_id = $agent), change AS (
    SELECT tick, amount FROM events WHERE agent_id = $agent AND kind IN ('settled', 'ate', 'energy_taken')
    UNION ALL SELECT tick, amount FROM events WHERE target_id = $agent AND kind = 'energy_given'
    UNION ALL SELECT tick, amount + CAST(data ->> 'endowment' AS DOUBLE) FROM events
              WHERE target_id = $agent AND kind = 'reproduced'
    UNION ALL SELECT tick, -amount FROM events
              WHERE agent_id = $agent AND kind IN ('energy_given', 'artifact_created')
    UNION ALL SELECT tick, -amount FROM events WHERE target_id = $agent AND kind = 'energy_taken'
    UNION ALL SELECT tick, -amount - CAST(data ->> 'cost' AS DOUBLE) FROM events
              WHERE agent_id = $agent AND kind = 'reproduced'
), steps AS (SELECT tick, sum(sum(amount)) OVER (ORDER BY tick) AS had FROM change GROUP BY tick), moments AS (
    SELECT tick FROM ticks, life WHERE tick BETWEEN born AND least(until, $tick)
      AND (tick - born) % greatest(1, (least(until, $tick) - born) // 300) = 0
)
SELECT m.tick, greatest(0, s.had - (m.tick - born + CASE WHEN born > 0 THEN 1 ELSE 0 END)) AS energy
FROM moments m ASOF JOIN steps s ON s.tick <= m.tick, life ORDER BY m.tick
"""
"""In a world that records energy as Terra does; see `ethnos.analytics.grid`."""
HOLDS = """
SELECT artifact_id, name FROM (
    SELECT artifact_id, max_by(kind, seq) AS kind, max_by(coalesce(target_id, agent_id, -1), seq) AS holder
    FROM events WHERE artifact_id IS NOT NULL AND tick <= $tick AND kind IN (
        'artifact_created', 'artifact_picked_up', 'artifact_dropped', 'artifact_handed_over',
        'artifact_destroyed', 'artifact_expired')
    GROUP BY artifact_id
) JOIN artifacts USING (artifact_id)
WHERE kind IN ('artifact_picked_up', 'artifact_handed_over') AND holder = $agent ORDER BY artifact_id
"""
DECISIONS = """
SELECT tick, action, args, message, outcome, reason, mind, latency, CAST(how ->> 'tokens' AS BIGINT) AS prompt_tokens,
       CAST(how ->> 'completion' AS BIGINT) AS completion_tokens, how ->> 'reason' AS because,
       (how -> 'layers') IS NOT NULL AS thought
FROM decisions WHERE agent_id = $agent AND tick <= $tick AND (NOT $refused OR outcome <> 'done')
ORDER BY tick DESC LIMIT $rows
"""
TURN = "SELECT * FROM decisions WHERE agent_id = $agent AND tick = $tick"
MEMORY = """
SELECT tick, memory FROM decisions WHERE agent_id = $agent AND memory IS NOT NULL AND tick <= $tick
ORDER BY tick DESC LIMIT $rows
"""
TALK = """
SELECT * FROM (
    SELECT s.tick, s.seq, 'said' AS way, NULL AS other_id, NULL AS other, s.text, s.listeners
    FROM messages s WHERE s.agent_id = $agent AND s.tick <= $tick
    UNION ALL
    SELECT h.tick, h.seq, 'heard' AS way, h.target_id, a.name, said.text, NULL
    FROM events h JOIN events said ON said.seq = CAST(h.data ->> 'said' AS BIGINT)
    LEFT JOIN agents a ON a.agent_id = h.target_id
    WHERE h.kind = 'heard' AND h.agent_id = $agent AND h.tick <= $tick
) ORDER BY tick DESC, seq DESC LIMIT $rows
"""
LAYER = "SELECT text FROM layers WHERE hash = $hash LIMIT 1"


def everybody(con: DuckDBPyConnection, words: str = "", living: bool = False, limit: int = 200) -> list[Row]:
    """The agents whose name has these words in it, or whose id they are; the living first, or alone."""
    return rows(con, EVERYBODY, {"words": words, "living": living, "rows": limit})


def who(con: DuckDBPyConnection, agent: int) -> Row | None:
    """Name, cohort, parent, generation, birth, death, persona as JSON, and how often it decided."""
    return row(con, WHO, {"agent": agent})


def ancestors(con: DuckDBPyConnection, agent: int) -> list[Row]:
    """Itself, its parent, and so on."""
    return rows(con, ANCESTORS, {"agent": agent})


def descendants(con: DuckDBPyConnection, agent: int) -> list[Row]:
    """Its children, theirs, and so on."""
    return rows(con, DESCENDANTS, {"agent": agent})


def path(con: DuckDBPyConnection, agent: int, tick: int) -> list[Row]:
    """Where it was, the latest first, up to a tick; nothing in a world without places."""
    return rows(con, PATH, {"agent": agent, "tick": tick})


def energy(con: DuckDBPyConnection, agent: int, tick: int) -> list[Row]:
    """Its energy over its life up to a tick, at most 300 points or so."""
    return rows(con, ENERGY, {"agent": agent, "tick": tick})


def holds(con: DuckDBPyConnection, agent: int, tick: int) -> list[Row]:
    """The artifacts that it carries at the end of a tick."""
    return rows(con, HOLDS, {"agent": agent, "tick": tick})


def decisions(con: DuckDBPyConnection, agent: int, tick: int, limit: int = 50, *, refused: bool = False) -> list[Row]:
    """Its turns up to a tick, the latest first; only those that came to nothing if `refused`."""
    return rows(con, DECISIONS, {"agent": agent, "tick": tick, "rows": limit, "refused": refused})


def memories(con: DuckDBPyConnection, agent: int, tick: int, limit: int = 30) -> list[Row]:
    """Its mind's state whenever it changed, the latest first: tick and memory as text, a line for each entry."""
    found = rows(con, MEMORY, {"agent": agent, "tick": tick, "rows": limit})
    return [{"tick": r["tick"], "memory": "\n".join(_entries(_parsed(r["memory"])))} for r in found]


def changed(before: str, after: str) -> str:
    """What changed between two texts, line by line: `+` came, `-` went.

    >>> changed("a", "a\\nb")
    '  a\\n+ b'
    """
    compared = ndiff(before.splitlines(), after.splitlines())
    return "\n".join(entry.rstrip("\n") for entry in compared if not entry.startswith("?"))


def talk(con: DuckDBPyConnection, agent: int, tick: int, limit: int = 100) -> list[Row]:
    """What it said and heard up to a tick, the latest first."""
    return rows(con, TALK, {"agent": agent, "tick": tick, "rows": limit})


def turn(con: DuckDBPyConnection, agent: int, tick: int) -> Row:
    """One turn: what was decided and what became of it, and for a model each layer of its prompt with its text.

    Raises QueryError if it took none in that tick.
    """
    found = row(con, TURN, {"agent": agent, "tick": tick})
    if found is None:
        raise QueryError(f"agent {agent} took no turn in tick {tick}")
    how = _parsed(found["how"])
    how = how if isinstance(how, dict) else {}
    layers = how.get("layers") or []
    return {**found, "how": how, "layers": [_layer(con, one) for one in layers if isinstance(one, list) and one]}


def _layer(con: DuckDBPyConnection, one: list[Any]) -> Row:
    found = row(con, LAYER, {"hash": str(one[-1])})
    return {"name": str(one[0]), "hash": str(one[-1]), "text": found["text"] if found else "(not on the record)"}


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text


def _entries(value: Any, prefix: str = "") -> Iterator[str]:
    """A mind's state as lines that can be compared."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _entries(inner, f"{prefix}{key}: ")
    elif isinstance(value, list):
        for inner in value:
            yield from _entries(inner, f"{prefix}- ")
    else:
        yield f"{prefix}{value}"

"""A grid world at one tick, put together again from its events alone: who stood where, what lay where.

What the events of Terra mean for place and energy is written down in `ethnos.world.scenarios.terra.events`. Any
world that records the same kinds of event can be drawn the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duckdb import DuckDBPyConnection

from ethnos.errors import RecordDamaged
from ethnos.record.directory import Manifest

TRAIL = 10
"""Ticks for which a step stays visible."""

MAX_SIDE = 100_000
NEEDED = {"world_made", "settled", "moved", "food_spawned", "food_decayed", "ate", "remains_left"}


@dataclass(frozen=True)
class Tile:
    """Food on a cell."""

    x: int
    y: int
    energy: float


@dataclass(frozen=True)
class Being:
    """A living agent and where it stands."""

    agent_id: int
    name: str
    cohort: str
    x: int
    y: int
    energy: float


@dataclass(frozen=True)
class Step:
    """A step that a living agent took, so many ticks ago."""

    age: int
    cohort: str
    x0: int
    y0: int
    x: int
    y: int


@dataclass(frozen=True)
class Thing:
    """An artifact that lies on a cell, or is carried by somebody who stands there."""

    artifact_id: int
    name: str
    x: int
    y: int
    carried: bool


@dataclass(frozen=True)
class Call:
    """Something said in this tick, by somebody who still lives."""

    name: str
    cohort: str
    text: str
    x: int
    y: int


@dataclass(frozen=True)
class Scene:
    """All that can be seen of a grid world at the end of a tick."""

    width: int
    height: int
    food: Sequence[Tile]
    beings: Sequence[Being]
    steps: Sequence[Step]
    things: Sequence[Thing]
    calls: Sequence[Call]


LIVING = """
CREATE OR REPLACE TEMP TABLE living AS
WITH place AS (
    SELECT agent_id, arg_max(x, seq) AS x, arg_max(y, seq) AS y FROM events
    WHERE kind IN ('born', 'moved') AND tick <= $tick AND x IS NOT NULL GROUP BY agent_id
), change AS (
    SELECT agent_id, amount FROM events WHERE kind IN ('settled', 'ate', 'energy_taken') AND tick <= $tick
    UNION ALL
    SELECT target_id, amount FROM events WHERE kind = 'energy_given' AND tick <= $tick
    UNION ALL
    SELECT target_id, amount + CAST(data ->> 'endowment' AS DOUBLE) FROM events
    WHERE kind = 'reproduced' AND tick <= $tick
    UNION ALL
    SELECT agent_id, -amount FROM events WHERE kind IN ('energy_given', 'artifact_created') AND tick <= $tick
    UNION ALL
    SELECT target_id, -amount FROM events WHERE kind = 'energy_taken' AND tick <= $tick
    UNION ALL
    SELECT agent_id, -amount - CAST(data ->> 'cost' AS DOUBLE) FROM events
    WHERE kind = 'reproduced' AND tick <= $tick
), energy AS (SELECT agent_id, sum(amount) AS energy FROM change GROUP BY agent_id)
SELECT agent_id, name, cohort, x, y,
       coalesce(energy, 0) - ($tick - born + CASE WHEN born > 0 THEN 1 ELSE 0 END) AS energy
FROM agents JOIN place USING (agent_id) LEFT JOIN energy USING (agent_id)
WHERE born <= $tick AND (died IS NULL OR died > $tick)
  AND x BETWEEN 0 AND $width - 1 AND y BETWEEN 0 AND $height - 1
"""
"""The living with their cells and energy. A tick of life costs 1; founders do not pay for tick 0."""

BEINGS = """
SELECT agent_id, name, cohort, CAST(x AS BIGINT), CAST(y AS BIGINT), energy FROM living ORDER BY agent_id
"""

FOOD = """
SELECT CAST(x AS BIGINT), CAST(y AS BIGINT), sum(CASE WHEN kind IN ('ate', 'food_decayed') THEN -amount ELSE amount END)
FROM events
WHERE kind IN ('food_spawned', 'remains_left', 'food_decayed', 'ate') AND tick <= $tick
  AND x BETWEEN 0 AND $width - 1 AND y BETWEEN 0 AND $height - 1
GROUP BY x, y HAVING sum(CASE WHEN kind IN ('ate', 'food_decayed') THEN -amount ELSE amount END) > 0
ORDER BY y, x
"""

STEPS = """
WITH places AS (
    SELECT agent_id, tick, x, y, lag(x) OVER before AS x0, lag(y) OVER before AS y0 FROM events
    WHERE kind IN ('born', 'moved') AND tick <= $tick AND x IS NOT NULL
    WINDOW before AS (PARTITION BY agent_id ORDER BY seq)
)
SELECT CAST($tick - p.tick AS BIGINT), cohort, CAST(p.x0 AS BIGINT), CAST(p.y0 AS BIGINT),
       CAST(p.x AS BIGINT), CAST(p.y AS BIGINT)
FROM places p JOIN living USING (agent_id)
WHERE p.tick > $tick - $trail AND abs(p.x - p.x0) <= 1 AND abs(p.y - p.y0) <= 1
ORDER BY p.tick, agent_id
"""
"""Steps across the edge of the map are left out: they would be drawn right through it."""

THINGS = """
WITH fate AS (
    SELECT artifact_id, max_by(kind, seq) AS kind, max_by(x, seq) AS x, max_by(y, seq) AS y,
           max_by(coalesce(target_id, agent_id), seq) AS holder
    FROM (SELECT * REPLACE (coalesce(x, -1) AS x, coalesce(y, -1) AS y, coalesce(agent_id, -1) AS agent_id)
          FROM events WHERE artifact_id IS NOT NULL AND tick <= $tick AND kind IN (
              'artifact_created', 'artifact_picked_up', 'artifact_dropped', 'artifact_handed_over',
              'artifact_destroyed', 'artifact_expired'))
    GROUP BY artifact_id
), placed AS (
    SELECT artifact_id, artifacts.name, fate.kind IN ('artifact_picked_up', 'artifact_handed_over') AS carried,
           CASE WHEN carried THEN living.x ELSE fate.x END AS x,
           CASE WHEN carried THEN living.y ELSE fate.y END AS y
    FROM fate JOIN artifacts USING (artifact_id) LEFT JOIN living ON living.agent_id = fate.holder
    WHERE fate.kind NOT IN ('artifact_destroyed', 'artifact_expired')
)
SELECT artifact_id, coalesce(name, ''), CAST(x AS BIGINT), CAST(y AS BIGINT), carried FROM placed
WHERE x BETWEEN 0 AND $width - 1 AND y BETWEEN 0 AND $height - 1 ORDER BY artifact_id
"""

CALLS = """
SELECT name, cohort, text, CAST(living.x AS BIGINT), CAST(living.y AS BIGINT)
FROM events JOIN living USING (agent_id) WHERE kind = 'said' AND tick = $tick ORDER BY seq
"""


def is_grid(manifest: Manifest) -> bool:
    """Whether a run records what a map of it needs."""
    return manifest.kinds.keys() >= NEEDED


def scene(con: DuckDBPyConnection, tick: int) -> Scene:
    """The map at the end of a tick. Raises RecordDamaged if the record does not say how large the world is."""
    width, height = _size(con)
    at = {"tick": tick, "width": width, "height": height}
    con.execute(LIVING, at)
    return Scene(
        width,
        height,
        food=[Tile(*row) for row in _rows(con, FOOD, at)],
        beings=[Being(*row) for row in _rows(con, BEINGS, {})],
        steps=[Step(*row) for row in _rows(con, STEPS, {"tick": tick, "trail": TRAIL})],
        things=[Thing(*row) for row in _rows(con, THINGS, at)],
        calls=[Call(*row) for row in _rows(con, CALLS, {"tick": tick})],
    )


def _size(con: DuckDBPyConnection) -> tuple[int, int]:
    row = con.execute("SELECT width, height FROM world_made ORDER BY seq LIMIT 1").fetchone()
    if row is None or not all(isinstance(side, int) and 1 <= side <= MAX_SIDE for side in row):
        raise RecordDamaged("the record does not say how large its world is")
    return row[0], row[1]


def _rows(con: DuckDBPyConnection, sql: str, values: dict[str, int]) -> list[tuple[Any, ...]]:
    return con.execute(sql, values).fetchall()

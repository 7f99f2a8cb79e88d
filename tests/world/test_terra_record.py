"""From Terra's events alone, in SQL, everything can be told that was ever the case."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ethnos.testing import answers
from ethnos.world.events import COLUMNS
from ethnos.world.scenario import Cohort
from ethnos.world.scenarios.terra import Terra, TerraParams
from ethnos.world.scenarios.terra.minds import Villager
from ethnos.world.scenarios.terra.state import TerraState
from ethnos.world.world import World

TICKS = (0, 1, 60, 149)

WHERE = """
select agent_id, arg_max(x, seq), arg_max(y, seq) from events
where kind in ('born', 'moved') and tick <= $tick and agent_id not in
    (select agent_id from events where kind = 'died' and tick <= $tick)
group by 1 order by 1
"""

ENERGY = """
with flow as (
    select agent_id as id, amount, tick from events where kind in ('settled', 'ate', 'energy_taken')
    union all select agent_id, -amount, tick from events where kind in ('energy_given', 'artifact_created')
    union all select target_id, amount, tick from events where kind = 'energy_given'
    union all select target_id, -amount, tick from events where kind = 'energy_taken'
    union all select agent_id, -amount - (data ->> 'cost')::int, tick from events where kind = 'reproduced'
    union all select target_id, amount + (data ->> 'endowment')::int, tick from events where kind = 'reproduced'
), lived as (
    select agent_id as id, $tick - greatest(tick, 1) + 1 as ticks from events where kind = 'born' and tick <= $tick
    and agent_id not in (select agent_id from events where kind = 'died' and tick <= $tick)
)
select id, sum(amount) - any_value(ticks) from flow join lived using (id) where tick <= $tick group by 1 order by 1
"""

FOOD = """
select x, y, sum(case when kind in ('food_spawned', 'remains_left') then amount else -amount end) as food from events
where kind in ('food_spawned', 'remains_left', 'food_decayed', 'ate') and tick <= $tick
group by 1, 2 having food != 0 order by 1, 2
"""

ARTIFACTS = """
with last as (
    select artifact_id as id, max_by(kind, seq) as kind, max_by(coalesce(target_id, agent_id), seq) as holder,
        max_by(x, seq) as x, max_by(y, seq) as y
    from events where tick <= $tick and artifact_id is not null
    and kind not in ('artifact_read', 'artifact_modified') group by 1
)
select id, case when kind in ('artifact_picked_up', 'artifact_handed_over') then holder end,
    case when kind in ('artifact_created', 'artifact_dropped') then x end,
    case when kind in ('artifact_created', 'artifact_dropped') then y end
from last where kind not in ('artifact_destroyed', 'artifact_expired') order by 1
"""

TEXTS = """
select artifact_id, max_by(text, seq), max_by((data ->> 'version')::int, seq), max_by(agent_id, seq) from events
where kind in ('artifact_created', 'artifact_modified') and tick <= $tick group by 1 order by 1
"""


@pytest.fixture(scope="module")
def told() -> tuple[duckdb.DuckDBPyConnection, dict[int, dict[str, list[Any]]]]:
    """The events of a society as a table, and how things really were at some ticks."""
    world = World(Terra(TerraParams.model_validate({"artifacts": {"cost": 2}})), 11)
    rows: list[tuple[Any, ...]] = []
    truth = {}
    step = world.setup([Cohort("villagers", 20)])
    for _ in range(150):
        rows += [(step.tick, *row) for row in step.events]
        if step.tick in TICKS:
            truth[step.tick] = _truth(world.now.state)
        step = world.step(answers(world, {"villagers": Villager()}))
    names = ("tick", "seq", "kind", "actor_id", *COLUMNS, "data")
    con = duckdb.connect()
    con.register("events", pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
    return con, truth


def _truth(state: TerraState) -> dict[str, list[Any]]:
    return {
        WHERE: [(n, b.cell % 50, b.cell // 50) for n, b in state.beings.items()],
        ENERGY: [(n, b.energy) for n, b in state.beings.items()],
        FOOD: sorted((c % 50, c // 50, amount) for c, amount in state.food.items()),
        ARTIFACTS: [
            (i, a.holder, *((None, None) if a.cell is None else (a.cell % 50, a.cell // 50)))
            for i, a in state.artifacts.items()
        ],
        TEXTS: [(i, a.text, a.version, a.author) for i, a in state.artifacts.items()],
    }


@pytest.mark.parametrize("tick", TICKS)
@pytest.mark.parametrize("question", [WHERE, ENERGY, FOOD, ARTIFACTS], ids=["where", "energy", "food", "artifacts"])
def test_sql_tells_how_things_were(told: Any, question: str, tick: int) -> None:
    con, truth = told
    assert con.execute(question, {"tick": tick}).fetchall() == truth[tick][question]


def test_sql_tells_what_every_artifact_says_and_who_wrote_it(told: Any) -> None:
    con, truth = told
    said = {row[0]: row for row in con.execute(TEXTS, {"tick": 149}).fetchall()}
    assert truth[149][TEXTS]
    assert [said[row[0]] for row in truth[149][TEXTS]] == truth[149][TEXTS]


def test_nobody_reads_a_version_twice(told: Any) -> None:
    con, _ = told
    twice = """
    select agent_id, artifact_id, data ->> 'version' from events where kind = 'artifact_read'
    group by all having count(*) > 1
    """
    assert con.execute(twice).fetchall() == []

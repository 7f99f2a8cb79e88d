"""Changes from outside: each is an event, repeats with the run, and is refused before it touches anything."""

from pathlib import Path
from typing import Any

import pytest

from ethnos.actors.here import run_here
from ethnos.errors import Refused, SocietyError
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import create
from ethnos.society import Society, parse
from ethnos.world.clock import Clock
from ethnos.world.interventions import parse_change
from ethnos.world.scenarios.commons import Commons, CommonsParams
from ethnos.world.world import Cohort, World
from tests.conftest import SOCIETY

ALL = """
interventions:
  - {tick: 2, do: set_parameter, name: food.spawn_rate, value: 5}
  - {tick: 3, do: add_resources, amount: 33}
  - {tick: 3, do: add_resources, amount: 7, x: 4, y: 5}
  - {tick: 3, do: remove_resources, amount: 12}
  - {tick: 4, do: add_agent, cohort: beings, name: Eve, persona: {honesty: 1.0}}
  - {tick: 4, do: add_agent, cohort: beings}
  - {tick: 5, do: remove_agent, agent: being0}
  - {tick: 6, do: tell, text: the well is dry}
  - {tick: 6, do: tell, text: only for you, to: [Eve], speaker: the moon}
  - {tick: 7, do: edit_persona, agent: Eve, persona: {honesty: -1.0, mood: gloomy}}
  - {tick: 8, do: place_artifact, name: Stone, text: turn back, x: 1, y: 2}
  - {tick: 8, do: place_artifact, name: Leaf, text: soon gone, lifetime: 3}
  - {tick: 9, do: remove_agent, agent: being0}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    directory = create(parse(SOCIETY + ALL, changes=["ticks=20"]), "changed", tmp_path_factory.mktemp("runs"))
    run_here(directory)
    return directory


def rows(run: RunDirectory, sql: str) -> list[tuple[Any, ...]]:
    with connect(run) as con:
        return con.sql(sql).fetchall()


def test_each_is_an_event_and_adds_up(run: RunDirectory) -> None:
    found = rows(run, "SELECT tick, text FROM intervened ORDER BY seq")
    assert [t for t, _ in found] == [2, 3, 3, 3, 4, 4, 5, 6, 6, 7, 8, 8]
    assert rows(run, "SELECT tick, text FROM intervention_refused") == [(9, "nobody here is called 'being0'")]
    assert verify(run).ok, "energy from outside is accounted for"
    assert replay(run).ok


def test_they_have_their_effect(run: RunDirectory) -> None:
    assert rows(run, "SELECT name, born FROM agents WHERE born = 4 ORDER BY agent_id") == [("Eve", 4), ("being11", 4)]
    assert rows(run, "SELECT died, cause FROM agents WHERE name = 'being0'") == [(5, "taken away")]
    assert rows(run, "SELECT text, agent_id FROM said WHERE agent_id IS NULL ORDER BY seq") == [
        ("the well is dry", None),
        ("only for you", None),
    ]
    assert rows(run, "SELECT tick, count(*) FROM heard WHERE target_id IS NULL GROUP BY ALL") == [(6, 12)]
    persona = replay(run, 7).world.agents[10].persona
    assert (persona["honesty"], persona["mood"]) == (-1.0, "gloomy")
    assert "motivation" in persona, "who comes from outside is like a founder"
    assert replay(run, 3).world.now.params["food"]["spawn_rate"] == 5
    assert rows(run, "SELECT name, gone FROM artifacts WHERE author_id IS NULL ORDER BY ALL") == [
        ("Leaf", 11),
        ("Stone", None),
    ]


def test_what_is_told_is_observed_in_the_next_tick(run: RunDirectory) -> None:
    world = replay(run, 6).world
    [seen] = [world.spec.decode_observation(o) for o in world.observe([10])]
    assert [(m.speaker, m.text) for m in seen.heard] == [
        ("a voice from outside", "the well is dry"),
        ("the moon", "only for you"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"do": "set_parameter", "name": "width", "value": 3}, "how the world was made"),
        ({"do": "set_parameter", "name": "food", "value": {}}, "how the world was made"),
        ({"do": "set_parameter", "name": "food.spawn_rate", "value": -1}, "greater than or equal to 0"),
        ({"do": "set_parameter", "name": "food.spoon", "value": 1}, "spoon"),
        ({"do": "set_parameter", "name": "nothing.at.all", "value": 1}, "no parameter"),
        ({"do": "add_resources", "amount": 1, "x": 99, "y": 0}, "not on the map"),
        ({"do": "add_resources", "amount": 1, "x": 9}, "x and y"),
        ({"do": "add_resources", "amount": 10**6}, "free cells"),
        ({"do": "add_agent", "cohort": "strangers"}, "no cohort"),
        ({"do": "add_agent", "cohort": "beings", "name": "being1"}, "taken"),
        ({"do": "add_agent", "cohort": "beings", "name": "a\x1bb"}, "a name has"),
        ({"do": "remove_agent", "agent": 99}, "no agent 99"),
        ({"do": "tell", "text": "x\x00y"}, "control character"),
        ({"do": "tell", "text": "x", "to": ["nobody"]}, "nobody here"),
        ({"do": "edit_persona", "agent": 77, "persona": {"a": 1.0}}, "no agent 77"),
        ({"do": "place_artifact", "name": "n", "text": "x" * 3000}, "at most"),
        ({"do": "tell", "text": "late", "tick": 1}, "is over"),
    ],
)
def test_bad_ones_are_refused_before_they_touch_anything(tmp_path: Path, change: Any, reason: str) -> None:
    directory = create(parse(SOCIETY, changes=["ticks=3"]), "refusing", tmp_path)
    run_here(directory)
    with Log(directory) as log:
        clock = Clock(parse(directory.society.read_text()), log)
        clock.recover()
        before = clock.world.snapshot()
        with pytest.raises(Refused, match=reason):
            clock.outside.ask(parse_change(change), clock.world)
        assert clock.world.snapshot() == before
        assert clock.outside.due(4) == []


@pytest.mark.parametrize(
    "change",
    [{"do": "dance"}, {"do": "tell"}, {"do": "tell", "text": "x", "more": 1}, {"do": "add_resources", "amount": -5}],
)
def test_what_is_no_intervention_says_so(change: Any) -> None:
    with pytest.raises(SocietyError, match="no such intervention"):
        parse_change(change)


def test_what_was_asked_for_survives_a_crash_and_is_done_once(tmp_path: Path) -> None:
    directory = create(parse(SOCIETY, changes=["ticks=9"]), "asked", tmp_path)
    with Log(directory) as log:
        clock = Clock(parse(directory.society.read_text()), log)
        clock.recover()
        assert clock.outside.ask(parse_change({"do": "tell", "text": "soon", "tick": 5}), clock.world) == 5
        assert clock.outside.ask(parse_change({"do": "tell", "text": "now"}), clock.world) == 1
    run_here(directory)
    run_here(directory)
    assert rows(directory, "SELECT tick, text FROM said WHERE agent_id IS NULL") == [(1, "now"), (5, "soon")]
    assert verify(directory).ok


def test_problems_in_a_society_file_have_their_line() -> None:
    with pytest.raises(SocietyError) as caught:
        parse(SOCIETY + "interventions:\n  - {do: tell, text: x}\n  - {tick: 3, do: add_agent, cohort: beasts}\n")
    assert "society:10: interventions.0.tick: is required" in str(caught.value)
    assert "society:11: interventions.1.cohort: no cohort 'beasts'; there are: beings" in str(caught.value)
    with pytest.raises(SocietyError, match="spawn_rat"):
        parse(SOCIETY + "interventions:\n  - {tick: 3, do: set_parameter, name: food.spawn_rat, value: 3}\n")


def test_commons() -> None:
    world = World(Commons(CommonsParams()), 1)
    world.setup([Cohort("villagers", 5)])
    changes: list[dict[str, Any]] = [
        {"do": "remove_resources", "amount": 30},
        {"do": "add_resources", "amount": 10},
        {"do": "add_agent", "cohort": "villagers", "name": "Ann"},
        {"do": "remove_agent", "agent": 2},
        {"do": "set_parameter", "name": "pool.growth", "value": 3},
    ]
    world.step({}, [parse_change(c) for c in changes])
    assert (world.now.state.pool, list(world.agents)) == (80, [0, 1, 3, 4, 5])
    assert world.scenario.params.pool.growth == 3
    for _ in range(40):
        world.step({})
    with pytest.raises(Refused, match="places"):
        world.try_out([parse_change({"do": "add_resources", "amount": 1, "x": 1, "y": 1})])
    with pytest.raises(Refused, match="knows no"):
        world.try_out([parse_change({"do": "place_artifact", "name": "a", "text": "b"})])


def test_the_society_file_keeps_them() -> None:
    society: Society = parse(SOCIETY + ALL)
    assert parse(society.to_yaml()) == society

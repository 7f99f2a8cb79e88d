"""The world as a function, whatever the scenario."""

import msgspec
import pytest

from ethnos.world.scenario import Cohort, Decision
from ethnos.world.scenarios.commons import Commons, CommonsParams, Wait
from ethnos.world.scenarios.terra.actions import Move
from ethnos.world.world import Answer, World
from tests.world.terra import check, events, go, made, shown, state_of, where

GARBAGE = [
    ("give_energy", b'{"target": "being1", "amount": "10 energy"}'),
    ("give_energy", b'{"target": "being1", "amount": -1000}'),
    ("give_energy", b'{"target": "being1", "amount": NaN}'),
    ("give_energy", b'{"target": "being1", "amount": [1]}'),
    ("give_energy", b'{"target": "being1", "amount": 1.5}'),
    ("give_energy", b'{"target": "being1", "amount": true}'),
    ("give_energy", b'{"target": "being1"}'),
    ("move", b'{"direction": "up"}'),
    ("move", b'{"direction": "east"'),
    ("move", b""),
    ("move", b"null"),
    ("move", b'{"direction": "\xff"}'),
    ("fly", b"{}"),
    ("", b"{}"),
    ("move\x00", b"{}"),
    ("create_artifact", b'{"name": "a", "text": "\\ud800"}'),
    ("create_artifact", b'{"name": "a", "text": "' + b"x" * 70_000 + b'"}'),
    ("create_artifact", b"[" * 60_000),
    ("create_artifact", b'{"name": "a", "text": "b", "lifetime": 0}'),
]


@pytest.mark.parametrize(("kind", "args"), GARBAGE)
def test_garbage_costs_its_sender_the_turn_and_nobody_anything(kind: str, args: bytes) -> None:
    world = made([(0, 0), (1, 0)])
    step = world.step({0: Answer(0, kind, args), 1: Answer(1, "move", b'{"direction": "south"}')})
    (rejected,) = events(step, "rejected")
    assert rejected["agent_id"] == 0
    assert rejected["text"]
    assert rejected["text"].isprintable()
    assert where(world, 1) == (1, 1)
    assert [b.energy for b in state_of(world).beings.values()] == [49, 49]
    check(world)


def test_the_late_and_the_failed_do_the_neutral_thing() -> None:
    world = made([(0, 0), (5, 0), (10, 0)])
    step = world.step(
        {
            0: Answer(0, status="late"),
            1: Answer(1, status="failed", reason="the model said \x07nothing"),
            2: Answer(2, "move", b'{"direction": "south"}'),
        }
    )
    assert events(step, "late") == [{"agent_id": 0}]
    assert events(step, "failed")[0]["agent_id"] == 1
    assert {d.answer.agent_id: (d.outcome, d.resolved) for d in step.decisions} == {
        0: ("late", "stay"),
        1: ("failed", "stay"),
        2: ("done", "move"),
    }
    assert shown(world, 0).outcome == "late: no decision in time"


def test_memory_is_kept_even_if_the_action_is_refused() -> None:
    world = made([(0, 0)])
    world.step({0: Answer(0, "fly", memory=b"tried to fly")})
    assert world.agents[0].memory == b"tried to fly"
    world.step({0: Answer(0, "stay")})
    assert world.agents[0].memory == b"tried to fly"
    step = world.step({0: Answer(0, "stay", memory=b"x" * 300_000)})
    assert events(step, "rejected")
    assert world.agents[0].memory == b"tried to fly"


def test_events_say_who_caused_them() -> None:
    world = made([(0, 0), (5, 0)])
    step = go(world, {1: Move("east")})
    assert {row[1]: row[2] for row in step.events} == {"moved": 1, "burned": None}


def test_who_waits_for_its_turn_misses_nothing_that_is_said() -> None:
    world = World(Commons(CommonsParams(talk=4, turns="rotating")), 1)
    world.setup([Cohort("all", 3)])
    for word in ("one", "two"):
        go(world, dict.fromkeys(world.due(), Decision(Wait(), word)))
    assert {i: [m.text for m in heard] for i, heard in world.now.heard.items()} == {0: ["two"], 2: ["one", "two"]}


def test_a_snapshot_is_the_whole_world() -> None:
    world = made([(0, 0), (1, 0)])
    go(world, {0: Decision(Move("north"), "hello")})
    saved = world.snapshot()
    again = World(world.scenario, world.seed)
    again.restore(saved)
    assert again.snapshot() == saved
    assert go(again, {1: Move("south")}).events == go(world, {1: Move("south")}).events
    with pytest.raises(msgspec.MsgspecError):
        again.restore(b"\xc1 no snapshot")

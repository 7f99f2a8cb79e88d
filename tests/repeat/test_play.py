"""A person in an agent's place: what is typed is what is done, and whoever is slow, wrong or gone holds up nobody."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ethnos import seat as seats
from ethnos.actors.host import Host
from ethnos.actors.minds.human import FORM, HumanMind, understood
from ethnos.actors.minds.menu import Kitchen
from ethnos.actors.minds.structured import Unusable
from ethnos.control import Control, contact_of
from ethnos.errors import EthnosError, Refused
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.rights import token_for
from ethnos.run import check_resumable, create
from ethnos.seat import Seat
from ethnos.society import parse
from ethnos.world.rebuild import society_of
from ethnos.world.scenario import Option
from ethnos.world.scenarios.terra import Terra
from ethnos.world.scenarios.terra.actions import GiveEnergy, Move, Stay
from ethnos.world.spec import ScenarioSpec
from tests.conftest import SOCIETY
from tests.repeat.serving import _ask, served

JITTER = [
    "scenario=tests.cluster.jitter:JitterTerra",
    "population.0.mind={name: jitter, settings: {longest_ms: 200}}",
    "ticks=50",
]
HUMAN = ["population.0.mind=human", "population.0.count=1", "ticks=4"]


class Person:
    """`ethnos play` in a process of its own; `typed` is all it has to say."""

    def __init__(self, runs: Path, who: str, typed: str = "", run: str = "played") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from ethnos.cli import main; main()", "play", run, who],
            env={**os.environ, "ETHNOS_RUNS_DIR": str(runs)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if typed:
            self.type(typed)

    def type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def hears(self, words: str) -> str:
        """What came on the screen up to these words."""
        assert self._process.stdout is not None
        seen = ""
        while words not in seen:
            line = self._process.stdout.readline()
            assert line, seen
            seen += line
        return seen

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def end(self) -> tuple[int, str]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.stdout is not None
        rest = self._process.stdout.read()
        return self._process.wait(60), rest


def ask(run: RunDirectory, sql: str) -> list[Any]:
    with connect(run) as con:
        return con.sql(sql).fetchall()


def test_what_a_person_types_is_done_and_recorded_like_any_decision(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*JITTER, "decision_deadline=60"]), "played")
    with served(run):
        person = Person(runs, "being3", "say hello there\nstay\nmove nowhere\n2 north\nmove direction=south\nquit\n")
        code, seen = person.end()
    assert code == 0, seen
    assert "you are being3" in seen and "nowhere" in seen and seen.endswith("You have left.\n")
    turns = ask(run, "SELECT tick, action, args, message FROM decisions WHERE mind = 'human' ORDER BY tick")
    assert [(a, args, m) for _, a, args, m in turns] == [
        ("stay", "{}", "hello there"),
        ("move", '{"direction":"north"}', ""),
        ("move", '{"direction":"south"}', ""),
    ]
    first = turns[0][0]
    assert [tick for tick, *_ in turns] == [first, first + 1, first + 2]
    others = "SELECT count(*) FROM decisions WHERE agent_id = 3 AND mind = 'scripted/jitter'"
    lived = ask(run, "SELECT count(*) FROM decisions WHERE agent_id = 3")[0][0]
    assert ask(run, others) == [(lived - 3,)], "before and after that its own mind decides"
    assert not ask(run, "SELECT 1 FROM decisions WHERE outcome IN ('late', 'failed')")
    assert verify(run).ok
    assert replay(run).difference is None


def test_a_seat_that_nobody_takes_is_late_and_stops_nothing(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "decision_deadline=0.2"]), "played")
    with served(run):
        pass
    assert ask(run, "SELECT DISTINCT mind, outcome FROM decisions") == [("human", "late")]
    assert run.manifest().state == "finished" and verify(run).ok


def test_whoever_is_too_slow_is_told_and_may_go_on(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "decision_deadline=4"]), "played")
    with served(run):
        person = Person(runs, "0")
        person.hears("You may:")
        person.hears("Too late")
        person.hears("You may:")
        person.type("stay\nstay\nstay\nstay\n")
        code, seen = person.end()
    assert code == 0 and "It is over: reached tick 4" in seen, seen
    outcomes = [o for (o,) in ask(run, "SELECT outcome FROM decisions ORDER BY tick")]
    assert outcomes.count("late") >= 1 and outcomes[-1] == "done"


def test_one_seat_one_person(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "decision_deadline=60"]), "played")
    with served(run):
        first = Person(runs, "being0")
        first.hears("You may:")
        code, seen = Person(runs, "being0").end()
        assert code == 1 and "played by somebody already" in seen
        code, seen = Person(runs, "being9'; DROP TABLE agents").end()
        assert code == 1 and "nobody called" in seen
        first.end()
        Person(runs, "being0", "stay\n" * 4).end()
    code, seen = Person(runs, "being0").end()
    assert code == 1 and "is finished" in seen


def test_a_person_that_is_cut_off_leaves_the_turn_to_the_agents_own_mind(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*JITTER, "ticks=200", "decision_deadline=60"]), "played")
    with served(run):
        person = Person(runs, "being3")
        person.hears("You may:")
        person.kill()
    minds = ask(run, "SELECT DISTINCT mind, outcome FROM decisions WHERE agent_id = 3")
    assert minds == [("scripted/jitter", "done")]


def test_people_who_come_and_go_do_not_hold_up_a_tick(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "ticks=1", "decision_deadline=3"]), "played")
    with served(run), pytest.raises(Refused, match="changed hands 3 times in this tick"):
        for _ in range(10):
            asyncio.run(_come_and_go(run))
    assert ask(run, "SELECT mind, outcome FROM decisions") == [("human", "late")]
    assert run.manifest().state == "finished"


async def _come_and_go(run: RunDirectory) -> None:
    """Take the place of agent 0, wait to be asked, and leave. Raises Refused."""
    asked = asyncio.Event()
    mind = HumanMind(society_of(run).make_scenario(), lambda _: asked.set(), asyncio.Event().wait, lambda: None)  # type: ignore[arg-type]
    address, secret = contact_of(run)
    while True:
        playing = asyncio.create_task(Host(society_of(run), _ask, mind=mind).play(address, token_for(secret, "act"), 0))
        asking = asyncio.create_task(asked.wait())
        await asyncio.wait((playing, asking), return_when=asyncio.FIRST_COMPLETED)
        if asked.is_set():
            playing.cancel()
            await asyncio.wait((playing,))
            return
        asking.cancel()
        if "by somebody already" not in str(playing.exception()):
            playing.result()


def test_a_played_run_that_was_stopped_is_resumed_and_played_on(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "decision_deadline=60"]), "played")
    with served(run):
        person = Person(runs, "0", "stay\nmove north\n")
        person.hears("tick 3")
        with Control(run) as control:
            control.call("Stop", reason="enough for today")
        person.type("stay\n")
        code, seen = person.end()
    assert code == 0 and "enough for today" in seen, seen
    assert run.manifest().state == "stopped"
    check_resumable(run)
    run.go_on()
    with served(run):
        code, seen = Person(runs, "0", "move south\n").end()
    assert code == 0 and "tick 4" in seen, seen
    turns = ask(run, "SELECT tick, action, mind, outcome FROM decisions ORDER BY tick")
    assert turns == [(i, a, "human", "done") for i, a in enumerate(("stay", "move", "stay", "move"), 1)]
    assert verify(run).ok
    assert replay(run).difference is None


def test_whatever_is_typed_is_refused_or_done(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "decision_deadline=60"]), "played")
    typed = [
        "x" * 1_000_000,
        "\x1b[2J\x00\x07",
        "say " + "y" * 100_000,
        "create_artifact ../../etc \u202e",
        "{}",
        "9" * 500,
    ]
    with served(run):
        code, seen = Person(runs, "0", "\n".join(typed) + "\nstay" * 4 + "\n").end()
    assert code == 0, seen
    assert "\x1b" not in seen and "\x07" not in seen
    assert len(seen) < 100_000
    assert verify(run).ok and run.manifest().state == "finished"


def test_an_agent_that_dies_lets_its_person_go(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*HUMAN, "world.life.energy=2", "decision_deadline=60"]), "played")
    with served(run):
        code, seen = Person(runs, "being0", "stay\n" * 4).end()
    assert code == 0 and "It is over: the agent is no more." in seen


MENU = Kitchen(ScenarioSpec(Terra), FORM).menu(
    [Option(Stay), Option(Move), Option(GiveEnergy, {"target": ["ann", "bob smith"], "amount": range(1, 8)})]
)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("1", Stay()),
        ("stay", Stay()),
        ("move north", Move("north")),
        ("2 direction=west", Move("west")),
        ("give_energy ann 7", GiveEnergy("ann", 7)),
        ("3 amount=2 target='bob smith'", GiveEnergy("bob smith", 2)),
    ],
)
def test_a_line_is_understood(line: str, action: Any) -> None:
    assert understood(MENU, line).action == action


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fly", ['"fly" is not open', "stay, move, give_energy"]),
        ("4", ['"4" is not open']),
        ("stay here", ["takes no arguments", '"here"']),
        ("move up", ["direction", "up"]),
        ("give_energy ann 8", ["amount"]),
        ("give_energy carol 1", ["target"]),
        ("give_energy ann", ["amount"]),
        ("give_energy ann ten", ["amount"]),
        ("give_energy ann nan", ["amount"]),
        ('say "hello', ["quotation mark"]),
    ],
)
def test_a_line_that_makes_no_sense_says_why(line: str, words: Sequence[str]) -> None:
    with pytest.raises(Unusable) as unusable:
        understood(MENU, line)
    assert all(word in str(unusable.value) for word in words), str(unusable.value)


def until(true: Callable[[], bool]) -> None:
    """Waits for something that must come; the test's own time limit is the limit."""
    while not true():
        time.sleep(0.02)


def test_a_seat_is_played_from_beside_and_left(runs: Path) -> None:
    run = create(parse(SOCIETY, changes=[*JITTER, "ticks=100", "decision_deadline=60"]), "played")
    with served(run):
        nobody = Seat(run, "--help")
        until(lambda: nobody.over and "nobody called" in " ".join(nobody.look()))
        seat = Seat(run, "being3")
        until(lambda: "you are being3" in "\n".join(seat.look()))
        seat.type("say hello\nstay")
        seat.type("stay")
        until(lambda: sum("you are being3" in line for line in seat.look()) > 1)
        seat.leave()
        until(lambda: seat.look()[-1] == "You have left.")
        assert seat.over
        with Control(run) as control:
            control.call("Stop", reason="enough")
    done = "SELECT action, message FROM decisions WHERE mind = 'human' AND outcome = 'done' LIMIT 1"
    assert ask(run, done) == [("stay", "hello stay")]
    assert verify(run).ok


def test_a_seat_that_nobody_looks_at_is_given_back(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "AWAY_S", 0.5)
    run = create(parse(SOCIETY, changes=[*JITTER, "ticks=100", "decision_deadline=60"]), "played")
    with served(run):
        seat = Seat(run, "3")
        until(lambda: seat.over)
        with Control(run) as control:
            control.call("Stop", reason="enough")
    assert run.manifest().state == "stopped"
    with pytest.raises(EthnosError):
        Seat(run, "3")

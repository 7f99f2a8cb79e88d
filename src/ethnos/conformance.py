"""What the platform promises of every world, held against one: the suite that ships for whoever writes a world.

`check_world` takes a world's society through all of it in this process; Ethnos' own tests do the same for each world
that is installed, and once more on Ray.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ethnos.actors.here import Here, run_here
from ethnos.actors.thinking import Models
from ethnos.fork import fork
from ethnos.parameters import parameters
from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.record.reader import connect
from ethnos.record.verify import verify
from ethnos.replay import replay
from ethnos.run import create
from ethnos.society import Society, load
from ethnos.testing import check_scenario
from ethnos.validation import validations_of
from ethnos.views import pictured
from ethnos.world.clock import Clock
from ethnos.world.scenarios import find

TICKS = 30
"""How long a society of the suite lives."""


@dataclass(frozen=True)
class Specimen:
    """A society that is under test, and a run of it that nothing has disturbed."""

    society: Society
    run: RunDirectory
    folder: Path
    """Where further runs may go."""

    @property
    def digest(self) -> str:
        return self.run.manifest().digest

    @property
    def last(self) -> int:
        """The last tick of the undisturbed run."""
        return self.run.manifest().tick


def specimen(world: str, folder: Path, ticks: int = TICKS) -> Specimen:
    """The society that has the world's name, run in this process. Raises SocietyError if there is none."""
    society = load(world, [f"ticks={ticks}", "snapshot_every=7"])
    run = create(society, "undisturbed", folder)
    run_here(run)
    return Specimen(society, run, folder)


def keeps_to_its_interface(given: Specimen) -> None:
    """Whatever minds ask for, in whatever order: see `ethnos.testing.check_scenario`."""
    scenario = given.society.scenario_class()
    check_scenario(scenario, scenario.Params.model_validate(given.society.world), agents=8, ticks=20)


def begins_with_prose(given: Specimen) -> None:
    """The rules in words, two minds that differ, and parameters that say what they mean."""
    scenario = given.society.scenario_class()
    assert (scenario.__doc__ or "").strip(), "a docstring says what the world is about"
    assert len(scenario.minds) >= 2, "one scripted mind that plays well and one that plays badly"
    silent = [p.path for p in parameters(given.society) if not p.meaning]
    assert not silent, f"parameters without a docstring: {silent}"


def can_be_pictured(given: Specimen) -> None:
    """Each of its views finds something to draw in a run that went on for a while."""
    with connect(given.run) as con:
        for view in given.society.scenario_class().views:
            found = pictured(con, view, given.last)
            assert found, f"the view {view.title!r} finds nothing in a run of {given.last} ticks"
            missing = {view.x, view.y, view.colour or view.x} - set(found[0])
            assert not missing, f"the view {view.title!r} has no column {sorted(missing)}"


def repeats(given: Specimen) -> None:
    """Once more, and without snapshots: the same digest."""
    run = create(given.society.model_copy(update={"snapshot_every": 0}), "again", given.folder)
    run_here(run)
    assert run.manifest().digest == given.digest, "the same society gave another digest"


def survives_a_crash(given: Specimen) -> None:
    """A driver that dies in the middle, with a torn write at the log's end, ends where it would have ended."""
    run = create(given.society, "crashed", given.folder)
    asyncio.run(_until(run, given.society, given.last // 2))
    newest = run.segments()[-1]
    newest.write_bytes(newest.read_bytes()[:-60])
    run_here(run)
    assert run.manifest().digest == given.digest, "a run that was resumed after a crash ended elsewhere"
    assert verify(run).ok


async def _until(run: RunDirectory, society: Society, tick: int) -> None:
    """Run to a tick and let go of everything without another word to the record."""
    with Log(run) as log:
        clock = Clock(society, log)
        clock.recover()
        async with Models(society) as models:
            here = Here(clock, society, models.ask)
            while clock.world.tick < tick:
                await clock.tick(here)


def replays(given: Specimen) -> None:
    """The recorded decisions give the recorded events, without any mind."""
    done = replay(given.run)
    assert done.ok, done.difference.text if done.difference else f"agent {done.misled} would be shown something else"
    assert done.digest == given.digest


def branches(given: Specimen) -> None:
    """A branch without a change ends like its parent; one under another seed is a valid run, too."""
    at = given.last // 2
    same = fork(given.run, at, name="same", folder=given.folder)
    run_here(same)
    assert same.manifest().digest == given.digest, "a branch in which nothing was changed ended elsewhere"
    if at + 1 < given.society.ticks:
        other = fork(given.run, at, name="other", folder=given.folder, changes=[f"seed={given.society.seed + 1}"])
        run_here(other)
        assert verify(other).ok and replay(other).ok


def answers_sql(given: Specimen) -> None:
    """A typed view for each kind of event, which holds every event of that kind."""
    manifest = given.run.manifest()
    with connect(given.run) as con:
        counts = dict(con.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
        for kind, about in manifest.kinds.items():
            assert about.meaning.strip(), f"{kind}: its docstring says what happened"
            found = con.table(kind)
            assert not [c.name for c in about.columns if c.name not in found.columns], f"{kind}: columns are missing"
            assert len(found.fetchall()) == counts.get(kind, 0), f"{kind}: the view has another number of rows"
    own = [e.__name__ for e in given.society.scenario_class().events]
    assert own, "a world without events of its own leaves nothing to ask"


def conserves(given: Specimen) -> None:
    """`ethnos verify` finds nothing wrong, and something that is conserved."""
    found = verify(given.run)
    assert found.ok, found


def knows_what_must_come_out(given: Specimen) -> None:
    """Each validation says what it measures and how its target is known; whether it holds is `ethnos validate`'s."""
    declared = validations_of(given.society.scenario)
    assert declared
    assert all(v.name and v.source and 1 <= v.quick <= v.replicates for v in declared)
    assert len({v.name for v in declared}) == len(declared)


CHECKS: tuple[Callable[[Specimen], None], ...] = (
    keeps_to_its_interface,
    begins_with_prose,
    can_be_pictured,
    repeats,
    survives_a_crash,
    replays,
    branches,
    answers_sql,
    conserves,
    knows_what_must_come_out,
)
"""The suite: functions that raise AssertionError with what is wrong."""


def check_world(world: str, folder: Path, *, ticks: int = TICKS) -> None:
    """Hold a world and the society of the same name against all of it. `folder` is for its runs.

    Raises AssertionError that says what is wrong, SocietyError if there is no such world or society.
    """
    find(world)
    given = specimen(world, folder, ticks)
    for check in CHECKS:
        check(given)


__all__ = ["CHECKS", "Specimen", "check_world", "specimen"]

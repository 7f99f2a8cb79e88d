"""Branches: another future for a society, from any tick on.

A branch shares its parent's history without copying it, and meets the same chance wherever nothing was changed.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethnos.errors import RunError, SocietyError
from ethnos.record import snapshots
from ethnos.record.directory import Parent, RunDirectory, lineage, next_name, runs_folder
from ethnos.record.reader import picture
from ethnos.run import create
from ethnos.society import Society, parse
from ethnos.world.interventions import Intervention
from ethnos.world.rebuild import digest_at, rebuild, society_of
from ethnos.world.spec import rules_digest


def fork(
    run: RunDirectory,
    at: int,
    *,
    changes: Sequence[str] = (),
    interventions: Sequence[Intervention] = (),
    name: str | None = None,
    folder: Path | None = None,
) -> RunDirectory:
    """Make a branch of a run that shares all ticks up to and including `at`; `ethnos.resume` brings it to its end.

    `changes` are to the society file (`seed=8`, `world.food.spawn_rate=3`, `population.0.mind=wanderer`) and hold
    from the next tick on. The parent may still be running; it is not touched. Raises RunError, SocietyError.
    """
    run = _owner(run, at)
    run.check_unaltered()
    past = digest_at(picture(run), at) if at >= 0 else None
    if past is None:
        raise RunError(f"run {run.name} has no tick {at} to branch off at")
    world = rebuild(run, at)
    before = society_of(run).model_copy(update={"world": world.now.params})
    society = _changed(before, at, changes, interventions)
    _check_history(before, society, at)
    world.become(society.make_scenario(), society.seed)
    path = (folder or runs_folder()) / (name or next_name(f"{run.name}-at-{at}"))
    where = os.path.relpath(run.path.resolve(), path.resolve())
    parent = Parent(run.name, where, at, past, world.now.next_seq)
    branch = create(society, path.name, path.parent, parent)
    rules = rules_digest(world.spec)
    snapshots.save(branch, snapshots.Saved(at, world.now.next_seq, past, rules, world.snapshot()))
    return branch


def _owner(run: RunDirectory, at: int) -> RunDirectory:
    """The run to which the tick belongs: of what came before a branch, its parent is the one to branch off."""
    for one, _ in reversed(lineage(run)):
        parent = one.manifest().parent
        if parent is None or at >= parent.tick:
            return one
    return run


def _changed(before: Society, at: int, changes: Sequence[str], interventions: Sequence[Intervention]) -> Society:
    """The branch's society file: what was in force at the fork, with changes."""
    added = [c if c.tick else c.model_copy(update={"tick": at + 1}) for c in interventions]
    if early := [c for c in added if (c.tick or 0) <= at]:
        raise SocietyError(f"{early[0].do} in tick {early[0].tick}: the branch begins with tick {at + 1}")
    coming = [c for c in before.interventions if (c.tick or 0) > at]
    return parse(before.model_copy(update={"interventions": [*coming, *added]}).to_yaml(), "the branch", changes)


def _check_history(before: Society, after: Society, at: int) -> None:
    """Refuse changes to what has happened already. Raises SocietyError."""
    if after.scenario != before.scenario:
        raise SocietyError("a branch cannot change the scenario")
    if after.ticks <= at:
        raise SocietyError(f"ticks: {after.ticks} are over at the fork in tick {at}")
    founders = {c.cohort: (c.count, c.persona) for c in before.population}
    for c in after.population:
        if founders.pop(c.cohort, (0, {})) != (c.count, c.persona):
            raise SocietyError(f"population: the founders of {c.cohort} are history; add_agent brings more")
    if founders:
        raise SocietyError(f"population: there are members of {', '.join(founders)} already")
    for name in after.scenario_class().fixed:
        if _at(before.world, name) != _at(after.world, name):
            raise SocietyError(f"world.{name} belongs to how the world was made and cannot change any more")


def _at(params: Any, name: str) -> Any:
    for part in name.split("."):
        params = params.get(part) if isinstance(params, dict) else None
    return params


__all__ = ["fork"]

"""The world again, from its record: the last snapshot that fits, then every decision once more."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import msgspec

from ethnos.errors import EthnosError, RecordDamaged
from ethnos.record import digest, snapshots
from ethnos.record.directory import RunDirectory, lineage
from ethnos.record.reader import Picture, Rows, picture, stream
from ethnos.record.schema import DECISIONS, EVENTS, events_batch
from ethnos.society import Society, parse
from ethnos.world.interventions import Intervention, parse_change
from ethnos.world.spec import rules_digest
from ethnos.world.world import Answer, Step, World

_log = logging.getLogger("ethnos")


@dataclass(frozen=True)
class Recorded:
    """A committed tick, with all that is needed to make it happen again."""

    tick: int
    digest: str
    answers: dict[int, Answer]
    changes: list[Intervention]
    events: Any
    """Its rows of the `events` table."""
    shown: dict[int, str | None]
    """The digest of what each agent was shown."""


_DECISIONS = ["tick", "agent_id", "observation", "action", "args", "message", "memory", "status", "reason"]
_INPUTS = ("intervened", "intervention_refused")


def recorded_ticks(seen: Picture, after: int = -1, until: int | None = None) -> Iterator[Recorded]:
    """The committed ticks of a run, those it shares with its parents included. Raises RecordDamaged."""
    events = Rows(stream(seen, "events", after=after, until=until), EVENTS)
    decisions = Rows(stream(seen, "decisions", _DECISIONS, after, until), DECISIONS)
    for batch in stream(seen, "ticks", ["tick", "events", "decisions", "digest"], after, until):
        for row in batch.to_pylist():
            made = decisions.take(row["decisions"]).to_pylist()
            happened = events.take(row["events"])
            yield Recorded(
                row["tick"],
                row["digest"],
                {d["agent_id"]: _answer(d) for d in made},
                _changes(happened),
                happened,
                {d["agent_id"]: d["observation"] for d in made},
            )


def _answer(row: dict[str, Any]) -> Answer:
    return Answer(
        row["agent_id"],
        row["action"],
        row["args"].encode(),
        row["message"],
        None if row["memory"] is None else row["memory"].encode(),
        row["status"],
        row["reason"],
    )


def _changes(events: Any) -> list[Intervention]:
    """The interventions among a tick's events."""
    found = [i for i, kind in enumerate(events["kind"].to_pylist()) if kind in _INPUTS]
    try:
        return [parse_change(msgspec.json.decode(events["data"][i].as_py())["change"]) for i in found]
    except (EthnosError, msgspec.MsgspecError, KeyError, TypeError) as error:
        raise RecordDamaged(f"an intervention on the record makes no sense: {error}") from None


def society_of(run: RunDirectory) -> Society:
    """The society of a run, from its directory."""
    return parse(run.society.read_text("utf-8"), str(run.society))


@dataclass(frozen=True)
class Stretch:
    """Ticks that were executed under one society file: a run's own, or those a branch shares with its parent."""

    run: RunDirectory
    society: Society
    first: int
    last: int | None
    """None: to the end."""


def stretches(run: RunDirectory, until: int | None = None) -> list[Stretch]:
    """The history of a run, up to `until`, by the society file that was in force."""
    found = []
    for one, last in lineage(run):
        parent = one.manifest().parent
        first = parent.tick + 1 if parent else 0
        last = min((t for t in (last, until) if t is not None), default=None)
        if last is None or first <= last + 1:
            found.append(Stretch(one, society_of(one), first, last))
    return found


def rebuild(run: RunDirectory, until: int | None = None) -> World:
    """The world as of the last committed tick, or of `until`. Raises RecordDamaged where it comes out otherwise."""
    seen, history = picture(run), stretches(run, until)
    for number in reversed(range(len(history))):
        found = _from_snapshots(seen, history[number])
        if found is not None:
            return _go_on(seen, history[number:], *found)
    return _go_on(seen, history, None, digest.START)


def _go_on(seen: Picture, history: list[Stretch], world: World | None, chain: str) -> World:
    """Execute what is left of these stretches."""
    for stretch in history:
        world = begin(world, stretch)
        for recorded in recorded_ticks(seen, world.tick, stretch.last):
            rows = events_batch(execute(world, stretch.society, recorded))
            chain = digest.extend(chain, rows)
            if chain != recorded.digest:
                raise RecordDamaged(
                    f"run {stretch.run.name} does not repeat: {difference(recorded, rows).text}. "
                    f"`ethnos verify {stretch.run.name}` checks the record itself"
                )
    assert world is not None
    return world


def begin(world: World | None, stretch: Stretch) -> World:
    """The world at the beginning of a stretch: a branch goes on under its own society file."""
    if world is None:
        return World(stretch.society.make_scenario(), stretch.society.seed)
    if stretch.first and world.tick == stretch.first - 1:
        world.become(stretch.society.make_scenario(), stretch.society.seed)
    return world


def execute(world: World, society: Society, recorded: Recorded) -> Step:
    """Make one committed tick happen again."""
    if recorded.tick:
        return world.step(recorded.answers, recorded.changes)
    return world.setup(society.cohorts())


def _from_snapshots(seen: Picture, stretch: Stretch) -> tuple[World, str] | None:
    """The world and the digest of the newest snapshot of a stretch that fits the record."""
    for path in snapshots.newest_first(stretch.run):
        try:
            saved = snapshots.load(path)
            if saved.tick < stretch.first - 1 or (stretch.last is not None and saved.tick > stretch.last):
                continue
            world = World(stretch.society.make_scenario(), stretch.society.seed)
            _check_fits(seen, saved, rules_digest(world.spec))
            world.restore(saved.world)
            if (world.tick, world.now.next_seq) != (saved.tick, saved.seq):
                raise ValueError("it does not hold the tick it says")
            return world, saved.digest
        except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as error:
            _log.warning("the snapshot %s is passed over: %s", path, error)
    return None


def _check_fits(seen: Picture, saved: snapshots.Saved, rules: str) -> None:
    """Raises ValueError if a snapshot is not of this record."""
    if saved.rules != rules:
        raise ValueError("it was written under other rules")
    if digest_at(seen, saved.tick) != saved.digest:
        raise ValueError(f"the record has another tick {saved.tick}")


def digest_at(seen: Picture, tick: int) -> str | None:
    """The digest up to a tick, as the record states it; None if it has no such tick."""
    rows = stream(seen, "ticks", ["digest"], tick - 1, tick)
    return next((d for batch in rows for d in batch["digest"].to_pylist()), None)


@dataclass(frozen=True)
class Difference:
    """Where a replay first came out otherwise than the record."""

    tick: int
    seq: int
    expected: dict[str, Any] | None
    """The row on the record; None: there is none any more."""
    found: dict[str, Any] | None
    """The row that came out; None: nothing more did."""

    @property
    def text(self) -> str:
        return f"tick {self.tick}, event {self.seq}: {_row(self.expected)} on the record, {_row(self.found)} now"


def difference(recorded: Recorded, rows: Any) -> Difference:
    """The first event in which a tick differs from its record."""
    expected, found = recorded.events.to_pylist(), rows.to_pylist()
    for one, other in zip_longest(expected, found):
        if one != other:
            return Difference(recorded.tick, (one or other)["seq"], one, other)
    return Difference(recorded.tick, expected[-1]["seq"] if expected else -1, None, None)


def _row(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    told = {k: v for k, v in row.items() if v is not None and k not in ("tick", "seq")}
    return msgspec.json.encode(told).decode()


__all__ = [
    "Difference",
    "Recorded",
    "Stretch",
    "begin",
    "difference",
    "digest_at",
    "execute",
    "rebuild",
    "recorded_ticks",
    "society_of",
    "stretches",
]

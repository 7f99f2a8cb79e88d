"""Records made by hand, in which the answer is known."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethnos.record.directory import RunDirectory
from ethnos.record.log import Log
from ethnos.run import create
from ethnos.society import parse
from ethnos.world.events import COLUMNS
from ethnos.world.world import Step
from tests.conftest import SOCIETY

Event = tuple[int, str, dict[str, Any]]
"""Tick, kind, fields."""


def born(*agents: int) -> list[Event]:
    fields = {"cohort": "beings", "generation": 0, "persona": {}}
    return [(0, "born", {"agent_id": a, "text": f"being{a}", **fields}) for a in agents]


def record(folder: Path, events: Sequence[Event], ticks: int, name: str = "planted") -> RunDirectory:
    """A run of Terra with exactly these events."""
    run = create(parse(SOCIETY), name, folder)
    extend(run, events, 0, ticks)
    return run


def extend(run: RunDirectory, events: Sequence[Event], first: int, ticks: int) -> None:
    """Add the ticks from `first` on."""
    ordered = sorted(events, key=lambda e: e[0])
    rows = [_row(seq, kind, fields) for seq, (_, kind, fields) in enumerate(ordered)]
    with Log(run) as log:
        for tick in range(first, ticks + 1):
            mine = [r for r, e in zip(rows, ordered, strict=True) if e[0] == tick]
            before = sum(e[0] <= tick for e in ordered)
            population = sum(e[1] == "born" for e in ordered[:before]) - sum(e[1] == "died" for e in ordered[:before])
            log.commit(Step(tick, mine, [], {"energy": 0}, population, before), {}, 1.0)


def seqs(events: Sequence[Event], kind: str) -> list[int]:
    """The `seq` of all events of a kind."""
    return [i for i, e in enumerate(sorted(events, key=lambda e: e[0])) if e[1] == kind]


def _row(seq: int, kind: str, fields: dict[str, Any]) -> tuple[Any, ...]:
    rest = {k: v for k, v in fields.items() if k not in (*COLUMNS, "actor_id")}
    columns = [fields.get(c) for c in COLUMNS]
    return (seq, kind, fields.get("actor_id", fields.get("agent_id")), *columns, json.dumps(rest) if rest else None)


def text(tick: int, agent: int, artifact: int, words: str) -> Event:
    fields = {"agent_id": agent, "artifact_id": artifact, "text": words, "name": f"text{artifact}"}
    return (tick, "artifact_created", {**fields, "x": 0, "y": 0, "amount": 0, "version": 1, "lifetime": None})


def read(tick: int, agent: int, artifact: int, author: int) -> Event:
    return (tick, "artifact_read", {"agent_id": agent, "artifact_id": artifact, "version": 1, "author_id": author})

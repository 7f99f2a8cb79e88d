"""Verification finds what was changed, and says where."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ethnos.record.verify import Verification, verify
from ethnos.world.world import Step
from tests.tiny import make_run, orchard


def failed(found: Verification) -> dict[str, str]:
    return {c.name: c.detail for c in found.checks if not c.ok}


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def set_value(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


def test_a_sound_run(runs: Path) -> None:
    made = make_run("sound")
    found = verify(made.run)
    assert failed(found) == {}
    assert (found.digest, found.ticks, found.ledger_residual) == (made.digest, 30, 0.0)
    assert found.events == sum(len(s.events) for s in made.steps)


EVENT_FORGERIES = {
    "a value": (lambda t: set_value(t, "amount", t["kind"].index("grew").as_py(), 4.0), {"digest", "ledger"}),
    "an id": (lambda t: set_value(t, "agent_id", 0, 99), {"digest"}),
    "a row gone": (lambda t: pa.concat_tables([t.slice(0, 7), t.slice(8)]), {"record", "seq", "digest"}),
    "a row twice": (lambda t: pa.concat_tables([t.slice(0, 8), t.slice(7)]), {"seq", "digest"}),
    "a row more": (lambda t: pa.concat_tables([t, t.slice(7, 1)]), {"seq"}),
    "two rows swapped": (
        lambda t: pa.concat_tables([t.slice(0, 7), t.slice(8, 1), t.slice(7, 1), t.slice(9)]),
        {"seq", "digest"},
    ),
    "renumbered": (lambda t: t.set_column(1, t.schema.field(1), pc.add(t["seq"], 1)), {"seq", "digest"}),
    "a death erased": (
        lambda t: set_value(t, "kind", t["kind"].index("died").as_py(), "late"),
        {"digest", "population"},
    ),
}


@pytest.mark.parametrize("name", EVENT_FORGERIES)
def test_forged_events_are_found(runs: Path, name: str) -> None:
    change, expected = EVENT_FORGERIES[name]
    run = make_run("forged").run
    rewrite(run.parts("events")[0], change)
    assert expected <= failed(verify(run)).keys()


TICK_FORGERIES = {
    "a stock": (lambda t: set_value(t, "stocks", 5, '{"apples": 1e6}'), {"ledger"}),
    "a stock gone": (lambda t: set_value(t, "stocks", 5, "{}"), {"ledger"}),
    "a stock that is no number": (lambda t: set_value(t, "stocks", 5, '{"apples": "many"}'), {"ledger"}),
    "stocks that are no JSON": (lambda t: set_value(t, "stocks", 5, "{"), {"ledger"}),
    "a count": (lambda t: set_value(t, "rejected", 5, 3), {"decisions"}),
    "a population": (lambda t: set_value(t, "population", 5, 3), {"population"}),
    "a digest": (lambda t: set_value(t, "digest", 5, "00" * 32), {"digest"}),
    "a tick gone": (lambda t: pa.concat_tables([t.slice(0, 5), t.slice(6)]), {"ticks", "seq", "digest"}),
    "the last tick gone": (lambda t: t.slice(0, 30), {"seq", "manifest"}),
    "events uncounted": (lambda t: set_value(t, "events", 5, -1), {"seq"}),
}


@pytest.mark.parametrize("name", TICK_FORGERIES)
def test_forged_ticks_are_found(runs: Path, name: str) -> None:
    change, expected = TICK_FORGERIES[name]
    run = make_run("forged").run
    rewrite(run.parts("ticks")[0], change)
    assert expected <= failed(verify(run)).keys()


def test_decisions_that_are_gone_are_found(runs: Path) -> None:
    run = make_run("forged").run
    rewrite(run.parts("decisions")[0], lambda t: t.slice(0, 20))
    assert failed(verify(run)).keys() == {"decisions"}


def test_a_manifest_that_says_otherwise_is_found(runs: Path) -> None:
    run = make_run("forged").run
    manifest = run.manifest()
    manifest.digest = "0" * 64
    run.write_manifest(manifest)
    assert failed(verify(run)).keys() == {"manifest"}


@pytest.mark.parametrize("text", ["scenario: terra", None])
def test_another_society_than_the_record_is_of_is_found(runs: Path, text: str | None) -> None:
    run = make_run("altered").run
    run.society.unlink()
    if text is not None:
        run.society.write_text(text)
    assert failed(verify(run)).keys() == {"society"}


def test_what_a_scenario_forgot_to_record_is_named(runs: Path) -> None:
    def forget(step: Step) -> None:
        if step.tick >= 12:
            step.stocks["apples"] += 0.5

    found = verify(make_run("leak", change=forget).run)
    assert found.ledger_residual == 0.5
    assert failed(found) == {"ledger": "tick 12: apples changed by 0.5 for no reason on record"}


def test_a_run_without_anything_conserved_has_no_residual(runs: Path) -> None:
    run = make_run("free", orchard(3)).run
    manifest = run.manifest()
    manifest.conserved = {}
    run.write_manifest(manifest)
    assert (verify(run).ok, verify(run).ledger_residual) == (True, 0.0)

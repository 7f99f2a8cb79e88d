"""`ethnos prompt`: what exactly was sent to a model in one turn, and what came back."""

from typing import Any

import msgspec
from duckdb import DuckDBPyConnection
from rich.panel import Panel

from ethnos.cli.output import console, print_json, safe
from ethnos.errors import QueryError
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect


def prompt(run: str, agent: int, tick: int, *, as_json: bool) -> None:
    """Show one turn of one agent. Raises RunNotFound, QueryError if no model was asked in it."""
    directory = RunDirectory.find(run)
    with connect(directory) as con:
        turn = turn_of(con, agent, tick)
    if as_json:
        print_json({"run": directory.name, **turn})
        return
    out = console()
    for layer in turn["layers"]:
        title = f"{layer['name']} (version {layer['version']}, {layer['hash']})"
        out.print(Panel(_lines(layer["text"]), title=title, title_align="left", highlight=False))
    for title in ("first_reply", "reply"):
        if turn["how"].get(title):
            out.print(Panel(_lines(turn["how"][title]), title=title.replace("_", " "), title_align="left"))
    out.print(_lines(_told(turn)), highlight=False)


def _lines(text: str) -> str:
    """Safe for a terminal, line by line."""
    return "\n".join(safe(line) for line in text.split("\n"))


def turn_of(con: DuckDBPyConnection, agent: int, tick: int) -> dict[str, Any]:
    """One turn that went to a model: its layers with their texts, its provenance, and what became of it."""
    row = con.execute(
        "SELECT action, args, outcome, reason, how FROM decisions WHERE agent_id = ? AND tick = ?", [agent, tick]
    ).fetchone()
    if row is None:
        raise QueryError(f"agent {agent} took no turn in tick {tick}")
    how = msgspec.json.decode(row[4]) if row[4] else {}
    if "layers" not in how:
        raise QueryError(f"agent {agent} asked no model in tick {tick}; its mind is code")
    layers = [
        {"name": name, "version": version, "hash": digest, "text": _text(con, digest)}
        for name, version, digest in how["layers"]
    ]
    decided = dict(zip(("action", "args", "outcome", "why"), row[:4], strict=True))
    return {"agent_id": agent, "tick": tick, **decided, "layers": layers, "how": how}


def _text(con: DuckDBPyConnection, digest: str) -> str:
    found = con.execute("SELECT text FROM layers WHERE hash = ? LIMIT 1", [digest]).fetchone()
    return str(found[0]) if found else "(not on the record)"


def _told(turn: dict[str, Any]) -> str:
    how = turn["how"]
    return (
        f"{turn['action']} {turn['args']}: {turn['outcome']} {turn['why']}\n"
        f"stage {how['stage']}, model {how['model']} on {how['engine']}, {how['tokens']} prompt tokens "
        f"({how['cached']} cached), {how['completion']} completion tokens, {how['latency_ms']:.0f} ms, "
        f"{how['attempts']} attempts, seed {how['seed']}, cost {how['cost']:g}"
    )

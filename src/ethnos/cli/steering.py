"""`ethnos pause`, `continue`, `step`, `stop`, `intervene`: to a running society, through its control service."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ethnos.cli.output import print_json, print_line
from ethnos.control import Control
from ethnos.errors import SocietyError
from ethnos.record.directory import RunDirectory
from ethnos.wire.v1 import control_pb2 as wire
from ethnos.world.interventions import parse_change


def steer(name: str, call: str, *, as_json: bool, **request: Any) -> None:
    """Make one call that answers with a status, and print that."""
    with Control(found(name), "control") as control:
        tell(control.name, control.call(call, **request), as_json=as_json)


def found(name: str) -> RunDirectory | Path:
    """A run, or somebody else's run that a contact file tells of."""
    return Path(name) if name.endswith(".json") and Path(name).is_file() else RunDirectory.find(name)


def intervene(name: str, do: str, values: Sequence[str], *, as_json: bool) -> None:
    """Change a running society. Raises Refused with the reason."""
    run = found(name)
    change = parse_change({"do": do, **dict(map(_value, values))})
    asked = {**change.change(), **({"tick": change.tick} if change.tick else {})}
    with Control(run) as control:
        tick = control.call("Intervene", change=json.dumps(asked).encode()).tick
    if as_json:
        print_json({"run": run.name, "tick": tick, "change": asked})
    else:
        print_line(f"{run.name}: {do} in tick {tick}")


_WORDS = ("text", "name", "speaker", "cohort")
"""What is taken literally; all else is YAML."""


def _value(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise SocietyError(f"{text}: write it as KEY=VALUE")
    if key in _WORDS:
        return key, value
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        return key, value


def tell(run: str, status: wire.Status, *, as_json: bool) -> None:
    """Print how a run is doing."""
    phase = wire.Status.Phase.Name(status.phase).removeprefix("PHASE_").lower()
    if as_json:
        print_json({"run": run, "phase": phase, "tick": status.tick, "population": status.population})
    else:
        print_line(f"{run}: {phase}, tick {status.tick} of {status.ticks}, population {status.population}")

"""Ethnos: societies of language agents that run for days, survive crashes, repeat exactly and answer SQL.

>>> import ethnos
>>> society = ethnos.load_society("terra", ["ticks=5"])
>>> society.scenario
'terra'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import Meta

    from ethnos.errors import EthnosError, Refused
    from ethnos.record.directory import RunDirectory
    from ethnos.record.reader import open_run
    from ethnos.run import resume, run, run_here
    from ethnos.society import Society
    from ethnos.society import load as load_society
    from ethnos.world.events import Event
    from ethnos.world.scenario import Cohort, Flow, Mind, News, Params, Scenario, Tick
    from ethnos.world.turn import Agent, Decision, Turn

_WHERE = {
    "Agent": "ethnos.world.turn",
    "Cohort": "ethnos.world.scenario",
    "Decision": "ethnos.world.turn",
    "EthnosError": "ethnos.errors",
    "Event": "ethnos.world.events",
    "Flow": "ethnos.world.scenario",
    "Meta": "msgspec",
    "Mind": "ethnos.world.scenario",
    "News": "ethnos.world.scenario",
    "Params": "ethnos.world.scenario",
    "Refused": "ethnos.errors",
    "RunDirectory": "ethnos.record.directory",
    "Scenario": "ethnos.world.scenario",
    "Society": "ethnos.society",
    "Tick": "ethnos.world.scenario",
    "Turn": "ethnos.world.turn",
    "load_society": "ethnos.society:load",
    "open_run": "ethnos.record.reader",
    "resume": "ethnos.run",
    "run": "ethnos.run",
    "run_here": "ethnos.run",
}

__all__ = [
    "Agent",
    "Cohort",
    "Decision",
    "EthnosError",
    "Event",
    "Flow",
    "Meta",
    "Mind",
    "News",
    "Params",
    "Refused",
    "RunDirectory",
    "Scenario",
    "Society",
    "Tick",
    "Turn",
    "load_society",
    "open_run",
    "resume",
    "run",
    "run_here",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: an actor then pays only for what it needs."""
    if name not in _WHERE:
        raise AttributeError(f"module 'ethnos' has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""A mind that decides what is on record, and may hand over to another where the record ends."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ethnos.errors import MindFailed
from ethnos.world.scenario import Mind
from ethnos.world.spec import ScenarioSpec
from ethnos.world.turn import Decision, Turn

Row = Mapping[str, Any]
"""A row of `decisions`, as any reader of a run gives it: tick, agent_id, action, args, message, memory, status,
reason. Columns beyond these are ignored."""


class RecordedMind:
    """Answers with the recorded decisions of a run; what was late or failed is so again.

    `then` decides where nothing is on record: so a branch of a run can think on with another mind.
    """

    def __init__(self, spec: ScenarioSpec, rows: Iterable[Row], then: Mind | None = None) -> None:
        self._spec = spec
        self._rows = {(row["agent_id"], row["tick"]): row for row in rows}
        self._then = then

    async def decide(self, turn: Turn) -> Any:
        """Raises MindFailed for a turn without decision, on record or not, and Refused for one that was no action."""
        row = self._rows.get((turn.agent.id, turn.tick))
        if row is not None:
            return self._decision(row)
        if self._then is None:
            raise MindFailed(f"no decision of agent {turn.agent.id} in tick {turn.tick} is on record")
        decided = self._then.decide(turn)
        return await decided if inspect.isawaitable(decided) else decided

    def _decision(self, row: Row) -> Decision:
        if row["status"] in ("late", "failed"):
            raise MindFailed(row["reason"] or row["status"], {"recorded": True}, late=row["status"] == "late")
        action = self._spec.decode_action(row["action"], row["args"].encode())
        memory = row.get("memory")
        return Decision(
            action, row.get("message") or "", None if memory is None else memory.encode(), {"recorded": True}
        )


__all__ = ["RecordedMind", "Row"]

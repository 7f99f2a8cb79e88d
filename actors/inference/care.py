"""Engines live and die: who notices, who asks them back, and who tells them to stop."""

import asyncio
import logging
from collections.abc import Callable

from ethnos.actors.inference.engines.base import Trouble
from ethnos.actors.inference.lane import Lane
from ethnos.actors.inference.settings import Settings
from ethnos.actors.inference.tasks import Tasks
from ethnos.errors import EthnosError

log = logging.getLogger(__name__)

ABORT_TIMEOUT = 5.0


class Care:
    """Looks after the engines of a pool."""

    def __init__(self, settings: Settings, tasks: Tasks, changed: Callable[[Lane], None]) -> None:
        self._settings = settings
        self._tasks = tasks
        self._changed = changed

    async def connect(self, lane: Lane) -> None:
        """For the first time. One that cannot be reached is tried again."""
        try:
            await lane.engine.start()
        except Trouble as trouble:
            log.warning("engine %s: %s", lane.name, trouble)
            lane.why_down = str(trouble)
            self.bury(lane)

    def bury(self, lane: Lane) -> None:
        """An engine is gone."""
        if not lane.down:
            log.warning("engine %s is down", lane.name)
            lane.died()
            self._changed(lane)
            self._tasks.run(self._look_after(lane))

    def suspect(self, lane: Lane) -> None:
        """Something was late: see whether the engine lives."""
        if not lane.probing and not lane.down:
            lane.probing = True
            self._tasks.run(self._probe(lane))

    def send_aborts(self, lane: Lane) -> None:
        """Tell an engine which calls nobody waits for any more."""
        rids, lane.to_abort = lane.to_abort, []
        if rids and not lane.down:
            self._tasks.run(_abort(lane, rids))

    async def _look_after(self, lane: Lane) -> None:
        """Ask a dead engine back until it comes."""
        delay = self._settings.first_recheck_s
        while not await self._revived(lane):
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._settings.longest_recheck_s)
        log.warning("engine %s is back", lane.name)
        lane.rose()
        self._changed(lane)

    async def _revived(self, lane: Lane) -> bool:
        try:
            await lane.engine.revive()
            await lane.engine.start()
        except (Trouble, EthnosError, OSError) as error:
            log.info("engine %s: %s", lane.name, error)
            return False
        return True

    async def _probe(self, lane: Lane) -> None:
        try:
            async with asyncio.timeout(self._settings.health_timeout_s):
                healthy = await lane.engine.healthy()
        except (Trouble, TimeoutError):
            healthy = False
        lane.probing = False
        if not healthy:
            self.bury(lane)


async def _abort(lane: Lane, rids: list[str]) -> None:
    try:
        async with asyncio.timeout(ABORT_TIMEOUT):
            await lane.engine.abort(rids)
    except (Trouble, TimeoutError) as error:
        log.info("could not cancel %d calls at %s: %s", len(rids), lane.name, error or "timed out")

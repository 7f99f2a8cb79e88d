"""`ethnos play`: a person in an agent's place."""

import asyncio
import sys
import threading

from ethnos.actors.host import Host, Lost
from ethnos.actors.inference.request import Reply, Request
from ethnos.actors.minds.human import HELP, HumanMind
from ethnos.cli.output import print_line
from ethnos.control import contact_of
from ethnos.errors import ClusterError, QueryError
from ethnos.record.directory import RunDirectory
from ethnos.record.reader import connect
from ethnos.rights import token_for
from ethnos.society import Society
from ethnos.world.rebuild import society_of

RETRY_S = 0.2
PATIENCE_S = 60.0
"""How long to look for a world that went away: it may be starting again."""


def play(name: str, who: str) -> None:
    """Play one agent until its end, the run's, or the person's wish. Raises QueryError, ClusterError, Refused."""
    run = RunDirectory.find(name)
    contact_of(run)
    agent, called = _find(run, who)
    society = society_of(run)
    print_line(f"You play {called} in {run.name}. You have {society.decision_deadline:g} seconds for each turn.")
    print_line(f"Type {HELP}.")
    try:
        print_line(asyncio.run(_play(run, society, agent)))
    except KeyboardInterrupt:
        print_line("You have left.")


def _find(run: RunDirectory, who: str) -> tuple[int, str]:
    """Id and name of a living agent."""
    with connect(run) as con:
        sql = (
            "SELECT agent_id, name FROM agents WHERE died IS NULL AND (name = $who OR CAST(agent_id AS VARCHAR) = $who)"
        )
        row = con.execute(sql, {"who": who}).fetchone()
    if row is None:
        raise QueryError(
            f"nobody called {who!r} lives in {run.name}; who does: "
            f'ethnos sql {run.name} "FROM agents WHERE died IS NULL"'
        )
    return int(row[0]), str(row[1])


async def _play(run: RunDirectory, society: Society, agent: int) -> str:
    """Why it is over, in words. A world that comes back after a crash is gone on with."""
    lines = _Lines()
    left = asyncio.Event()
    mind = HumanMind(society.make_scenario(), print_lines, lines.next, left.set)
    leaving = asyncio.create_task(left.wait())
    while (found := await _contact(run)) is not None:
        playing = asyncio.create_task(Host(society, _no_model, mind=mind).play(*found, agent))
        await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            playing.cancel()
            await asyncio.wait((playing,))
            return "You have left."
        try:
            return f"It is over: {playing.result()}."
        except Lost:
            print_line("The world has gone away; waiting for it to come back.")
            await asyncio.sleep(RETRY_S)
    return f"It is over: run {run.name} is {run.state()}."


async def _contact(run: RunDirectory) -> tuple[str, str] | None:
    """Where the world is, once it is there; None if it does not come back."""
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while run.state() == "running" and asyncio.get_running_loop().time() < until:
        try:
            address, secret = contact_of(run)
            return address, token_for(secret, "act")
        except ClusterError:
            await asyncio.sleep(RETRY_S)
    return None


async def _no_model(model: str, request: Request) -> Reply:
    raise AssertionError("a person asks no model")


def print_lines(text: str) -> None:
    for line in text.split("\n"):
        print_line(line)


class _Lines:
    """Standard input, line by line, without blocking the stream to the world."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    async def next(self) -> str | None:
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
        return line

    def _read(self) -> None:
        for line in sys.stdin or ():
            self._put(line.rstrip("\n"))
        self._put(None)

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

"""Where agents live: which host has whom, and the stream to each host."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

import msgspec

from ethnos.wire.v1 import world_pb2 as wire
from ethnos.world.turn import Agent

FIRST_GUEST = 1 << 31
"""Numbers of guests begin here."""
BATCH = 256
"""Observations in one message: small enough that an actor starts thinking while the next ones are prepared."""


@dataclass
class Host:
    """One actor's place at the world: it may be connected, and agents live there."""

    number: int
    agents: set[int] = field(default_factory=set)
    """Ids; membership only, never iterated in an order that matters."""
    incarnation: int = -1
    outgoing: asyncio.Queue[wire.ToHost | None] | None = None
    """What the stream is to send, None at its end; no queue while nobody is connected."""
    guest: bool = False
    """Whether a person sits here, in the place of one agent's own mind."""

    @property
    def connected(self) -> bool:
        return self.outgoing is not None

    def send(self, message: wire.ToHost) -> None:
        """Hand over to the stream, if there is one; a host that comes back is told everything anew."""
        if self.outgoing is not None:
            self.outgoing.put_nowait(message)


class Placement:
    """Decides which host a new agent lives on. The same agents always get the same decisions, wherever they live."""

    def __init__(self, agents_per_actor: int, most_hosts: int, spares: int = 0) -> None:
        self.agents_per_actor = agents_per_actor
        self.most_hosts = most_hosts
        """Once there are as many hosts, they take more agents than `agents_per_actor`."""
        self.spares = spares
        """Hosts without agents to keep ready."""
        self.hosts: list[Host] = []
        self._guests: dict[int, Host] = {}
        self._home: dict[int, Host] = {}

    def home(self, agent: int) -> Host:
        return self._home[agent]

    def host(self, number: int) -> Host:
        """The host of that number. Raises KeyError if there is none."""
        if number in self._guests:
            return self._guests[number]
        if number >= len(self.hosts):
            raise KeyError(number)
        return self.hosts[number]

    @property
    def guests(self) -> list[Host]:
        return list(self._guests.values())

    def seat(self, agent: int) -> Host:
        """Move an agent from its host to one of a person who plays it."""
        number = next(n for n in count(FIRST_GUEST) if n not in self._guests)
        self._home[agent].agents.discard(agent)
        self._home[agent] = self._guests[number] = Host(number, {agent}, guest=True)
        return self._guests[number]

    def unseat(self, guest: Host) -> Host | None:
        """Move a guest's agent back to where its own mind is; returns that host, None if the agent is gone."""
        self._guests.pop(guest.number, None)
        return self.place(min(guest.agents)) if guest.agents else None

    def place(self, agent: int) -> Host:
        """A host with room, a new one, or the one with the fewest agents."""
        host = next((h for h in self.hosts if len(h.agents) < self.agents_per_actor), None)
        if host is None and len(self.hosts) < self.most_hosts:
            host = Host(len(self.hosts))
            self.hosts.append(host)
        if host is None:
            host = min(self.hosts, key=lambda h: (len(h.agents), h.number))
        host.agents.add(agent)
        self._home[agent] = host
        self._keep_spares()
        return host

    def _keep_spares(self) -> None:
        """Have actors started for agents that are not born yet: starting one takes a second, a birth should not."""
        spare = sum(not h.agents for h in self.hosts)
        while spare < self.spares and len(self.hosts) < self.most_hosts:
            self.hosts.append(Host(len(self.hosts)))
            spare += 1

    def remove(self, agent: int) -> Host:
        host = self._home.pop(agent)
        host.agents.discard(agent)
        return host


def adopt(agents: Iterable[Agent]) -> wire.ToHost:
    """The message that hands agents to a host."""
    return wire.ToHost(adopt=wire.Adopt(agents=[agent_message(a) for a in agents]))


def agent_message(agent: Agent) -> wire.Agent:
    return wire.Agent(
        id=agent.id,
        name=agent.name,
        cohort=agent.cohort,
        persona=msgspec.json.encode(agent.persona),
        parent=agent.parent,
        generation=agent.generation,
        born=agent.born,
        memory=agent.memory,
        inheritance=agent.inheritance,
    )


def show(tick: int, ids: Sequence[int], observations: Sequence[bytes], traceparent: str = "") -> Iterable[wire.ToHost]:
    """The messages that show a host's agents what they observe."""
    for i in range(0, len(ids), BATCH):
        yield wire.ToHost(
            observations=wire.Observations(
                tick=tick,
                agent_ids=ids[i : i + BATCH],
                observations=observations[i : i + BATCH],
                traceparent=traceparent,
            )
        )

"""What a mind remembers: its last turns, notes to itself, a playbook, and what stands out of its past.

A memory is an agent's committed state. It travels in every decision as JSON, comes back with every turn, and is a
column in SQL, so it is small for ever. What falls out goes by stated rules:

- The last `window` turns are kept in full, as long as they fit in `history_tokens`. When they do not any more,
  the oldest go, a third of the window at once: between such cuts a prompt only grows at its end, and an engine
  can reuse what it has read.
- A turn that leaves the window becomes one line of the past if it stood out (see `importance`), else only the
  count of forgotten turns goes up.
- Notes are kept while they fit in `note_tokens`; the oldest go to the past, where they count as important.
- Of the past at most `past` lines are kept; the least important go first, age counted in.
- Of more than `letters` letters in one turn the first are kept in full, up to `letter_chars`, the rest counted.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Struct
from pydantic import Field

from ethnos.actors.minds.playbook import Change, Strategy, changed, pruned
from ethnos.actors.minds.recall import TOP_WEIGHT, Memento, spared
from ethnos.actors.minds.text import clean, fit, quote, tokens
from ethnos.world.limits import MAX_MEMORY_BYTES
from ethnos.world.prose import Quote

NOTE_WEIGHT = 6
MISHAPS = ("rejected:", "late:", "failed:")
"""How an outcome begins if an agent did not get its way; the world says so."""

_Count = Annotated[int, Field(ge=0, le=1000)]
_Tokens = Annotated[int, Field(ge=0, le=10_000)]


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much is remembered."""

    window: _Count = 8
    """Turns remembered in full, at most (Paolo et al.: 1; their long memory: 20)."""
    history_tokens: _Tokens = 1000
    """Tokens all of them take together, at most."""
    letters: _Count = 12
    """Letters of one turn that are kept."""
    letter_chars: _Count = 240
    """Characters of each that are kept."""
    note_tokens: _Tokens = 150
    """Tokens for all notes together (Paolo et al.: 150)."""
    strategies: _Count = 12
    """Items in the playbook, at most."""
    playbook_tokens: _Tokens = 400
    """Tokens for all of them together."""
    past: _Count = 32
    """Things remembered from before the window."""
    past_chars: _Count = 280
    """Characters of each."""


class Letter(Struct, frozen=True):
    """Something heard, as it is remembered."""

    speaker: str
    text: str


class Note(Struct, frozen=True):
    """A line that an agent wrote to itself."""

    tick: int
    text: str


class Episode(Struct, omit_defaults=True):
    """One turn: what was seen and heard, what was done and said, and what came of it."""

    tick: int
    saw: str = ""
    heard: list[Letter] = []
    unheard: int = 0
    """Letters beyond those kept."""
    did: str = ""
    """The kind of action and its arguments; empty if there was no decision."""
    said: str = ""
    why: str = ""
    """The reason the mind gave."""
    outcome: str = ""
    """Known from the next turn on."""


class Memory(Struct, omit_defaults=True):
    """Everything a mind knows beyond this turn."""

    version: int = 1
    notes: list[Note] = []
    notes_gone: int = 0
    """Notes that had to go."""
    playbook: list[Strategy] = []
    recent: list[Episode] = []
    forgotten: int = 0
    """Turns that left the window."""
    past: list[Memento] = []
    """What stands out of them, oldest first."""


class Spoken(Protocol):
    """A message as observations show it."""

    @property
    def speaker(self) -> str: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Thought:
    """What a mind adds to its memory in one turn."""

    note: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps memories within their limits."""

    limits: MemoryLimits = field(default_factory=MemoryLimits)

    def episode(self, tick: int, saw: str, heard: Sequence[Spoken], **rest: Any) -> Episode:
        """A turn as it is remembered. `rest` are the other fields; each is cut to a length that bounds it."""
        kept = [
            Letter(clean(m.speaker)[:40], shortened(m.text, self.limits.letter_chars))
            for m in heard[: self.limits.letters]
        ]
        texts = {name: shortened(value, 300) for name, value in rest.items()}
        return Episode(tick, shortened(saw, 300), kept, len(heard) - len(kept), **texts)

    def settled(self, memory: Memory, tick: int, outcome: str) -> Memory:
        """The memory when its next turn begins: the last one's outcome is known.

        A turn without decision left nothing in memory but its outcome; it becomes an episode of its own.
        """
        outcome = shortened(outcome, 300)
        recent = memory.recent
        if outcome.startswith(("late:", "failed:")) and (not recent or recent[-1].tick < tick - 1):
            recent = [*recent, Episode(tick - 1, outcome=outcome)]
        elif recent and not recent[-1].outcome:
            recent = [*recent[:-1], msgspec.structs.replace(recent[-1], outcome=outcome)]
        return msgspec.structs.replace(memory, recent=recent)

    def with_turn(self, memory: Memory, episode: Episode, thought: Thought, name: str) -> Memory:
        """The memory after a turn of the agent called `name`, within all limits."""
        limits = self.limits
        book = memory.playbook
        if thought.change is not None:
            book = changed(book, thought.change, episode.tick, limits.strategies, limits.playbook_tokens)
        notes, notes_left = self._noted(memory.notes, thought.note, episode.tick)
        recent, turns_left = self._windowed([*memory.recent, episode])
        lines = (remembered(e, recent, name, limits.past_chars) for e in turns_left)
        past = [
            *memory.past,
            *(m for m in lines if m is not None),
            *(Memento(n.tick, shortened(n.text, limits.past_chars), NOTE_WEIGHT) for n in notes_left),
        ]
        return Memory(
            notes=notes,
            notes_gone=memory.notes_gone + len(notes_left),
            playbook=book,
            recent=recent,
            forgotten=memory.forgotten + len(turns_left),
            past=spared(sorted(past, key=lambda m: m.tick), limits.past),
        )

    def _noted(self, notes: list[Note], text: str, tick: int) -> tuple[list[Note], list[Note]]:
        """The notes that stay and those that go, the oldest first."""
        text = fit(clean(text).strip(), self.limits.note_tokens)
        kept = [*notes, Note(tick, text)] if text else list(notes)
        first = 0
        while sum(tokens(n.text) for n in kept[first:]) > self.limits.note_tokens:
            first += 1
        return kept[first:], kept[:first]

    def _windowed(self, recent: list[Episode]) -> tuple[list[Episode], list[Episode]]:
        """The turns that stay and those that go. The last one stays for its outcome, if the window is not shut."""
        window, budget = self.limits.window, self.limits.history_tokens
        sizes = [tokens(line(e, quote)) + 1 for e in recent]
        if len(recent) <= window and sum(sizes) <= budget:
            return recent, []
        first = max(0, len(recent) - window + window // 3)
        first = min(first, len(recent) - min(1, window))
        while first < len(recent) - 1 and sum(sizes[first:]) > budget * 2 // 3:
            first += 1
        return recent[first:], recent[:first]


def shortened(text: str, length: int) -> str:
    """A clean text of at most `length` characters."""
    text = clean(text)
    return text if len(text) <= length else text[: max(0, length - 1)] + "\u2026"[:length]


def line(episode: Episode, quoted: Quote) -> str:
    """An episode in one line; what agents wrote in it is quoted."""
    parts = [f"- tick {episode.tick}:"]
    if episode.saw:
        parts.append(f"you had {episode.saw}.")
    if episode.heard:
        letters = "; ".join(f"{quoted(m.speaker)} said {quoted(m.text)}" for m in episode.heard)
        more = f"; and {episode.unheard} more" if episode.unheard else ""
        parts.append(f"You heard: {letters}{more}.")
    parts.append(f"You did {quoted(episode.did)}" if episode.did else "You did not decide")
    if episode.said:
        parts.append(f"and said {quoted(episode.said)}")
    if episode.why:
        parts.append(f"because {quoted(episode.why)}")
    if episode.outcome:
        parts.append(f"- it came to: {quoted(episode.outcome)}")
    return " ".join(parts)


def importance(episode: Episode, others: Iterable[Episode], name: str) -> int:
    """How much a turn stands out, from 1 (routine) to 10.

    1, and 3 if it was spoken to by name, 1 if it heard anything at all, 2 if it did not get its way, 2 if it did
    what it did in no other of its recent turns, 1 if it said something.
    """
    kind = _kind(episode)
    called = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    weight = 1
    weight += 3 * any(called.search(m.text) for m in episode.heard)
    weight += 1 * bool(episode.heard)
    weight += 2 * episode.outcome.startswith(MISHAPS)
    weight += 2 * (bool(kind) and all(_kind(o) != kind for o in others))
    weight += 1 * bool(episode.said)
    return min(weight, TOP_WEIGHT)


def _kind(episode: Episode) -> str:
    return episode.did.partition(" ")[0]


def remembered(episode: Episode, others: Sequence[Episode], name: str, length: int) -> Memento | None:
    """What is left of a turn that leaves the window; nothing of a routine one."""
    weight = importance(episode, others, name)
    if weight <= 1 or length <= 0:
        return None
    heard = "; ".join(f"{m.speaker} said: {m.text}" for m in episode.heard)
    parts = (
        f"heard {heard}" if heard else "",
        f"did {episode.did}" if episode.did else "",
        f"said: {episode.said}" if episode.said else "",
        f"it came to: {episode.outcome}" if episode.outcome else "",
    )
    return Memento(episode.tick, shortened(". ".join(p for p in parts if p), length), weight)


_decode = msgspec.json.Decoder(Memory).decode


def read(data: bytes) -> Memory:
    """The memory in an agent's state; a new one if there is none. Raises ValueError if it is something else."""
    if not data:
        return Memory()
    try:
        memory = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no memory of a mind that thinks: {error}") from None
    if memory.version != 1:
        raise ValueError(f"a memory of version {memory.version}; this is version 1")
    return memory


def write(memory: Memory) -> bytes:
    """The memory as JSON, for the record. The past gives way, then the oldest turns, if limits were set too wide."""
    while len(data := msgspec.json.encode(memory)) > MAX_MEMORY_BYTES:
        if memory.past:
            memory = msgspec.structs.replace(memory, past=memory.past[len(memory.past) // 2 + 1 :])
        elif memory.recent:
            gone = len(memory.recent) // 2 + 1
            recent, forgotten = memory.recent[gone:], memory.forgotten + gone
            memory = msgspec.structs.replace(memory, recent=recent, forgotten=forgotten)
        else:
            memory = Memory(playbook=memory.playbook[1:])
    return data


def inherit(parent_memory: bytes, limits: MemoryLimits | None = None) -> bytes:
    """What a child is born with: its parent's playbook, marked as inherited. Turns, notes and past are its own."""
    try:
        book = read(parent_memory).playbook
    except ValueError:
        return b""
    limits = limits or MemoryLimits()
    kept = pruned(
        [Strategy(s.id, s.text, s.tick, s.weight, True) for s in book], limits.strategies, limits.playbook_tokens
    )
    return write(Memory(playbook=kept)) if kept else b""


__all__ = [
    "MISHAPS",
    "Episode",
    "Keeper",
    "Letter",
    "Memory",
    "MemoryLimits",
    "Note",
    "Thought",
    "importance",
    "inherit",
    "line",
    "read",
    "write",
]

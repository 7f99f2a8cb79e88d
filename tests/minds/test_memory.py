"""Memory: bounded for ever, the same on every machine, and nothing falls out but by its stated rule."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ethnos.actors.minds import inherit
from ethnos.actors.minds.memory import (
    Episode,
    Keeper,
    Letter,
    Memory,
    MemoryLimits,
    Note,
    Thought,
    importance,
    line,
    read,
    write,
)
from ethnos.actors.minds.playbook import Change, Strategy, changed, pruned
from ethnos.actors.minds.recall import Memento, recalled, similarities, spared
from ethnos.actors.minds.text import quote, tokens
from ethnos.world.limits import MAX_MEMORY_BYTES
from ethnos.world.scenario import Message

KEEPER = Keeper()


def lived(turns: int, keeper: Keeper = KEEPER, heard: Sequence[Message] = (), **rest: str) -> Memory:
    memory = Memory()
    for tick in range(1, turns + 1):
        memory = keeper.settled(memory, tick, "done" if tick > 1 else "")
        episode = keeper.episode(tick, "coins 5", heard, did='walk {"to":"inn"}', **rest)
        memory = keeper.with_turn(memory, episode, Thought(), "Ann")
    return memory


def test_a_memory_survives_its_way_through_the_record() -> None:
    memory = KEEPER.with_turn(
        lived(20, heard=[Message("Bob", "hi Ann")]),
        Episode(21),
        Thought("remember", Change("add", "walk")),
        "Ann",
    )
    assert read(write(memory)) == memory
    assert b'"notes":[{"tick":21,"text":"remember"}]' in write(memory)


def test_no_memory_yet_is_an_empty_one() -> None:
    assert read(b"") == Memory()


@pytest.mark.parametrize("data", [b"null", b"[]", b"\xff", b'{"notes":7}', b'{"version":2}', b"{" * 5000])
def test_what_is_no_memory_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="memory"):
        read(data)


def test_the_outcome_of_a_turn_is_known_in_the_next() -> None:
    memory = KEEPER.settled(lived(1), 2, "you met Bob")
    assert memory.recent[-1].outcome == "you met Bob"
    assert KEEPER.settled(memory, 3, "late")  # an outcome is never overwritten
    assert KEEPER.settled(memory, 3, "other").recent[-1].outcome == "you met Bob"


def test_a_turn_without_decision_is_remembered_by_its_outcome() -> None:
    memory = KEEPER.settled(lived(1), 3, "late: no decision in time")
    assert [(e.tick, e.did, e.outcome) for e in memory.recent] == [
        (1, 'walk {"to":"inn"}', ""),
        (2, "", "late: no decision in time"),
    ]
    assert "You did not decide" in line(memory.recent[-1], quote)


def test_five_letters_of_one_turn_are_all_kept_in_order() -> None:
    letters = [Message(f"N{i}", f"letter {i}") for i in (3, 1, 4, 0, 2)]
    kept = lived(1, heard=letters).recent[0].heard
    assert kept == [Letter(m.speaker, m.text) for m in letters]


def test_letters_beyond_the_limit_are_counted() -> None:
    episode = lived(1, heard=[Message("Bob", "x" * 5000)] * 40).recent[0]
    assert (len(episode.heard), episode.unheard) == (12, 28)
    assert all(len(m.text) == 240 for m in episode.heard)
    assert "and 28 more" in line(episode, quote)


def test_the_window_is_cut_in_steps_so_that_it_mostly_grows() -> None:
    firsts = [lived(n).recent[0].tick for n in range(1, 40)]
    moves = sum(a != b for a, b in zip(firsts, firsts[1:], strict=False))
    assert all(len(lived(n).recent) <= 8 for n in (8, 9, 100))
    assert moves <= len(firsts) / 3 + 1


def test_a_window_of_one_is_exactly_the_last_turn() -> None:
    keeper = Keeper(MemoryLimits(window=1))
    assert [e.tick for e in lived(5, keeper).recent] == [5]
    assert lived(5, Keeper(MemoryLimits(window=0))).recent == []


def test_turns_that_leave_are_counted_and_what_stood_out_is_kept() -> None:
    quiet = lived(50)
    assert quiet.forgotten + len(quiet.recent) == 50
    assert quiet.past == []
    called = lived(50, heard=[Message("Bob", "Ann, the mill is free")])
    assert called.past and all("Ann, the mill is free" in m.text for m in called.past)


def test_importance_counts_what_stands_out() -> None:
    others = [Episode(1, did="walk {}")]
    assert importance(Episode(2, did="walk {}"), others, "Ann") == 1
    assert importance(Episode(2, did="give {}"), others, "Ann") == 3
    assert importance(Episode(2, did="walk {}", outcome="rejected: no"), others, "Ann") == 3
    named = Episode(2, heard=[Letter("Bob", "Hey ann!")], did="give {}", said="what", outcome="late: x")
    assert importance(named, others, "Ann") == 10
    assert importance(Episode(2, heard=[Letter("Bob", "Hey Annabel!")], did="walk {}"), others, "Ann") == 2


def test_old_notes_go_to_the_past_as_important() -> None:
    memory = Memory()
    for tick in range(10):
        memory = KEEPER.with_turn(memory, Episode(tick), Thought(f"{tick}" + "x" * 160), "Ann")
    assert sum(tokens(n.text) for n in memory.notes) <= 150
    assert memory.notes[-1].tick == 9 and memory.notes_gone + len(memory.notes) == 10
    assert [m.weight for m in memory.past] == [6] * memory.notes_gone


texts = st.text(alphabet='ab «»\\"\né你🙂<|>', max_size=400) | st.just("word " * 900)
letters = st.lists(st.builds(Message, st.text(max_size=50), texts), max_size=30)
changes = st.builds(
    Change, st.sampled_from(["add", "merge", "prune"]), texts, st.lists(st.integers(0, 15), max_size=3).map(tuple)
)
turns = st.tuples(letters, texts, texts, texts, st.none() | changes)
some_limits = st.builds(
    MemoryLimits,
    window=st.integers(0, 20),
    history_tokens=st.integers(0, 1500),
    letters=st.integers(0, 20),
    note_tokens=st.integers(0, 200),
    strategies=st.integers(0, 15),
    playbook_tokens=st.integers(0, 500),
    past=st.integers(0, 40),
    past_chars=st.integers(0, 300),
)


@settings(max_examples=60, deadline=None)
@given(some_limits, st.lists(turns, max_size=12), st.integers(1, 6))
def test_a_memory_is_bounded_for_ever(limits: MemoryLimits, days: list[Any], rounds: int) -> None:
    keeper, memory, tick = Keeper(limits), Memory(), 0
    for heard, did, said, note, change in days * rounds:
        tick += 1
        memory = keeper.settled(memory, tick, said)
        episode = keeper.episode(tick, did, heard, did=did, said=said, why=note)
        memory = keeper.with_turn(memory, episode, Thought(note, change), "Ann")
        assert len(memory.recent) <= limits.window
        assert (
            sum(tokens(line(e, quote)) + 1 for e in memory.recent) <= limits.history_tokens or len(memory.recent) == 1
        )
        assert sum(tokens(n.text) for n in memory.notes) <= limits.note_tokens
        assert len(memory.playbook) <= limits.strategies
        assert sum(tokens(s.text) for s in memory.playbook) <= limits.playbook_tokens
        assert len(memory.past) <= limits.past
        assert all(len(m.text) <= limits.past_chars for m in memory.past)
        data = write(memory)
        assert len(data) <= MAX_MEMORY_BYTES
        assert read(data) == memory
    assert memory.forgotten + len(memory.recent) >= min(tick, 1) * len(memory.recent)


def test_limits_that_are_too_wide_still_give_a_memory_that_the_world_takes() -> None:
    memory = Memory(
        past=[Memento(i, "x" * 1000) for i in range(300)],
        recent=[Episode(i, did="x" * 1000) for i in range(300)],
        playbook=[Strategy(1, "stay", 1)],
    )
    data = write(memory)
    assert len(data) <= MAX_MEMORY_BYTES
    assert read(data).playbook == memory.playbook and read(data).recent[-1].tick == 299


# playbook


BOOK = [Strategy(1, "eat first", 1), Strategy(2, "be kind", 2, weight=3), Strategy(3, "walk north", 3)]


def edited(*edits: Change, limit: int = 12, budget: int = 400) -> list[tuple[int, str, int]]:
    book = list(BOOK)
    for change in edits:
        book = changed(book, change, 9, limit, budget)
    return [(s.id, s.text, s.weight) for s in book]


def test_items_are_added_merged_and_pruned_one_by_one() -> None:
    kept = [(1, "eat first", 1), (2, "be kind", 3), (3, "walk north", 1)]
    assert edited(Change("add", "sleep")) == [*kept, (4, "sleep", 1)]
    assert edited(Change("merge", "eat, then walk", (1, 3))) == [kept[1], (4, "eat, then walk", 2)]
    assert edited(Change("prune", items=(2,))) == [kept[0], kept[2]]


def test_what_is_added_again_gains_weight() -> None:
    assert edited(Change("add", "  Eat   FIRST ")) == [(1, "eat first", 2), (2, "be kind", 3), (3, "walk north", 1)]


@pytest.mark.parametrize(
    "change",
    [
        Change("merge", "x", (1, 1)),
        Change("merge", "x", (1, 9)),
        Change("merge", "", (1, 2)),
        Change("prune"),
        Change("add"),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(change: Change) -> None:
    assert changed(BOOK, change, 9, 12, 400) == BOOK


def test_without_room_the_least_proved_goes() -> None:
    assert [text for _, text, _ in edited(Change("add", "sleep"), limit=3)] == ["be kind", "walk north", "sleep"]
    assert [text for _, text, _ in edited(Change("add", "sleep"), budget=4)] == ["be kind", "sleep"]
    assert pruned(BOOK, 0, 400) == []


def test_a_child_inherits_the_playbook_and_nothing_else() -> None:
    parent = msgspec.structs.replace(
        lived(30, heard=[Message("Bob", "Ann!")]), playbook=BOOK, notes=[Note(1, "secret")]
    )
    child = read(inherit(write(parent)))
    assert child == Memory(playbook=[Strategy(s.id, s.text, s.tick, s.weight, True) for s in BOOK])
    assert inherit(write(parent)) == inherit(write(parent))
    assert inherit(b"") == inherit(b"garbage") == inherit(write(lived(3))) == b""
    assert len(read(inherit(write(parent), MemoryLimits(strategies=1))).playbook) == 1


# recall


PAST = [
    Memento(1, "heard Bob said: the mill burned down", 5),
    Memento(2, "did give coins to Cem", 5),
    Memento(90, "did walk to the inn", 1),
]


def test_what_fits_the_words_of_now_comes_to_mind() -> None:
    assert recalled(PAST, ["Who burned the mill?"], 100, 1) == [PAST[0]]
    assert recalled(PAST, ["Cem"], 100, 1) == [PAST[1]]


def test_without_a_cue_importance_and_recency_decide() -> None:
    assert recalled(PAST, [], 100, 1) == [PAST[1]]
    assert recalled(PAST[:1] + PAST[2:], [], 300, 1) == [PAST[0]]
    assert recalled([Memento(1, "a"), Memento(9, "b")], [], 10, 1) == [Memento(9, "b")]
    assert recalled([], ["x"], 1, 3) == [] == recalled(PAST, ["x"], 1, 0)


def test_similarity_is_a_share_of_the_best_and_ignores_common_words() -> None:
    assert similarities([m.text for m in PAST], ["the and with heard"]) == [0.0, 0.0, 0.0]
    found = similarities(["mill", "mill and a very long tale of other things", "inn"], ["Mill!"])
    assert found[0] == 1.0 > found[1] > found[2] == 0.0


def test_what_is_least_important_is_forgotten_first_age_counted_in() -> None:
    assert spared(PAST, 3) == PAST
    assert spared(PAST, 2) == PAST[:2]
    old_and_new = [Memento(1, "a", 2), Memento(500, "b", 1)]
    assert spared(old_and_new, 1) == [old_and_new[1]]
    assert spared(PAST, 0) == []

"""The text store: ancestry without circles, and texts in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethnos.world.texts import TextStore, sentences


@st.composite
def stores(draw: st.DrawFn) -> TextStore:
    store = TextStore()
    for i in range(draw(st.integers(1, 20))):
        store.add(f"text {i}", i, i, draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else ())
    return store


@given(stores())
def test_ancestors_are_parents_and_their_ancestors(store: TextStore) -> None:
    for text in store.texts:
        above = {a for p in text.parents for a in (p, *store.ancestors(p))}
        assert store.ancestors(text.id) == sorted(above)
        assert all(a < text.id for a in above), "nothing is made of what came later"


@given(stores())
def test_everything_goes_back_to_what_has_no_parents(store: TextStore) -> None:
    for text in store.texts:
        origins = store.origins(text.id)
        assert origins and not any(store[i].parents for i in origins)
        assert (store.depth(text.id) == 0) is (not text.parents)
        assert all(store.depth(p) < store.depth(text.id) for p in text.parents)


def test_a_text_of_what_is_not_there_is_refused() -> None:
    store = TextStore()
    with pytest.raises(ValueError, match="no such texts"):
        store.add("from nowhere", 0, 0, [0])
    assert len(store) == 0


@given(st.text(alphabet="ab .!?\n", max_size=60))
def test_cutting_a_text_loses_nothing_but_blanks(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert sentences(" ".join(sentences(text))) == sentences(text)

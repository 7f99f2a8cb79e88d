"""The texts that agents leave: who wrote them, how they changed, who read them, and what was made after reading."""

import streamlit as st

from ethnos.analytics import life, texts
from ethnos.dashboard.choosing import the_run, the_tick
from ethnos.dashboard.reading import asked, told
from ethnos.dashboard.views.agent import _table as table
from ethnos.dashboard.words import plain
from ethnos.record.directory import RunDirectory

PER_PAGE = 50


def show() -> None:
    """The page."""
    st.title("Artifacts")
    run = the_run()
    if run is None:
        return
    with told("Reading the run"):
        tick = the_tick(run)
        left, right = st.columns([3, 1])
        words = left.text_input("Words in its name or text", key="text-words", max_chars=200)
        page = right.number_input("Page", 1, key="text-page")
        found = asked(run, texts.texts, tick, words, PER_PAGE, (page - 1) * PER_PAGE)
        table(found, "There is no such text up to this tick.", "texts", height=300)
        if found:
            names = {f["artifact_id"]: plain(f["name"], 40) for f in found}
            chosen = st.selectbox("Artifact", list(names), format_func=lambda i: f"{i}: {names[i]}", key="artifact")
            _one(run, chosen)


def _one(run: RunDirectory, artifact: int) -> None:
    versions = asked(run, texts.versions, artifact)
    reading, kin = st.columns(2)
    with reading:
        st.subheader("Text")
        for before, after in zip([None, *versions], versions, strict=False):
            st.caption(f"Version {after['version']}, tick {after['tick']}, event {after['seq']}, by")
            st.text(plain(after["author"], 60) or "somebody outside")
            st.code(
                plain(life.changed(before["text"], after["text"]) if before else after["text"]) or "(empty)",
                language="diff" if before else None,
                wrap_lines=True,
            )
    with kin:
        st.subheader("Readers")
        table(asked(run, texts.readers, artifact), "Nobody has read it.", "readers")
        st.subheader("Kin")
        st.caption("Artifacts made by somebody within 20 ticks of reading another: a way for ideas, no proof.")
        table(asked(run, texts.kin, artifact), "None.", "kin")

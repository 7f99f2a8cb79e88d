"""Who hears whom, over a stretch of ticks, and the events behind each tie."""

import altair as alt
import streamlit as st

from ethnos.analytics import hearing, unfolding
from ethnos.dashboard import figures
from ethnos.dashboard.choosing import the_run
from ethnos.dashboard.reading import asked, told
from ethnos.dashboard.views.agent import _table as table
from ethnos.dashboard.words import plain

SHOWN = 40
"""Agents in the matrix: those with the strongest ties."""


def show() -> None:
    """The page."""
    st.title("Network")
    run = the_run()
    if run is None:
        return
    with told("Reading the run"):
        last = asked(run, unfolding.last_tick)
        if last < 1:
            st.info("Nothing has happened yet.")
            return
        first, until = st.slider("Ticks", 0, last, (max(0, last - 100), last), key=f"span-{run.name}")
        edges = asked(run, hearing.edges, first, until)
        if not edges:
            st.caption("Nobody heard anybody in these ticks.")
            return
        left, right = st.columns(2)
        with left:
            names = list(dict.fromkeys(i for e in edges for i in (e["speaker_id"], e["listener_id"])))[:SHOWN]
            kept = [
                {
                    "speaker": f"{e['speaker_id']} {plain(e['speaker'], 20)}",
                    "listener": f"{e['listener_id']} {plain(e['listener'], 20)}",
                    "heard": e["heard"],
                }
                for e in edges
                if e["speaker_id"] in names and e["listener_id"] in names
            ]
            drawn = (
                alt.Chart(alt.InlineData(values=kept))
                .mark_rect()
                .encode(
                    x=alt.X("listener:N", title="who heard"),
                    y=alt.Y("speaker:N", title="who spoke"),
                    color=alt.Color("heard:Q", scale=alt.Scale(scheme="blues"), title="times"),
                    tooltip=["speaker:N", "listener:N", "heard:Q"],
                )
            )
            figures.chart(drawn.properties(title="Who hears whom", height=460), "matrix")
        with right:
            table(edges, "", "edges", height=460)
        ties = {(e["speaker_id"], e["listener_id"]): e for e in edges}

        def named(tie: tuple[int, int]) -> str:
            e = ties[tie]
            return f"{plain(e['speaker'], 30)} heard by {plain(e['listener'], 30)}, {e['heard']} times"

        speaker, listener = st.selectbox("Evidence for the tie", list(ties), format_func=named, key="tie")
        table(asked(run, hearing.evidence, speaker, listener, first, until), "", "evidence")
        st.caption("Communities over time and the measures of this network: `ethnos study RUN`.")

"""What several pages ask for: the run, a tick of it, one of its agents."""

import streamlit as st

from ethnos.analytics import life, unfolding
from ethnos.dashboard.reading import asked, find
from ethnos.dashboard.words import plain
from ethnos.record.directory import RunDirectory


def the_run() -> RunDirectory | None:
    """The run that was chosen beside; says so if there is none."""
    run = find(st.session_state.get("run") or "")
    if run is None:
        st.info("There is no run to look at. Start one on the page Runs.")
    return run


def the_tick(run: RunDirectory) -> int:
    """As of which tick: its last one unless the slider says otherwise; -1 before the first."""
    last = asked(run, unfolding.last_tick)
    if last < 1:
        return last
    key = f"as-of-{run.name}"
    if st.session_state.get(key, last) > last:
        st.session_state[key] = last
    return int(st.slider("As of tick", 0, last, last, key=key))


def an_agent(run: RunDirectory, key: str = "agent", *, living: bool = False) -> int | None:
    """One of its agents, found by name or id, or named in the address (`?agent=7`)."""
    left, right = st.columns([1, 2])
    words = left.text_input("Find", placeholder="name or id", key=f"{key}-words", max_chars=100)
    found = {a["agent_id"]: a for a in asked(run, life.everybody, words.strip(), living)}
    asked_for = st.query_params.get("agent", "")
    if asked_for.isdecimal() and int(asked_for) in found and key not in st.session_state:
        st.session_state[key] = int(asked_for)
    if not found:
        st.info("Nobody has such a name.")
        return None
    if st.session_state.get(key) not in found:
        st.session_state[key] = next(iter(found))

    def named(agent: int) -> str:
        a = found[agent]
        over = "" if a["died"] is None else f", died in tick {a['died']}"
        return f"{agent}: {plain(a['name'], 40)} ({plain(a['cohort'], 40)}{over})"

    chosen: int | None = right.selectbox("Agent", list(found), format_func=named, key=key)
    return chosen


__all__ = ["an_agent", "the_run", "the_tick"]

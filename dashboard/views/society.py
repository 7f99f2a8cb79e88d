"""The society as it is and as it was: its world, what happens in it, and how it goes."""

from typing import Any

import streamlit as st

from ethnos.analytics import grid, picture, unfolding
from ethnos.analytics.asking import rows
from ethnos.analytics.unfolding import Filter
from ethnos.dashboard import figures
from ethnos.dashboard.reading import asked, find, told
from ethnos.dashboard.words import plain
from ethnos.record.directory import RunDirectory
from ethnos.views import pictured, views_of

LIVE_S = 1.0
"""Seconds between two looks at a run that is going: a tick is on screen within two."""
SPEEDS = {"1 tick/s": 1, "5 ticks/s": 5, "20 ticks/s": 20, "100 ticks/s": 100}
TEXT = 300


def show() -> None:
    """The page."""
    st.title("Society")
    run = find(st.session_state.get("run") or "")
    if run is None:
        st.info("There is no run to look at. Start one on the page Runs.")
        return
    if st.session_state.get("shown-run") != run.name:
        st.session_state.update({"shown-run": run.name, "follow": True, "play": False})
    with told("Reading the run"):
        going = run.state() == "running"
        left, middle, right = st.columns([1, 1, 2], vertical_alignment="center")
        left.toggle("Follow", key="follow", help="Show the last tick, and each new one as it is committed.")
        middle.toggle("Play", key="play", on_change=_played, help="Go forwards from the tick that is shown.")
        speed = right.segmented_control("Speed", list(SPEEDS), default="5 ticks/s", key="speed")
        moving = st.session_state["play"] or (st.session_state["follow"] and going)
        st.fragment(_moment, run_every=LIVE_S if moving else None)(run, SPEEDS[speed or "5 ticks/s"])


def _played() -> None:
    if st.session_state["play"]:
        st.session_state["follow"] = False


def _moved() -> None:
    st.session_state.update(follow=False)


def _moment(run: RunDirectory, speed: int) -> None:
    """One tick of the society."""
    with told("Reading the run"):
        last = asked(run, unfolding.last_tick)
        if last < 0:
            st.info("Its world is being made.")
            return
        tick = _tick(last, speed)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _world(run, tick)
            _now(run, tick)
        with right:
            _curves(run, tick, last)
        _feed(run, tick)


def _tick(last: int, speed: int) -> int:
    """The tick to show: the last one, the next one, or where the slider is."""
    now = min(int(st.session_state.get("tick", last)), last)
    if st.session_state["follow"]:
        now = last
    elif st.session_state["play"]:
        now = min(last, now + speed)
    st.session_state["tick"] = now
    if last == 0:
        return 0
    return int(st.slider("Tick", 0, last, key="tick", on_change=_moved))


def _world(run: RunDirectory, tick: int) -> None:
    """As its scenario draws it: a map if it has places, else its own views, else what every society has."""
    drawn = 0
    for i, view in enumerate([] if grid.is_grid(run.manifest()) else views_of(run.manifest())):
        found = asked(run, pictured, view, tick)
        if found:
            shown = [{k: plain(v, 60) if isinstance(v, str) else v for k, v in r.items()} for r in found]
            figures.chart(figures.pictured(view, shown), f"view-{i}")
            drawn += 1
    if not drawn:
        st.image(asked(run, _picture, run, tick), width="stretch")


def _picture(con: Any, run: RunDirectory, tick: int) -> str:
    return picture.draw_from(con, run.manifest(), tick, charts_too=False)


def _at(con: Any, tick: int) -> dict[str, Any]:
    return next(iter(rows(con, "SELECT * FROM ticks WHERE tick = $tick", {"tick": tick})), {})


def _now(run: RunDirectory, tick: int) -> None:
    """The figures of the tick."""
    at = asked(run, _at, tick)
    if not at:
        return
    troubles = at["rejected"], at["late"] + at["failed"]
    values = ("Tick", tick), ("Alive", at["population"]), ("Rejected", troubles[0]), ("Late or failed", troubles[1])
    for column, (name, value) in zip(st.columns(4), values, strict=True):
        column.metric(name, f"{value:,}".replace(",", " "))


def _curves(run: RunDirectory, tick: int, last: int) -> None:
    """How it went, over all ticks so far."""
    curves = asked(run, unfolding.curves)
    charts = [
        figures.lines(curves, ["population"], "Population", tick=tick),
        figures.lines(curves, ["births", "deaths"], "Births and deaths", tick=tick),
        figures.lines(curves, ["messages", "rejected"], "Messages and refused actions", tick=tick),
    ]
    stocks = asked(run, unfolding.stocks)
    for stock in sorted({s["stock"] for s in stocks})[:2]:
        found = [{"tick": s["tick"], stock: s["value"]} for s in stocks if s["stock"] == stock]
        charts.insert(1, figures.lines(found, [stock], f"{stock.capitalize()} in the world", tick=tick))
    if grid.is_grid(run.manifest()):
        # costs more than the rest: every fiftieth part of the run is often enough
        gini = _inequality(str(run.path), last // max(1, last // 50), run)
        charts.append(figures.lines(gini, ["gini"], "Inequality of energy (Gini, 0: all alike)", tick=tick))
    figures.stacked(charts, "curves")


@st.cache_data(max_entries=20, show_spinner=False)
def _inequality(path: str, upto: int, _run: RunDirectory) -> list[dict[str, Any]]:
    return asked(_run, unfolding.inequality)


def _feed(run: RunDirectory, tick: int) -> None:
    """What happened, up to the tick that is shown."""
    st.subheader("What happened")
    first, second, third = st.columns([2, 1, 1])
    known = sorted(run.manifest().kinds)
    kinds = first.multiselect("Kinds of event", known, key=f"kinds-{run.name}", placeholder="All kinds")
    agent = second.number_input("Agent", min_value=0, value=None, key="feed-agent", placeholder="Anybody's id")
    words = third.text_input("Words in it", key="feed-words", max_chars=200)
    wanted = Filter(last=tick, kinds=tuple(kinds), agent=agent, words=words)
    found = asked(run, unfolding.feed, wanted)
    if not found:
        st.caption("Nothing of that sort, up to this tick.")
        return
    st.dataframe(
        [
            {
                "tick": e["tick"],
                "seq": e["seq"],
                "kind": plain(e["kind"]),
                "agent": plain(e["agent"], 60),
                "other": plain(e["other"], 60),
                "amount": e["amount"],
                "words": plain(e["text"], TEXT),
                "more": plain(e["data"], TEXT),
            }
            for e in found
        ],
        hide_index=True,
        key="feed",
        height=320,
        column_config={"words": st.column_config.TextColumn(width="large")},
    )

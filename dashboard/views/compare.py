"""Runs, branches and sweeps side by side, from a common tick; and another future from here."""

import altair as alt
import streamlit as st
import yaml

from ethnos import background, fork
from ethnos.analytics import beside, unfolding
from ethnos.analytics.asking import Row
from ethnos.dashboard import figures, reading, rights
from ethnos.dashboard.choosing import the_run
from ethnos.dashboard.reading import asked, find, told
from ethnos.dashboard.words import escaped, plain
from ethnos.record.directory import RunDirectory
from ethnos.world.interventions import parse_change

COLUMNS = {"Population": "population", "Births": "births", "Deaths": "deaths", "Messages": "messages"}
MOST = 12


def show() -> None:
    """The page."""
    st.title("Compare")
    run = the_run()
    if run is None:
        return
    with told("Reading the runs"):
        family = [n for n in reading.names() if n == run.name or _parent(n) == run.name]
        chosen = st.multiselect(
            "Runs", reading.names(), family[:MOST], key=f"compared-{run.name}", max_selections=MOST, format_func=plain
        )
        left, right = st.columns([1, 2])
        what = left.selectbox("What", list(COLUMNS), key="compared-what")
        start = right.number_input("From tick", 0, key="compared-from", help="Where a branch parted, for example.")
        going = any((r := find(n)) is not None and r.state() == "running" for n in chosen)
        st.fragment(_beside, run_every=1.5 if going else None)(chosen, COLUMNS[what], what, int(start))
        _fork(run)


def _parent(name: str) -> str:
    run = find(name)
    parent = run.manifest().parent if run is not None else None
    return parent.name if parent else ""


def _beside(chosen: list[str], column: str, title: str, start: int) -> None:
    """One line for each run, and the mean of three or more."""
    with told("Reading the runs"):
        curves = {n: _curve(n, start) for n in chosen}
        values = [
            {"tick": r["tick"], "run": plain(n, 40), "value": r[column]} for n, rows in curves.items() for r in rows
        ]
        if not values:
            st.caption("Choose runs that have ticks.")
            return
        x = alt.X("tick:Q", title="tick", scale=alt.Scale(nice=False))
        drawn: alt.Chart | alt.LayerChart = (
            alt.Chart(alt.InlineData(values=values))
            .mark_line()
            .encode(
                x=x,
                y=alt.Y("value:Q", title=title.lower()),
                color=alt.Color("run:N", legend=alt.Legend(orient="bottom", title=None)),
                strokeDash=alt.StrokeDash("run:N", legend=alt.Legend(orient="bottom", title=None)),
                tooltip=["run:N", "tick:Q", "value:Q"],
            )
        )
        figures.chart(drawn.properties(height=320, title=title), "beside")
        means = beside.mean(curves, column) if len(chosen) > 2 else []
        if means:
            base = alt.Chart(alt.InlineData(values=means)).encode(x=x)
            band = base.mark_area(opacity=0.25).encode(y="low:Q", y2="high:Q")
            line = base.mark_line().encode(y=alt.Y("mean:Q", title=title.lower()))
            mean = (band + line).properties(height=220, title=f"{title}: mean of {len(chosen)} runs, 95 % interval")
            figures.chart(mean, "mean")
        ends = [{"run": plain(n), "tick": r[-1]["tick"], title.lower(): r[-1][column]} for n, r in curves.items() if r]
        st.dataframe(ends, hide_index=True, key="ends")


def _curve(name: str, start: int) -> list[Row]:
    run = find(name)
    return [r for r in asked(run, unfolding.curves) if r["tick"] >= start] if run is not None else []


def _fork(run: RunDirectory) -> None:
    """Another future for the run that is chosen beside."""
    st.subheader(f"Branch off {escaped(run.name)}")
    last = asked(run, unfolding.last_tick)
    if last < 0:
        return
    with st.form("fork"):
        left, right = st.columns(2)
        at = left.number_input("At tick", 0, last, last // 2, key="fork-at", help="The last tick that both share.")
        name = right.text_input("Name", placeholder=f"{run.name}-at-{last // 2}-1", key="fork-name")
        changes = st.text_area(
            "Changes, one a line", placeholder="world.food.spawn_rate=3\nseed=8", key="fork-changes", max_chars=5_000
        )
        told_what = st.text_area(
            "Interventions, as a YAML list", placeholder="- {do: tell, text: hello}", key="fork-do", max_chars=5_000
        )
        sent = st.form_submit_button("Branch off and run", type="primary", disabled=not rights.may_act())
    if sent and rights.may_act():
        with told("Branching off"):
            branch = _branch(run, int(at), name.strip() or None, changes, told_what)
            background.resume(branch)
            st.success(f"{escaped(branch.name)} is on its way; choose it above.")


def _branch(run: RunDirectory, at: int, name: str | None, changes: str, interventions: str) -> RunDirectory:
    from ethnos.errors import SocietyError

    try:
        data = yaml.safe_load(interventions) or []
    except (yaml.YAMLError, RecursionError, ValueError):
        raise SocietyError("the interventions are no YAML") from None
    asked_for = [parse_change(d) for d in (data if isinstance(data, list) else [data]) if isinstance(d, dict)]
    lines = [c.strip() for c in changes.splitlines() if c.strip()]
    return fork.fork(run, at, changes=lines, interventions=asked_for, name=name)

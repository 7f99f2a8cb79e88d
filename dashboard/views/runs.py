"""Every run, what it is doing, and what may be done about it; and a form to start another."""

from typing import Any

import streamlit as st

from ethnos import background
from ethnos import society as societies
from ethnos.analytics.overview import Glance, glance, thinks
from ethnos.analytics.thinking import thinking
from ethnos.control import Control
from ethnos.dashboard import reading, rights
from ethnos.dashboard.reading import asked, told
from ethnos.dashboard.words import escaped, plain
from ethnos.errors import EthnosError
from ethnos.parameters import Parameter, change, parameters
from ethnos.record.directory import RunDirectory, next_name

PER_PAGE = 20
STATES = {"running": "▶ running", "finished": "■ finished", "stopped": "❙❙ stopped", "crashed": "✕ crashed"}


def show() -> None:
    """The page."""
    st.title("Runs")
    names = reading.names()
    if names:
        st.fragment(_table, run_every=2.0)()
        _chosen()
    else:
        st.info("There are no runs here yet. Start one below, or with `ethnos run terra`.")
    _start()


def _table() -> None:
    """All runs, a page at a time, those written last first."""
    names = reading.names()
    pages = -(-len(names) // PER_PAGE)
    page = st.number_input("Page", 1, pages, key="runs-page") if pages > 1 else 1
    rows = [_row(name) for name in names[(int(page) - 1) * PER_PAGE : int(page) * PER_PAGE]]
    said = {name for row in rows for name, value in row.items() if value not in (None, "")}
    st.dataframe(
        [{name: value for name, value in row.items() if name in said} for row in rows],
        hide_index=True,
        key="runs-table",
        column_config={
            "population": st.column_config.AreaChartColumn("population over time", width="medium", y_min=0),
            "done": st.column_config.ProgressColumn("done", min_value=0.0, max_value=1.0, format="percent"),
            "steps/s": st.column_config.NumberColumn("agent-steps/s", format="%.1f"),
            "cost": st.column_config.NumberColumn(format="%.4f"),
        },
    )


@st.cache_data(max_entries=500, show_spinner=False)
def _glance(path: str, stamp: reading.Stamp, state: str, _run: RunDirectory) -> Glance:
    return glance(_run)


def _row(name: str) -> dict[str, Any]:
    run = reading.find(name)
    try:
        assert run is not None
        g = _glance(str(run.path), reading.stamp(run), run.state(), run)
        spent = asked(run, thinking) if thinks(run) else None
    except EthnosError as error:
        return {"run": plain(name), "state": "✕ damaged", "why it ended": plain(error, 200)}
    return {
        "run": plain(g.name),
        "state": STATES[g.state],
        "tick": max(g.tick, 0),
        "done": max(g.tick, 0) / max(1, g.ticks),
        "alive": g.population,
        "population": g.curve,
        "steps/s": g.steps_per_s,
        "tokens": spent.prompt_tokens + spent.completion_tokens if spent else None,
        "cost": spent.cost if spent else None,
        "rejected": g.rejected,
        "late": g.late,
        "failed": g.failed,
        "scenario": plain(g.scenario, 40),
        "branched off": plain(g.parent, 60),
        "made": g.created,
        "why it ended": plain(g.reason, 200),
    }


def _chosen() -> None:
    """What may be done about the run that is chosen beside."""
    run = reading.find(st.session_state["run"])
    if run is None:
        return
    with told("Reading the run"):
        state = run.state()
        st.subheader(f"Run {escaped(run.name)}")
        columns = st.columns([1, 1, 4])
        with columns[0]:
            if rights.act("Stop", "stop", icon=":material/stop:", disabled=state != "running"):
                with told("Stopping it"), Control(run) as control:
                    control.call("Stop", reason="stopped from the dashboard")
                    st.toast("It stops after the tick under way.")
        with columns[1]:
            over = state in ("running", "finished")
            if rights.act("Resume", "resume", icon=":material/play_arrow:", disabled=over):
                with told("Resuming it"):
                    background.resume(run)
                    st.toast("It is starting.")
        with columns[2]:
            _log(run.name)


def _log(name: str) -> None:
    """What the process of a run that was started from here had to say, such as why it failed."""
    log = background.log_of(name)
    text = log.read_text("utf-8", "replace")[-4_000:] if log.is_file() else ""
    if text.strip():
        with st.expander("What its process said"):
            st.code(plain(text), language=None, wrap_lines=True)


def _start() -> None:
    """A form made from the parameters of a scenario."""
    st.subheader("Start a society")
    shipped = societies.shipped_societies()
    source = st.selectbox("Society", list(shipped), index=list(shipped).index("terra"), key="start-society")
    with told("Reading the society file"):
        society = societies.load(shipped[source])
        with st.form(f"start-{source}"):
            first = st.columns(3)
            name = first[0].text_input("Name", placeholder=next_name(source), key=f"name-{source}")
            ticks = first[1].number_input("Ticks", 1, 10**9, society.ticks, key=f"ticks-{source}")
            seed = first[2].number_input("Seed", 0, 2**53 - 1, society.seed, key=f"seed-{source}")
            founders = [
                st.number_input(f"Founders: {escaped(c.cohort)}", 0, 100_000, c.count, key=f"count-{source}-{i}")
                for i, c in enumerate(society.population)
            ]
            with st.expander("Parameters of the world"):
                changes = [change(p, _field(p, source)) for p in parameters(society)]
            sent = st.form_submit_button(
                "Start", type="primary", icon=":material/play_arrow:", disabled=not rights.may_act()
            )
    if sent and rights.may_act():
        asked_for = [f"ticks={ticks}", f"seed={seed}", *(f"population.{i}.count={n}" for i, n in enumerate(founders))]
        with told("Starting it"):
            chosen = name.strip() or next_name(source)
            background.start(societies.load(shipped[source], [*filter(None, changes), *asked_for]), chosen)
            st.success(f"{escaped(chosen)} is starting; it is in the list as soon as its world is made.")


def _field(p: Parameter, source: str) -> Any:
    """The widget for one parameter."""
    label, key = escaped(p.path.removeprefix("world.").replace(".", ": ").replace("_", " ")), f"{source}-{p.path}"
    hint = escaped(p.meaning, 400) or None
    if p.kind == "yes":
        return st.checkbox(label, p.value, key=key, help=hint)
    if p.kind == "choice":
        return st.selectbox(label, p.choices, p.choices.index(p.value), key=key, help=hint)
    if p.kind == "whole":
        low, high = (int(max(1 - 2**53, min(2**53 - 1, v))) if v is not None else None for v in (p.low, p.high))
        return st.number_input(label, low, high, int(p.value), step=1, key=key, help=hint)
    if p.kind == "real":
        return st.number_input(label, p.low, p.high, float(p.value), step=0.05, format="%g", key=key, help=hint)
    return st.text_input(label, p.value, key=key, help=hint)


__all__ = ["show"]

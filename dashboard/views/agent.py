"""One agent: who it is, where it went, what it thought and said, each decision; and a question to a copy of it."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import streamlit as st

from ethnos.analytics import grid, life
from ethnos.dashboard import figures, rights
from ethnos.dashboard.choosing import an_agent, the_run, the_tick
from ethnos.dashboard.reading import asked, told
from ethnos.dashboard.words import escaped, plain
from ethnos.interview import MAX_QUESTION, interview, interviews
from ethnos.record.directory import RunDirectory


def show() -> None:
    """The page."""
    st.title("Agent")
    run = the_run()
    if run is None:
        return
    with told("Reading the run"):
        agent = an_agent(run)
        if agent is None:
            return
        tick = the_tick(run)
        _who(run, agent)
        names = ["Decisions", "Memory", "Conversation", "Life", "Family", "Interview"]
        tabs = st.tabs(names)
        for tab, part in zip(tabs, (_decisions, _memory, _talk, _life, _family, _interview), strict=True):
            with tab:
                part(run, agent, tick)


def _who(run: RunDirectory, agent: int) -> None:
    who = asked(run, life.who, agent)
    if who is None:
        return
    over = "alive" if who["died"] is None else f"died in tick {who['died']} of {escaped(who['cause'], 60)}"
    st.subheader(f"{escaped(who['name'])}, {over}")
    facts = {
        "Cohort": plain(who["cohort"], 40),
        "Born in tick": who["born"],
        "Generation": who["generation"],
        "Parent": plain(who["parent"], 40) or "none",
        "Decisions": who["decisions"],
        "Refused": who["rejected"],
    }
    for column, (name, value) in zip(st.columns(len(facts)), facts.items(), strict=True):
        column.caption(name)
        column.text(str(value))
    with st.expander("Persona"):
        st.code(plain(who["persona"]), language="json", wrap_lines=True)


def _table(rows: Sequence[dict[str, Any]], empty: str, key: str, **options: Any) -> None:
    """Rows with every text made plain."""
    if not rows:
        st.caption(empty)
        return
    shown = [{k: plain(v, 400) if isinstance(v, str) else v for k, v in r.items()} for r in rows]
    st.dataframe(shown, hide_index=True, key=key, **options)


def _decisions(run: RunDirectory, agent: int, tick: int) -> None:
    refused = st.toggle("Only those that came to nothing", key="refused")
    found = asked(run, _turns, agent, tick, refused)
    _table(found, "It took no such turn up to this tick.", "turns", height=300)
    if found:
        chosen = st.selectbox("Look into the turn of tick", [f["tick"] for f in found], key=f"turn-{agent}")
        _turn(run, agent, chosen)


def _turns(con: Any, agent: int, tick: int, refused: bool) -> list[dict[str, Any]]:
    return life.decisions(con, agent, tick, refused=refused)


def _turn(run: RunDirectory, agent: int, tick: int) -> None:
    """What went to its mind in one turn, and what came back."""
    turn = asked(run, life.turn, agent, tick)
    st.caption("Decided, and what became of it")
    st.code(
        plain(f"{turn['action']} {turn['args']}\n{turn['outcome']}: {turn['reason']}"), language=None, wrap_lines=True
    )
    how = turn["how"]
    if not turn["layers"]:
        st.caption(
            f"Its mind is code ({escaped(turn['mind'])}): no prompt, no reply. It was shown what has this digest:"
        )
        st.code(plain(turn["observation"]), language=None)
        return
    st.caption("Sent to the model, layer by layer")
    for layer in turn["layers"]:
        with st.expander(escaped(layer["name"], 40), expanded=layer["name"] == "observation"):
            st.code(plain(layer["text"]), language=None, wrap_lines=True)
    for name in ("first_reply", "reply"):
        if how.get(name):
            st.caption(name.replace("_", " ").capitalize())
            st.code(plain(how[name]), language=None, wrap_lines=True)
    told_of = ("stage", "model", "engine", "tokens", "cached", "completion", "latency_ms", "attempts", "seed", "cost")
    _table([{n: how.get(n) for n in told_of}], "", "provenance")


def _memory(run: RunDirectory, agent: int, tick: int) -> None:
    found = asked(run, life.memories, agent, tick)
    if not found:
        st.caption("Its mind keeps no memory on the record.")
        return
    st.caption("As of the last turn that changed it")
    st.code(plain(found[0]["memory"]) or "(empty)", language=None, wrap_lines=True)
    st.caption("How it changed: + came, - went")
    for after, before in zip(found, [*found[1:], None], strict=True):
        with st.expander(f"Tick {after['tick']}"):
            was = before["memory"] if before else ""
            st.code(plain(life.changed(was, after["memory"])), language="diff", wrap_lines=True)


def _talk(run: RunDirectory, agent: int, tick: int) -> None:
    found = asked(run, life.talk, agent, tick)
    words = st.column_config.TextColumn("words", width="large")
    _table(found, "It has said and heard nothing up to this tick.", "talk", column_config={"text": words}, height=420)


def _life(run: RunDirectory, agent: int, tick: int) -> None:
    """Its path, its energy, what it carries."""
    if not grid.is_grid(run.manifest()):
        st.caption("This world has no places and no energy of one's own.")
        return
    path = asked(run, life.path, agent, tick)
    left, right = st.columns(2)
    with left:
        steps = [{"x": p["x"], "y": p["y"], "tick": p["tick"]} for p in reversed(path)]
        base = alt.Chart(alt.InlineData(values=steps)).encode(
            x=alt.X("x:Q", title="x, cells"),
            y=alt.Y("y:Q", title="y, cells", scale=alt.Scale(reverse=True)),
            order="tick:Q",
        )
        drawn = base.mark_line(opacity=0.35) + base.mark_circle(size=22).encode(
            color=alt.Color("tick:Q", scale=alt.Scale(scheme="viridis")), tooltip=["tick:Q", "x:Q", "y:Q"]
        )
        figures.chart(drawn.properties(title="Its path", height=320), "path")
    with right:
        figures.chart(
            figures.lines(asked(run, life.energy, agent, tick), ["energy"], "Its energy", height=220), "energy"
        )
        st.caption("It carries")
        _table(asked(run, life.holds, agent, tick), "nothing.", "holds")


def _family(run: RunDirectory, agent: int, tick: int) -> None:
    st.caption("Itself and its ancestors")
    _table(asked(run, life.ancestors, agent), "none", "ancestors")
    st.caption("Its descendants")
    _table(asked(run, life.descendants, agent), "It has had no children.", "descendants")


def _interview(run: RunDirectory, agent: int, tick: int) -> None:
    """A question to a copy of it."""
    st.caption(
        f"A copy of it answers, as it was in tick {tick}: the prompt of its last turn, and your question. It costs the "
        "tokens of one turn, is kept beside the record, and alters nothing in the run."
    )
    with st.form("interview", clear_on_submit=True):
        question = st.text_area("Question", max_chars=MAX_QUESTION, key="question")
        sent = st.form_submit_button("Ask", type="primary", disabled=not rights.may_act())
    if sent and rights.may_act():
        with told("Asking it"), st.spinner("It thinks."):
            interview(run, agent, tick, question)
    for one in interviews(run, agent):
        with st.container(border=True):
            st.caption(f"As of tick {one.tick}, from its turn in tick {one.turn}; {one.tokens} tokens")
            st.text(plain(one.question))
            st.code(plain(one.answer), language=None, wrap_lines=True)

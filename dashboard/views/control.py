"""Steering a society that is running: when ticks happen, and what is changed from outside."""

import json
from typing import Any

import grpc
import streamlit as st
import yaml
from pydantic import BaseModel

from ethnos.actors.minds.human import HELP
from ethnos.control import Control
from ethnos.dashboard import rights
from ethnos.dashboard.choosing import an_agent, the_run
from ethnos.dashboard.reading import told
from ethnos.dashboard.words import escaped, number, plain
from ethnos.errors import EthnosError, SocietyError
from ethnos.parameters import parameters
from ethnos.record.directory import RunDirectory
from ethnos.seat import Seat
from ethnos.wire.v1.control_pb2 import Status
from ethnos.world import interventions
from ethnos.world.rebuild import society_of

KINDS: dict[str, type[BaseModel]] = {
    cls.model_fields["do"].default: cls
    for cls in vars(interventions).values()
    if isinstance(cls, type) and issubclass(cls, interventions.Intervention) and cls is not interventions.Intervention
}


def show() -> None:
    """The page."""
    st.title("Control")
    run = the_run()
    if run is None:
        return
    if run.state() != "running":
        st.info(
            f"It is {run.state()}, so there is nothing to steer. The page Runs resumes it, Compare branches off it."
        )
        return
    if not rights.may_act():
        st.info("Steering needs the control token: see beside.")
    st.fragment(_status, run_every=1.0)(run)
    first, second, third, fourth = st.columns([1, 1, 2, 1], vertical_alignment="bottom")
    with first:
        if rights.act("Pause", "pause", icon=":material/pause:"):
            _call(run, "Pause")
    with second:
        if rights.act("Continue", "continue", icon=":material/play_arrow:"):
            _call(run, "Resume")
    ticks = third.number_input("Ticks in a step", 1, 10_000, 1, key="step-ticks")
    with fourth:
        if rights.act("Step", "step", icon=":material/skip_next:", help="While paused: so many ticks, then pause."):
            _call(run, "Step", ticks=int(ticks))
    _intervene(run)
    _take_over(run)


def _take_over(run: RunDirectory) -> None:
    """A seat in the place of one agent, kept for this browser session."""
    st.subheader("Take over an agent")
    seat: Seat | None = st.session_state.get(f"seat-{run.name}")
    if seat is None:
        st.caption(
            "You decide in its place until you leave or its turn runs out of time; its own mind then goes on. "
            f"From a terminal: `ethnos play {run.name} AGENT`."
        )
        who = an_agent(run, "player", living=True)
        if rights.act("Take over", "take-over", disabled=who is None):
            with told("Taking it over"):
                st.session_state[f"seat-{run.name}"] = Seat(run, str(who))
                st.rerun()
        return
    st.fragment(_screen, run_every=1.0)(seat)
    with st.form("typed", clear_on_submit=True):
        line = st.text_input("What it does", key="typed-line", max_chars=5_000, help=HELP)
        first, second, _ = st.columns([1, 1, 4])
        if first.form_submit_button("Do it", type="primary", disabled=not rights.may_act()) and line.strip():
            seat.type(line)
            st.rerun()
        if second.form_submit_button("Leave"):
            seat.leave()
            del st.session_state[f"seat-{run.name}"]
            st.rerun()


def _screen(seat: Seat) -> None:
    """What its player was shown last."""
    st.caption(f"You play agent {escaped(seat.who, 60)}.")
    st.code(plain("\n".join(seat.look()[-40:]) or "Sitting down.", 8_000), language=None, wrap_lines=True)


def _status(run: RunDirectory) -> None:
    """How it is doing, by its own word."""
    try:
        with Control(run) as control:
            status = next(iter(_watched(control)))
    except (EthnosError, grpc.RpcError) as error:
        st.caption(escaped(error, 300))
        return
    phase = Status.Phase.Name(status.phase).removeprefix("PHASE_").lower()
    facts = {"Phase": phase, "Tick": f"{status.tick} of {status.ticks}", "Alive": number(status.population)}
    for column, (name, value) in zip(st.columns(3), facts.items(), strict=True):
        column.metric(name, value)


def _watched(control: Control) -> list[Any]:
    return [next(iter(control.call("Watch")))]


def _call(run: RunDirectory, name: str, **request: Any) -> None:
    with told(f"{name}"), Control(run) as control:
        status = control.call(name, **request)
        st.toast(f"{name}: tick {status.tick}")


def _intervene(run: RunDirectory) -> None:
    """A form for one kind of change, what it will do, and the button that does it."""
    st.subheader("Intervene")
    kind = st.selectbox("What to do", list(KINDS), key="do", format_func=lambda k: k.replace("_", " ").capitalize())
    model = KINDS[kind]
    st.caption(escaped(" ".join((model.__doc__ or "").split()), 300))
    given: dict[str, Any] = {"do": kind}
    for name, field in model.model_fields.items():
        if name == "do":
            continue
        hint = escaped(" ".join((field.description or "").split()), 300)
        text = st.text_input(
            f"{name}{'' if field.is_required() else ' (may be left out)'}", key=f"{kind}-{name}", help=hint
        )
        if text.strip():
            given[name] = text if field.annotation is str else _yaml(text)
    try:
        change = interventions.parse_change(given)
    except SocietyError as error:
        st.caption("Not complete yet:")
        st.code(plain(error, 600), language=None, wrap_lines=True)
        change = None
    if change is not None:
        st.caption("What it will do")
        with told("Looking ahead"):
            st.code(plain(preview(run, change)), language=None, wrap_lines=True)
    if rights.act("Intervene", "intervene", disabled=change is None, type="primary") and change is not None:
        with told("Intervening"), Control(run) as control:
            request = {**change.change(), **({"tick": change.tick} if change.tick else {})}
            tick = control.call("Intervene", change=json.dumps(request).encode()).tick
            st.success(f"It happens in tick {tick}.")


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text


def preview(run: RunDirectory, change: Any) -> str:
    """In words: when, what, and for a parameter from which value."""
    when = f"In tick {change.tick}" if change.tick else "In the next tick"
    done = {k: v for k, v in change.change().items() if k != "do"}
    if change.do == "set_parameter":
        known = {p.path: p.value for p in parameters(society_of(run))}
        was = known.get(f"world.{change.name}", "not a parameter of this world: it will be refused")
        return f"{when}, and from then on: {change.name} becomes {change.value!r}. In its society file: {was}."
    told_what = ", ".join(f"{k} = {v!r}" for k, v in done.items())
    what = change.do.replace("_", " ")
    return f"{when}, before decisions are resolved: {what}, {told_what}. It is an event on the record."

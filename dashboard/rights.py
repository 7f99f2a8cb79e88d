"""Who may look and who may act.

On this machine alone (the address 127.0.0.1) nobody is asked, unless tokens are set. Beyond it, looking takes a
token, and acting (starting, steering, intervening, interviewing: whatever changes something or costs money) takes a
second one, which also lets one look.
"""

import hmac
import os

import streamlit as st

LOOK, ACT = "ETHNOS_DASHBOARD_TOKEN", "ETHNOS_DASHBOARD_CONTROL_TOKEN"
"""Environment variables that hold the tokens; `ethnos dashboard` sets them."""


def _fits(given: str, variable: str) -> bool:
    token = os.environ.get(variable, "")
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


def asked_for() -> bool:
    """Whether anybody is asked for a token."""
    return bool(os.environ.get(LOOK) or os.environ.get(ACT))


def may_look() -> bool:
    """Whether this session may see runs."""
    return not asked_for() or st.session_state.get("may") in ("look", "act")


def may_act() -> bool:
    """Whether this session may change something."""
    return not asked_for() or st.session_state.get("may") == "act"


def take(given: str) -> bool:
    """Note what a token allows; returns whether it allows anything."""
    may = "act" if _fits(given, ACT) else "look" if _fits(given, LOOK) else None
    if may is not None:
        st.session_state["may"] = may
    return may is not None


def ask() -> None:
    """The form that asks for a token."""
    st.title("Ethnos")
    with st.form("token"):
        given = st.text_input("Token", type="password", help="`ethnos dashboard` printed it when it started.")
        if st.form_submit_button("Enter", type="primary"):
            if take(given):
                st.rerun()
            st.error("This token opens nothing here.")


def say() -> None:
    """In the sidebar: what this session may not do, and how to."""
    if may_act():
        return
    with st.sidebar.expander("You may look, not act"), st.form("stronger", border=False):
        given = st.text_input("Control token", type="password")
        if st.form_submit_button("Enter"):
            if _fits(given, ACT) and take(given):
                st.rerun()
            st.error("This token does not allow acting.")


def act(label: str, key: str, **options: object) -> bool:
    """A button for whoever may act, greyed out for others; whether it was pressed by one who may."""
    allowed = may_act()
    hint = options.pop("help", None) if allowed else "This needs the control token."
    disabled = bool(options.pop("disabled", False)) or not allowed
    return st.button(label, key=key, disabled=disabled, help=hint, **options) and allowed  # type: ignore[arg-type]


__all__ = ["ACT", "LOOK", "act", "ask", "asked_for", "may_act", "may_look", "say", "take"]

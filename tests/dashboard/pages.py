"""Pages as Streamlit's own test harness sees them."""

from typing import Any

from streamlit.testing.v1 import AppTest


def _page(view: str, state: dict) -> None:  # type: ignore[type-arg]  # its text runs elsewhere, without imports
    from importlib import import_module

    import streamlit as st

    for key, value in state.items():
        st.session_state.setdefault(key, value)
    import_module(f"ethnos.dashboard.views.{view}").show()


def page(view: str, **state: Any) -> AppTest:
    """A page after its first run. Raises what the page raised."""
    app = AppTest.from_function(_page, default_timeout=60, kwargs={"view": view, "state": state})
    return sound(app.run())


def sound(app: AppTest) -> AppTest:
    assert not app.exception, [e.message for e in app.exception]
    return app


def words(app: AppTest) -> str:
    """All that is on the page as text."""
    kinds = (
        "title",
        "header",
        "subheader",
        "markdown",
        "caption",
        "text",
        "code",
        "info",
        "error",
        "warning",
        "success",
    )
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))

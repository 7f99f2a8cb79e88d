"""The app: who may look, which run, and the pages. Streamlit runs this from the top for each look at a page."""

import streamlit as st
from PIL import Image

from ethnos.dashboard import reading, rights
from ethnos.dashboard.pages import PAGES

ICON = Image.new("RGB", (16, 16), (0, 114, 178))
# of our own: the icon that Streamlit takes otherwise is fetched from Google for the browser's tab


def main() -> None:
    """One look."""
    st.set_page_config(page_title="Ethnos", page_icon=ICON, layout="wide")
    if not rights.may_look():
        rights.ask()
        return
    page = st.navigation(
        {
            group: [
                st.Page(show, title=title, icon=icon, url_path=path, default=path == "runs")
                for show, title, icon, path in pages
            ]
            for group, pages in PAGES.items()
        }
    )
    choose_run()
    rights.say()
    page.run()


def choose_run() -> None:
    """The run that all pages look at; an address such as `/society?run=first` chooses it, too."""
    names = reading.names()
    asked = st.query_params.get("run")
    if st.session_state.get("run") not in names:
        st.session_state["run"] = asked if asked in names else (names[0] if names else None)
    if names:
        st.sidebar.selectbox("Run", names, key="run", help="The run that every page looks at.")


main()

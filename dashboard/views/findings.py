"""What an anthropologist found, each claim one click from its evidence."""

from collections.abc import Iterator

import streamlit as st

from ethnos.analytics.asking import rows
from ethnos.dashboard.choosing import the_run
from ethnos.dashboard.reading import reading, told
from ethnos.dashboard.words import plain
from ethnos.record.directory import RunDirectory

PLACES = ("annotations", "study")
"""Where in a run's folder a study puts what it wrote."""
MOST_BYTES = 1_000_000


def reports(run: RunDirectory) -> Iterator[tuple[str, str]]:
    """Name and text of each report beside the record, shown as text."""
    for place in PLACES:
        for path in sorted((run.path / place).glob("*.md")):
            if path.is_file() and not path.is_symlink():
                yield path.name, path.read_bytes()[:MOST_BYTES].decode("utf-8", "replace")


def show() -> None:
    """The page."""
    st.title("Findings")
    run = the_run()
    if run is None:
        return
    found = list(reports(run))
    if not found:
        st.info("Nobody has studied this run yet.")
        st.code(f"ethnos study {run.name}", language="console")
    for name, text in found:
        st.subheader(name.removesuffix(".md").capitalize() if name.isascii() else "Report")
        st.code(plain(text, 200_000), language=None, wrap_lines=True)
    st.subheader("Evidence")
    seq = st.number_input("Event (seq)", 0, value=None, placeholder="the number a claim cites", key="seq")
    if seq is not None:
        with told("Reading the run"), reading(run) as con:
            around = rows(
                con,
                "SELECT seq, tick, kind, agent_id, target_id, amount, text, data FROM events "
                "WHERE seq BETWEEN $seq - 3 AND $seq + 3 ORDER BY seq",
                {"seq": seq},
            )
            st.dataframe(
                [{k: plain(v, 400) if isinstance(v, str) else v for k, v in r.items()} for r in around], hide_index=True
            )


__all__ = ["reports", "show"]

"""What an anthropologist found, each claim one click from its evidence."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from ethnos.analytics.asking import rows
from ethnos.dashboard.choosing import the_run
from ethnos.dashboard.reading import reading, told
from ethnos.dashboard.words import escaped, plain
from ethnos.record.directory import RunDirectory
from ethnos.record.studied import studied_table

PLACES = ("annotations", "study")
"""Where in a run's folder a study puts what it wrote."""
MOST_BYTES = 1_000_000


def reports(run: RunDirectory) -> Iterator[tuple[str, str]]:
    """Name and text of each report beside the record, shown as text."""
    for place in PLACES:
        for path in sorted((run.path / place).glob("*.md")):
            if path.is_file() and not path.is_symlink():
                yield path.name, path.read_bytes()[:MOST_BYTES].decode("utf-8", "replace")


CITED = """
SELECT seq, tick, kind, agent_id, target_id, amount, text, data FROM events
WHERE seq IN (SELECT unnest($seqs)) ORDER BY seq
"""


def claims(run: RunDirectory) -> list[dict[str, Any]]:
    """What a study found, each with the `seq` of its evidence."""
    found = studied_table(run, "findings")
    return list(found.to_pylist()) if found is not None else []


def show_claims(run: RunDirectory, found: list[dict[str, Any]]) -> None:
    """Each claim, with its evidence one click away."""
    seqs = sorted({n for f in found for n in f["evidence"]})
    with told("Reading the run"), reading(run) as con:
        events = {r["seq"]: _shown(r) for r in rows(con, CITED, {"seqs": seqs})}
        for topic in dict.fromkeys(f["topic"] for f in found):
            st.subheader(escaped(topic.capitalize()))
            for f in (f for f in found if f["topic"] == topic):
                with st.expander(escaped(f["claim"], 400)):
                    st.caption(escaped(f"{f['instrument']}; confidence {f['sure']:.2f}", 200))
                    st.dataframe([events[n] for n in f["evidence"] if n in events], hide_index=True)


def _shown(r: dict[str, Any]) -> dict[str, Any]:
    return {k: plain(v, 400) if isinstance(v, str) else v for k, v in r.items()}


def show() -> None:
    """The page."""
    st.title("Findings")
    run = the_run()
    if run is None:
        return
    found, claimed = list(reports(run)), claims(run)
    if claimed:
        show_claims(run, claimed)
    if not found:
        st.info("Nobody has studied this run yet.")
        st.code(f"ethnos study {run.name}", language="console")
    for name, text in found:
        with st.expander(name.removesuffix(".md").capitalize() if name.isascii() else "Report", expanded=not claimed):
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
            st.dataframe([_shown(r) for r in around], hide_index=True)


__all__ = ["claims", "reports", "show"]

"""Charts that several pages draw: one look, colours that are told apart whatever one's colour vision."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import streamlit as st

BLUE, ORANGE, GREEN, PINK, SKY, GOLD = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Okabe and Ito."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""So that lines differ by more than their colour."""

Rows = Sequence[dict[str, Any]]


def _data(rows: Rows) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def lines(
    rows: Rows, names: Sequence[str], title: str, *, tick: int | None = None, kind: str = "line", height: int = 140
) -> Any:
    """Some columns of `rows` over their column `tick`, each named where lines have a legend; a mark at `tick`."""
    long = [{"tick": r["tick"], "what": n, "value": r[n]} for r in rows for n in names if r.get(n) is not None]
    legend = alt.Legend(title=None, orient="top-right") if len(names) > 1 else None
    scale = alt.Scale(domain=list(names), range=[BLUE, ORANGE, GREEN, PINK][: len(names)])
    base = alt.Chart(_data(long)).encode(
        x=alt.X(
            "tick:Q", title=None, axis=alt.Axis(format="d", tickMinStep=1, tickCount=5), scale=alt.Scale(nice=False)
        ),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=4)),
        tooltip=[alt.Tooltip("tick:Q"), alt.Tooltip("what:N"), alt.Tooltip("value:Q", format=",.3~f")],
    )
    colour = alt.Color("what:N", scale=scale, legend=legend)
    if kind == "bars":
        drawn = base.mark_bar().encode(color=colour, xOffset="what:N" if len(names) > 1 else alt.Undefined)
    else:
        dashes = alt.StrokeDash("what:N", scale=alt.Scale(domain=list(names), range=list(DASHES)), legend=legend)
        drawn = base.mark_line(interpolate="step-after").encode(color=colour, strokeDash=dashes)
    layers: list[Any] = [drawn]
    if tick is not None:
        layers.append(
            alt.Chart(_data([{"tick": tick}])).mark_rule(strokeDash=[3, 3], color="#8d96a0").encode(x="tick:Q")
        )
    return alt.layer(*layers).properties(title=title, height=height)


def stacked(charts: Sequence[Any], key: str) -> None:
    """Charts one below the other, over the same ticks."""
    for i, drawn in enumerate(charts):
        st.altair_chart(drawn, key=f"{key}-{i}", width="stretch")


def chart(drawn: Any, key: str) -> None:
    """One chart."""
    st.altair_chart(drawn, key=key, width="stretch")

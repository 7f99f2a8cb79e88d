"""Charts that several pages draw: one look, colours that are told apart whatever one's colour vision."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import networkx as nx
import streamlit as st

from ethnos.world.scenario import View

BLUE, ORANGE, GREEN, PINK, SKY, GOLD = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Okabe and Ito."""
PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, GOLD)
LEGEND = alt.Legend(title=None, orient="bottom", columns=4, symbolLimit=24)
NODES = 400
"""Networks of more nodes are drawn in a circle: another layout would take seconds."""
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
    legend = alt.Legend(title=None, orient="top", offset=2) if len(names) > 1 else None
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
    return alt.layer(*layers).properties(title=title, height=height + 40 * (legend is not None))


def pictured(view: View, rows: Rows) -> Any:
    """A view of a world."""
    if view.mark == "network":
        return _network(view, rows)
    encoded: dict[str, Any] = {
        "x": alt.X(f"{view.x}:O" if view.mark in ("bars", "heat") else _channel(view.x, rows), title=view.x, sort=None),
        "y": alt.Y(_channel(view.y, rows), title=view.y, sort=None),
        "tooltip": [alt.Tooltip(_channel(n, rows)) for n in rows[0]],
    }
    if view.mark == "heat":
        encoded["color"] = alt.Color(_channel(view.colour, rows), scale=alt.Scale(scheme="viridis"))
    elif view.colour:
        encoded["color"] = alt.Color(f"{view.colour}:N", legend=LEGEND, scale=alt.Scale(range=[*PALETTE]), sort=None)
        if view.mark == "line":
            encoded["strokeDash"] = alt.StrokeDash(f"{view.colour}:N", legend=LEGEND, sort=None)
        if view.mark == "points":
            encoded["shape"] = alt.Shape(f"{view.colour}:N", legend=LEGEND, sort=None)
    base = alt.Chart(_data(rows))
    marks = {"line": base.mark_line, "bars": base.mark_bar, "points": base.mark_point, "heat": base.mark_rect}
    return marks[view.mark]().encode(**encoded).properties(title=view.title, height=260)


def _channel(name: str, rows: Rows) -> str:
    """A column as Altair calls it: a quantity if all its values are numbers."""
    numeric = all(isinstance(v, int | float) for r in rows if (v := r[name]) is not None)
    return f"{name}:{'Q' if numeric else 'N'}"


def _network(view: View, rows: Rows) -> Any:
    """Nodes and ties, laid out the same way for the same rows."""
    graph = nx.Graph()
    for r in rows:
        if r[view.x] is not None:
            graph.add_node(r[view.x], kind=str(r[view.colour]) if view.colour else "")
    graph.add_edges_from((r[view.x], r[view.y]) for r in rows if r[view.x] is not None and r[view.y] is not None)
    place = nx.spring_layout(graph, seed=1, iterations=60) if len(graph) <= NODES else nx.circular_layout(graph)
    at = {n: {"x": float(x), "y": float(y)} for n, (x, y) in place.items()}
    ties = [{**at[a], "x2": at[b]["x"], "y2": at[b]["y"]} for a, b in graph.edges]
    nodes = [{**at[n], "name": str(n), "kind": kind} for n, kind in graph.nodes(data="kind", default="")]
    bare = alt.X("x:Q", axis=None), alt.Y("y:Q", axis=None)
    lines = alt.Chart(_data(ties)).mark_rule(opacity=0.35, color="#8d96a0").encode(*bare, x2="x2:Q", y2="y2:Q")
    dots = alt.Chart(_data(nodes)).mark_point(filled=True, size=70, opacity=0.95).encode(*bare, tooltip=["name:N"])
    if view.colour:
        shades = alt.Scale(range=[*PALETTE])
        dots = dots.encode(
            color=alt.Color("kind:N", legend=LEGEND, scale=shades), shape=alt.Shape("kind:N", legend=LEGEND)
        )
    return (lines + dots).properties(title=view.title, height=460)


def stacked(charts: Sequence[Any], key: str) -> None:
    """Charts one below the other, over the same ticks."""
    for i, drawn in enumerate(charts):
        st.altair_chart(drawn, key=f"{key}-{i}", width="stretch")


def chart(drawn: Any, key: str) -> None:
    """One chart."""
    st.altair_chart(drawn, key=key, width="stretch")

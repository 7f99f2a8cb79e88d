"""SQL: an editor with the schema beside it, in the sandbox."""

import io

import altair as alt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import streamlit as st

from ethnos.dashboard import figures
from ethnos.dashboard.choosing import the_run
from ethnos.dashboard.reading import told
from ethnos.dashboard.words import escaped, plain
from ethnos.record import describe
from ethnos.record.directory import RunDirectory
from ethnos.record.sandbox import Answer, Limits, Sandbox

EXAMPLES = {
    "Population": "SELECT tick, population FROM ticks ORDER BY tick",
    "Deaths by cause": "SELECT cause, count(*) AS deaths, round(avg(died - born), 1) AS mean_age\n"
    "FROM agents WHERE died IS NOT NULL GROUP BY cause ORDER BY deaths DESC",
    "Who hears whom": "SELECT target_id AS speaker, agent_id AS listener, count(*) AS heard\n"
    "FROM heard GROUP BY ALL ORDER BY heard DESC LIMIT 20",
    "Refused actions": "SELECT action, reason, count(*) AS n FROM decisions\n"
    "WHERE outcome = 'rejected' GROUP BY ALL ORDER BY n DESC",
    "Kinds of event": "SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC",
}
SHOWN = 1_000


@st.cache_resource(show_spinner=False)
def _sandbox() -> Sandbox:
    return Sandbox(Limits())


def show() -> None:
    """The page."""
    st.title("SQL")
    run = the_run()
    if run is None:
        return
    saved = st.session_state.setdefault("saved-queries", {})
    left, right = st.columns([3, 1], gap="medium")
    with right:
        _schema(run)
    with left:
        known = {**EXAMPLES, **saved}
        st.selectbox("Start from", list(known), index=None, key="example", on_change=_taken, args=(known,))
        sql = st.text_area("Query", EXAMPLES["Population"], key="sql", height=160, max_chars=20_000)
        first, second, _ = st.columns([1, 1, 3])
        if first.button("Run", type="primary", icon=":material/play_arrow:", key="run-query"):
            st.session_state.pop("answer", None)
            with told("The query"):
                st.session_state["answer"] = _sandbox().ask([run], sql)
        if second.button("Save", key="save-query", help="For as long as this page is open."):
            saved[escaped(" ".join(sql.split())[:40])] = sql
        limits = _sandbox().limits
        st.caption(
            f"It reads this run alone, for at most {limits.seconds:g} seconds, {limits.memory_bytes >> 20} MB "
            f"and {limits.rows:,} rows."
        )
        if "answer" in st.session_state:
            _answer(st.session_state["answer"])


def _taken(known: dict[str, str]) -> None:
    chosen = st.session_state.get("example")
    if chosen in known:
        st.session_state["sql"] = known[chosen]


def _answer(answer: Answer) -> None:
    table = answer.table
    cut = ", the first of more" if answer.more else ""
    st.caption(f"{table.num_rows:,} rows{cut}, {answer.seconds:.2f} s")
    rows = [
        {k: plain(v, 400) if isinstance(v, str) else v for k, v in r.items()} for r in table.slice(0, SHOWN).to_pylist()
    ]
    st.dataframe(rows, hide_index=True, key="result")
    _quick(table, rows)
    csv, parquet = io.BytesIO(), io.BytesIO()
    try:
        pa.csv.write_csv(table, csv)
    except pa.ArrowException:
        pa.csv.write_csv(pa.Table.from_pylist([{k: str(v) for k, v in r.items()} for r in table.to_pylist()]), csv)
    pa.parquet.write_table(table, parquet)
    first, second, _ = st.columns([1, 1, 3])
    first.download_button("CSV", csv.getvalue(), "answer.csv", "text/csv", key="csv")
    second.download_button("Parquet", parquet.getvalue(), "answer.parquet", key="parquet")


def _quick(table: pa.Table, rows: list[dict[str, object]]) -> None:
    """A chart, where the first column can be an axis and another is a number."""
    numbers = [f.name for f in table.schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)]
    values = [n for n in numbers if n != table.column_names[0]]
    if not values or not rows:
        return
    data = [{"x": r[table.column_names[0]], "y": r[values[0]]} for r in rows]
    over = table.column_names[0] in numbers
    base = alt.Chart(alt.InlineData(values=data))
    drawn = base.mark_line() if over else base.mark_bar()
    kind = "Q" if over else "N"
    titles = plain(table.column_names[0], 40), plain(values[0], 40)
    encoded = drawn.encode(x=alt.X(f"x:{kind}", title=titles[0], sort=None), y=alt.Y("y:Q", title=titles[1]))
    figures.chart(encoded.properties(height=220), "quick")


def _schema(run: RunDirectory) -> None:
    st.caption("What there is")
    with told("Reading the schema"):
        for table in describe.tables(run):
            with st.expander(escaped(table.name, 60)):
                st.text(plain(table.meaning, 300))
                rows = [
                    {"column": c.name, "type": c.type, "meaning": f"{c.meaning} {c.unit}".strip()}
                    for c in table.columns
                ]
                st.dataframe(rows, hide_index=True, key=f"schema-{table.name}")

"""What is said: vocabulary, novelty, cascades of retelling, exposure and adoption, open-endedness. Words are untrusted.

A word is a run of letters and digits, in lower case; a text said again is one with the same words.
"""

import warnings
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ethnos.analytics.measures.measure import Measure, derived, group, library, table

WORDS = r"""
SELECT tick, seq, agent_id, unnest(regexp_extract_all(lower(text), '[\p{L}\p{N}]+')) AS word
FROM events WHERE kind = 'said' AND agent_id IS NOT NULL
"""
GROWTH = """
WITH first AS (SELECT word, min(tick) AS tick FROM words GROUP BY word),
new AS (SELECT tick, count(*) AS types FROM first GROUP BY tick),
said AS (SELECT tick, count(*) AS tokens FROM words GROUP BY tick)
SELECT s.tick, (sum(s.tokens) OVER w)::BIGINT AS tokens, (sum(coalesce(n.types, 0)) OVER w)::BIGINT AS types
FROM said s LEFT JOIN new n USING (tick) WINDOW w AS (ORDER BY s.tick) ORDER BY s.tick
"""
NOVELTY = """
WITH first AS (SELECT word, min(seq) AS seq FROM words GROUP BY word)
SELECT w.tick, w.seq, w.agent_id, count(DISTINCT w.word) FILTER (f.seq = w.seq) / count(DISTINCT w.word) AS novelty
FROM words w JOIN first f USING (word) GROUP BY ALL
"""
WINDOWS = """
WITH many AS (SELECT greatest(1, ceil(max(tick) / 20))::BIGINT AS size FROM ticks),
first AS (SELECT word, min(tick) AS tick FROM words GROUP BY word),
said AS (SELECT w.tick // m.size AS win, m.size, w.word, count(*) AS n, any_value(f.tick // m.size) AS since
         FROM words w JOIN first f USING (word), many m GROUP BY ALL),
total AS (SELECT *, sum(n) OVER (PARTITION BY win) AS all_n FROM said),
counted AS (
    SELECT win * any_value(size) AS tick, count(*) FILTER (since = win) / count(*) AS novelty,
           coalesce(-sum(n / all_n * ln(n / all_n)) / nullif(ln(count(*)), 0), 0) AS diversity, sum(n)::BIGINT AS tokens
    FROM total GROUP BY win
)
SELECT *, novelty < 0.02 AS frozen, novelty > 0.8 AND diversity > 0.9 AS noise, diversity < 0.3 AS monoculture
FROM counted ORDER BY tick
"""
RETOLD = r"""
WITH text AS (
    SELECT seq, tick, agent_id, array_to_string(regexp_extract_all(lower(text), '[\p{L}\p{N}]+'), ' ') AS words
    FROM events WHERE kind = 'said' AND agent_id IS NOT NULL
), heard AS (
    SELECT h.agent_id, h.tick, t.words, max(t.seq) AS seq
    FROM events h JOIN text t ON t.seq = CAST(h.data ->> 'said' AS BIGINT)
    WHERE h.kind = 'heard' AND h.agent_id <> t.agent_id GROUP BY ALL
)
SELECT t.seq, t.tick, t.agent_id, h.seq AS parent
FROM text t ASOF LEFT JOIN heard h ON h.agent_id = t.agent_id AND h.words = t.words AND t.tick > h.tick
WHERE t.words <> ''
"""
CASCADES = """
WITH RECURSIVE told AS MATERIALIZED (SELECT * FROM retold), line AS (
    SELECT seq AS root, seq, 0 AS depth FROM told WHERE parent IS NULL
    UNION ALL
    SELECT l.root, r.seq, l.depth + 1 FROM line l JOIN told r ON r.parent = l.seq
)
SELECT r.tick, r.agent_id, l.root AS seq, count(*) AS size, max(l.depth) AS depth
FROM line l JOIN told r ON r.seq = l.root GROUP BY ALL
"""
AT_RISK = r"""
WITH text AS (
    SELECT seq, tick, agent_id, array_to_string(regexp_extract_all(lower(text), '[\p{L}\p{N}]+'), ' ') AS words
    FROM events WHERE kind = 'said' AND agent_id IS NOT NULL
), use AS (SELECT words, agent_id, min(tick) AS tick FROM text WHERE words <> '' GROUP BY ALL
), idea AS (
    SELECT words, min(tick) AS since, count(*) AS users FROM use GROUP BY words HAVING count(*) > 1
    ORDER BY users DESC, words LIMIT 20
), exposed AS (
    SELECT i.words, h.agent_id, min(h.tick) AS tick FROM idea i JOIN text t USING (words)
    JOIN events h ON h.kind = 'heard' AND CAST(h.data ->> 'said' AS BIGINT) = t.seq GROUP BY ALL
), risk AS (
    SELECT dense_rank() OVER (ORDER BY i.words, a.agent_id) AS id, greatest(a.born, i.since) AS start,
           least(coalesce(u.tick, 1000000000), coalesce(a.died, l.last), l.last) AS stop,
           coalesce(u.tick, 1000000000) <= least(coalesce(a.died, l.last), l.last) AS adopted, e.tick AS heard
    FROM idea i CROSS JOIN agents a CROSS JOIN (SELECT max(tick) AS last FROM ticks) l
    LEFT JOIN use u ON u.words = i.words AND u.agent_id = a.agent_id
    LEFT JOIN exposed e ON e.words = i.words AND e.agent_id = a.agent_id
), valid AS (SELECT *, CASE WHEN heard < stop THEN greatest(heard, start) END AS cut FROM risk WHERE stop > start)
SELECT id, start, coalesce(cut, stop) AS stop, adopted AND cut IS NULL AS adopted, 0 AS exposed FROM valid
WHERE coalesce(cut, stop) > start
UNION ALL SELECT id, cut, stop, adopted, 1 FROM valid WHERE cut IS NOT NULL ORDER BY id, start
"""


def vocabulary(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """By tick: words so far, different ones so far. Over the run: Heaps' law fitted to that, on logarithms."""
    words = con.sql(WORDS)
    if by in ("agent", "cohort"):
        return group(con, words, "count(*) AS tokens, count(DISTINCT word) AS types", by)
    growth = derived(words, "words", GROWTH)
    if by == "tick":
        return table(growth)
    return table(
        growth.aggregate("""max(tokens) AS tokens, max(types) AS types,
        exp(regr_intercept(ln(types), ln(tokens))) AS k, regr_slope(ln(types), ln(tokens)) AS beta,
        regr_r2(ln(types), ln(tokens)) AS r2""")
    )


def novelty(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """What share of a message's words nobody had said before."""
    found = derived(con.sql(WORDS), "words", NOVELTY)
    return group(con, found, "count(*) AS messages, avg(novelty) AS novelty", by)


def openendedness(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Novelty against all of history and diversity of the present, in twentieths of the run."""
    windows = derived(con.sql(WORDS), "words", WINDOWS)
    if by == "tick":
        return table(windows)
    return table(
        windows.aggregate("""count(*) AS windows, avg(novelty) AS novelty, avg(diversity) AS diversity,
        count(*) FILTER (frozen) AS frozen, count(*) FILTER (noise) AS noise,
        count(*) FILTER (monoculture) AS monoculture""")
    )


def cascades(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """Messages told on by who heard them: sizes and depths; branching is the mean number of times one is told on."""
    found = derived(con.sql(RETOLD), "retold", CASCADES)
    totals = """count(*) AS cascades, avg(size) AS mean_size, max(size) AS largest, max(depth) AS deepest,
                1 - count(*) / sum(size) AS branching"""
    return group(con, found, totals, by)


def cascade_tail(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """A power law fitted to the sizes of cascades, and whether it explains them better than a lognormal."""
    found = derived(con.sql(RETOLD), "retold", CASCADES)
    return tail(found.order("seq").to_arrow_table()["size"].to_pylist())


def tail(sizes: list[int]) -> pa.Table:
    """Exponent, least size of the tail, and the log-likelihood ratio against a lognormal (above 0: power law)."""
    empty: dict[str, Any] = {"cascades": len(sizes), "alpha": None, "xmin": None, "ratio": None, "p": None}
    if len(set(sizes)) >= 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns of every step of its search
            fit = library("powerlaw").Fit(sizes, discrete=True, verbose=False)
            ratio, p = fit.distribution_compare("power_law", "lognormal")
            alpha, least = fit.power_law.alpha, fit.power_law.xmin
        empty |= {"alpha": float(alpha), "xmin": float(least), "ratio": float(ratio), "p": float(p)}
    types = [pa.int64(), *[pa.float64()] * 4]
    return pa.Table.from_pylist([empty], pa.schema(list(zip(empty, types, strict=True))))


def adoption(con: DuckDBPyConnection, by: str | None) -> pa.Table:
    """By how much having heard a text raises the hazard of saying it: the 20 texts that most agents said."""
    return hazard(con.sql(AT_RISK).df())


def hazard(spans: Any) -> pa.Table:
    """Cox's model on spans of being at risk: id, start, stop, adopted, exposed."""
    row: dict[str, Any] = dict.fromkeys(("log_hazard_ratio", "hazard_ratio", "low", "high", "p"))
    adopted = spans["adopted"].astype(bool)
    row |= {"spans": len(spans), "adoptions": int(adopted.sum())}
    if adopted.any() and spans["exposed"].nunique() > 1 and spans.loc[adopted, "exposed"].nunique() > 1:
        fitter = library("lifelines").CoxTimeVaryingFitter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitter.fit(spans, id_col="id", event_col="adopted", start_col="start", stop_col="stop")
        found = fitter.summary.loc["exposed"]
        names = {
            "log_hazard_ratio": "coef",
            "hazard_ratio": "exp(coef)",
            "low": "exp(coef) lower 95%",
            "high": "exp(coef) upper 95%",
            "p": "p",
        }
        row |= {k: float(found[v]) for k, v in names.items()}
    schema = pa.schema([(k, pa.int64() if k in ("spans", "adoptions") else pa.float64()) for k in row])
    return pa.Table.from_pylist([row], schema)


_TALK = ("said", "heard")
MEASURES = (
    Measure(
        "vocabulary",
        "Vocabulary growth",
        "V(N) = k N^beta, fitted to ln V against ln N",
        "words",
        "Heaps 1978",
        vocabulary,
        ("said",),
    ),
    Measure(
        "message_novelty",
        "Novelty of messages",
        "different words nobody said before / different words",
        "share",
        "lexical",
        novelty,
        ("said",),
    ),
    Measure(
        "cascades",
        "Cascades of retelling",
        "the last message with the same words that the speaker heard in "
        "an earlier tick is the parent; branching = 1 - cascades / messages",
        "messages",
        "branching process",
        cascades,
        _TALK,
    ),
    Measure(
        "cascade_tail",
        "Tail of cascade sizes",
        "p(s) ~ s^-alpha for s >= xmin; ratio = log-likelihood of the power law less that of a lognormal",
        "exponent",
        "Clauset et al. 2009; powerlaw",
        cascade_tail,
        _TALK,
        by=(),
    ),
    Measure(
        "adoption",
        "Exposure to adoption",
        "h(t) = h0(t) exp(b exposed(t))",
        "hazard ratio",
        "Cox 1972; lifelines",
        adoption,
        _TALK,
        by=(),
    ),
    Measure(
        "openendedness",
        "Open-endedness",
        "novelty = words new in a window / its words; diversity = entropy / "
        "ln(words); frozen: novelty < 0.02; noise: novelty > 0.8 and diversity > 0.9; monoculture: diversity < 0.3",
        "share",
        "historical novelty with current diversity; thresholds are conventions",
        openendedness,
        ("said",),
        by=("tick",),
    ),
)

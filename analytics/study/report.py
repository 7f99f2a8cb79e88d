"""The report of a study: one HTML file that needs nothing else, and the same as Markdown.

Everything that agents wrote is escaped and quoted. Colours are those of Okabe and Ito, told apart by all eyes; lines
have marks of their own, too, so that print in grey says the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, row, rows
from ethnos.analytics.study.findings import Finding
from ethnos.analytics.svg import element, label, line, num, words

CITED = """
SELECT seq, tick, kind, agent_id, target_id, artifact_id, amount, text FROM events
WHERE seq IN (SELECT unnest($seqs)) ORDER BY seq
"""
NOTABLE = """
SELECT a.agent_id, a.name, a.cohort, a.generation, a.born, a.died, a.cause, coalesce(e.n, 0) AS deeds,
       coalesce(e.children, 0) AS children, coalesce(e.given, 0) AS given, coalesce(e.taken, 0) AS taken,
       coalesce(e.texts, 0) AS texts, coalesce(e.said, 0) AS said
FROM agents a LEFT JOIN (
    SELECT agent_id, count(*) AS n, count(*) FILTER (kind = 'reproduced') AS children,
           count(*) FILTER (kind = 'energy_given') AS given, count(*) FILTER (kind = 'energy_taken') AS taken,
           count(*) FILTER (kind = 'artifact_created') AS texts, count(*) FILTER (kind = 'said') AS said
    FROM events WHERE agent_id IS NOT NULL AND kind NOT IN ('heard', 'moved') GROUP BY agent_id
) e USING (agent_id)
ORDER BY children * 5 + given + taken + texts * 3 + said DESC, a.agent_id LIMIT 6
"""
POPULATION = "SELECT tick, population FROM ticks ORDER BY tick"
INEQUALITY = """
WITH bins AS (SELECT DISTINCT tick // 25 AS bin FROM ticks), income AS (
    SELECT tick // 25 AS bin, agent_id, sum(amount) AS got FROM events
    WHERE kind IN ('ate', 'energy_taken') AND agent_id IS NOT NULL GROUP BY ALL
), alive AS (
    SELECT b.bin, a.agent_id, coalesce(i.got, 0) AS got FROM bins b
    JOIN agents a ON a.born <= b.bin * 25 + 24 AND coalesce(a.died, b.bin * 25) >= b.bin * 25
    LEFT JOIN income i ON i.bin = b.bin AND i.agent_id = a.agent_id
), ranked AS (SELECT bin, got, row_number() OVER (PARTITION BY bin ORDER BY got, agent_id) AS place,
                     count(*) OVER (PARTITION BY bin) AS n FROM alive)
SELECT bin * 25 AS tick, CASE WHEN sum(got) > 0
       THEN 2.0 * sum(place * got) / (max(n) * sum(got)) - (max(n) + 1.0) / max(n) ELSE 0 END AS gini
FROM ranked GROUP BY bin ORDER BY bin
"""
NAMES = "SELECT agent_id, name FROM agents"
ARTIFACTS = "SELECT artifact_id, name, created FROM artifacts"

STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{font:16px/1.55 Georgia,'Iowan Old Style',serif;color:#1c1c1c;background:#fff;max-width:60rem;margin:0 auto;
  padding:3rem 1.5rem}
h1{font-size:2.1rem;line-height:1.15;margin:0 0 .3rem}
h2{font-size:1.3rem;margin:2.8rem 0 .8rem;padding-top:.8rem;border-top:2px solid #1c1c1c}
h3{font-size:1.02rem;margin:1.2rem 0 .3rem}
.lead{color:#555;margin:0 0 1.5rem}
nav a{margin-right:1.1rem;font:13px system-ui,sans-serif}
a{color:#005a8c}
table{border-collapse:collapse;width:100%;font:13px/1.45 system-ui,sans-serif}
th{text-align:left;border-bottom:1px solid #1c1c1c;padding:.3rem .5rem}
td{padding:.3rem .5rem;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}
td.n{text-align:right;font-variant-numeric:tabular-nums}
.claim{margin:.7rem 0;padding-left:.9rem;border-left:3px solid #0072b2}
.claim p{margin:0}
.how{font:12.5px system-ui,sans-serif;color:#555}
.how a{margin-right:.5rem}
figure{margin:1rem 0}
figcaption{font:12.5px system-ui,sans-serif;color:#555}
svg{width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif;fill:#333}
svg .axis{stroke:#999;fill:none}
svg .curve{fill:none;stroke:#0072b2;stroke-width:2}
svg .point{stroke:#d55e00;stroke-dasharray:3 3}
svg .good{stroke:#0072b2}
svg .bad{stroke:#d55e00;stroke-dasharray:5 4}
svg .node{fill:#333}
svg .exact{stroke:#1c1c1c;fill:none}
svg .guess{stroke:#cc79a7;stroke-dasharray:4 3;fill:none}
.lives{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:0 2rem}
.lives p{margin:.1rem 0}
tr:target td{background:#fff3c4}
@media print{body{max-width:none;padding:0;font-size:11pt}
nav{display:none}
h2{break-after:avoid}
figure,.claim,tr{break-inside:avoid}}
"""


@dataclass(frozen=True)
class Study:
    """What there is to report of a run."""

    run: str
    tick: int
    tables: dict[str, list[Row]]
    found: Sequence[Finding]


def html(con: DuckDBPyConnection, s: Study) -> str:
    """The report as one file without scripts or anything from elsewhere."""
    topics = list(dict.fromkeys(f.topic for f in s.found))
    parts = [
        element("h1", words(f"A study of {s.run}")),
        element("p", words(_summary(con, s), 2_000), class_="lead"),
        element("nav", "".join(element("a", words(t), href=f"#{i}") for i, t in _CONTENTS)),
        _section("findings", "Findings", "".join(_topic(t, s.found) for t in topics) or "<p>None.</p>"),
        _section("timeline", "Turning points and population", _population(con, s)),
        _section("inequality", "Inequality", _inequality(con, s)),
        _section("networks", "Networks and communities", _network(con, s)),
        _section("texts", "Family tree of the texts", _tree(con, s)),
        _section("lives", "Notable lives", element("div", _lives(con), class_="lives")),
        _section("agreement", "Instruments", _instruments(s)),
        _section("evidence", "Evidence", _evidence(con, s)),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
    head += '<meta name="viewport" content="width=device-width">'
    head += element("title", words(f"A study of {s.run}")) + f"<style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


_CONTENTS = (
    ("findings", "Findings"),
    ("timeline", "Population"),
    ("inequality", "Inequality"),
    ("networks", "Networks"),
    ("texts", "Texts"),
    ("lives", "Lives"),
    ("agreement", "Instruments"),
    ("evidence", "Evidence"),
)


def _summary(con: DuckDBPyConnection, s: Study) -> str:
    born = row(con, "SELECT count(*) AS n, count(died) AS dead FROM agents") or {"n": 0, "dead": 0}
    seen = row(con, "SELECT count(*) AS n FROM events") or {"n": 0}
    return (
        f"{s.tick} ticks and {seen['n']:,} events; {born['n']} agents ever lived, {born['dead']} of them died. "
        f"{sum(a['accepted'] for a in s.tables['annotations'])} annotations passed the audit, "
        f"{sum(not a['accepted'] for a in s.tables['annotations'])} did not."
    )


def _section(name: str, title: str, content: str) -> str:
    return element("section", element("h2", words(title)) + content, id=name)


def _topic(topic: str, found: Sequence[Finding]) -> str:
    return element("h3", words(topic.capitalize())) + "".join(_claim(f) for f in found if f.topic == topic)


def _claim(f: Finding) -> str:
    links = "".join(element("a", f"{n}", href=f"#e{n}") for n in f.evidence[:12])
    more = f" and {len(f.evidence) - 12} more" if len(f.evidence) > 12 else ""
    how = f"{words(f.instrument)}; confidence {f.sure:.2f}. Evidence: {links}{more}"
    inner = element("p", words(f.claim, 500)) + element("p", how, class_="how")
    return element("div", inner, class_="claim", id=f"f{f.id}")


def _curve(points: Sequence[tuple[float, float]], marks: Sequence[tuple[float, str]], ticks: int, name: str) -> str:
    """A line over the ticks, with its scale, and a numbered mark for each turning point."""
    top = max((v for _, v in points), default=0) or 1

    def x(t: float) -> float:
        return 44 + 740 * t / max(1, ticks)

    def y(v: float) -> float:
        return 190 - 150 * v / top

    drawn = [element("path", class_="axis", d="M44 40V190H784"), label(38, 44, f"{top:.3g}", anchor="end")]
    drawn += [label(38, 194, "0", anchor="end"), label(44, 208, "tick 0"), label(784, 208, ticks, anchor="end")]
    for i, (t, _) in enumerate(marks):
        drawn.append(element("path", class_="point", d=f"M{num(x(t))} {30 - i % 2 * 12}V190"))
        drawn.append(label(x(t) + 2, 28 - i % 2 * 12, i + 1))
    drawn.append(element("path", class_="curve", d=line([(x(t), y(v)) for t, v in points])))
    return element("svg", "".join(drawn), viewBox="0 0 800 214", role="img", aria_label=words(name))


def _population(con: DuckDBPyConnection, s: Study) -> str:
    points = [(r["tick"], r["population"]) for r in rows(con, POPULATION)]
    step = max(1, len(points) // 400)
    turns = sorted((f for f in s.found if f.topic == "turning points"), key=lambda f: f.tick)
    chart = _curve(points[::step], [(f.tick, f.claim) for f in turns], s.tick, "Population by tick")
    caption = element("figcaption", "Agents alive at the end of each tick; numbers mark the turning points below.")
    listed = "".join(
        element("li", words(f.claim, 500) + " " + element("a", "evidence", href=f"#f{f.id}")) for f in turns
    )
    return element("figure", chart + caption) + element("ol", listed)


def _inequality(con: DuckDBPyConnection, s: Study) -> str:
    points = [(r["tick"], r["gini"]) for r in rows(con, INEQUALITY)]
    if not any(v for _, v in points):
        return element("p", "This world records no income of energy.")
    chart = _curve(points, [], s.tick, "Gini coefficient of income")
    caption = "Gini coefficient of the energy that living agents ate or took, per 25 ticks: 0 is equal."
    return element("figure", chart + element("figcaption", caption))


def _network(con: DuckDBPyConnection, s: Study) -> str:
    last = max((e["window"] for e in s.tables["edges"]), default=-1)
    ties: defaultdict[tuple[int, int], float] = defaultdict(float)
    for e in s.tables["edges"]:
        if e["window"] == last:
            ties[e["source"], e["target"]] += e["weight"]
    strong = sorted(ties.items(), key=lambda t: (-abs(t[1]), t[0]))[:150]
    member = {m["agent"]: m["community"] for m in s.tables["communities"] if m["window"] == last}
    agents = sorted({a for pair, _ in strong for a in pair}, key=lambda a: (member.get(a, 10**6), a))
    if not agents:
        return element("p", "Nobody had to do with anybody.")
    at = {a: _place(i, len(agents)) for i, a in enumerate(agents)}
    names = _names(con)
    drawn = [
        element("path", class_="good" if w >= 0 else "bad", d=line([at[a], at[b]]), opacity=0.4,
                stroke_width=min(5.0, 0.6 + abs(w) ** 0.5 / 3))
        for (a, b), w in strong
    ]  # fmt: skip
    for a, (x, y) in at.items():
        left = x < 400
        drawn.append(element("circle", cx=x, cy=y, r=4, class_="node"))
        if len(agents) <= 60:
            drawn.append(
                label(x + (-8 if left else 8), y + 4, _called(names, a), anchor="end" if left else None, limit=24)
            )
    svg = element("svg", "".join(drawn), viewBox="0 0 800 640", role="img", aria_label="Ties in the last window")
    caption = "The strongest ties of the last window. Solid: positive; dashed: negative. Communities stand together."
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for a, c in member.items():
        groups[c].append(a)
    listed = [[c, len(g), ", ".join(_called(names, a) for a in sorted(g)[:12])] for c, g in sorted(groups.items())]
    return element("figure", svg + element("figcaption", caption)) + _table(["community", "agents", "members"], listed)


def _place(i: int, n: int) -> tuple[float, float]:
    return 400 + 250 * cos(2 * pi * i / n), 320 + 250 * sin(2 * pi * i / n)


def _tree(con: DuckDBPyConnection, s: Study) -> str:
    """The largest families of texts, each text below the one that it came of."""
    if not s.tables["scores"]:
        return element("p", "Nobody wrote anything.")
    made = {r["artifact_id"]: r for r in rows(con, ARTIFACTS)}
    above = {e["child"]: e["parent"] for e in reversed(s.tables["lineages"]) if e["child"] != e["parent"]}
    order = _families(above)[:60]
    row_of = {a: i for i, (a, _) in enumerate(order)}
    drawn = []
    for a, depth in order:
        x, y = 16.0 + 22 * min(depth, 20), 18.0 + 17 * row_of[a]
        if (parent := above.get(a)) in row_of and depth <= 20:
            top = 18.0 + 17 * row_of[parent]
            drawn.append(element("path", class_="guess", d=line([(x - 22, top + 4), (x - 22, y), (x - 5, y)])))
        named = f"{made[a]['name']} (tick {made[a]['created']})" if a in made else str(a)
        drawn += [element("circle", class_="node", cx=x, cy=y, r=3), label(x + 8, y + 4, named, limit=48)]
    size = f"0 0 800 {24 + 17 * len(order)}"
    svg = element("svg", "".join(drawn), viewBox=size, role="img", aria_label="Family tree of texts") if order else ""
    exact = sum(e["kind"] == "version" for e in s.tables["lineages"])
    guessed = len(s.tables["lineages"]) - exact
    caption = (
        f"{exact} exact edges are versions of one text; {guessed} dashed ones are inferred from reading and words."
    )
    count: defaultdict[str, list[Row]] = defaultdict(list)
    for r in s.tables["scores"]:
        count[r["class"]].append(r)
    listed = [
        [c, len(g), f"{sum(r['novelty'] for r in g) / len(g):.1f}", f"{sum(r['ratio'] for r in g) / len(g):.2f}"]
        for c, g in sorted(count.items())
    ]
    table = _table(["class", "versions", "novelty (0 to 5)", "compressed to"], listed)
    return element("figure", svg + element("figcaption", caption)) + table


def _families(above: Mapping[int, int]) -> list[tuple[int, int]]:
    """Texts with their depth, each behind its parent, the largest families first."""
    below: defaultdict[int, list[int]] = defaultdict(list)
    for child, parent in sorted(above.items()):
        below[parent].append(child)
    families = []
    for root in sorted(set(below) - set(above)):
        family, ahead = [], [(root, 0)]
        while ahead:
            at, depth = ahead.pop()
            family.append((at, depth))
            ahead += [(c, depth + 1) for c in reversed(below[at])] if at in below else []
        families.append(family)
    return [one for family in sorted(families, key=lambda f: (-len(f), f[0])) for one in family]


def _lives(con: DuckDBPyConnection) -> str:
    return "".join(
        element("article", element("h3", words(r["name"], 60)) + element("p", words(biography(r), 800)))
        for r in rows(con, NOTABLE)
    )


def biography(r: Row) -> str:
    """A life in a few plain sentences, counted from the record."""
    begin = "A founder" if r["generation"] == 0 else f"Born in tick {r['born']}, generation {r['generation']}"
    end = f"died in tick {r['died']} ({r['cause']})" if r["died"] is not None else "still alive"
    nouns = {
        "children": ("child", "children"),
        "texts": ("text", "texts"),
        "given": ("gift", "gifts"),
        "taken": ("theft", "thefts"),
        "said": ("message", "messages"),
    }
    done = [f"{r[k]} {words_[r[k] != 1]}" for k, words_ in nouns.items() if r[k]]
    return f"{begin} of {r['cohort']}, {end}. Left {', '.join(done) or 'no traces among others'}."


def _instruments(s: Study) -> str:
    why: defaultdict[tuple[str, str], int] = defaultdict(int)
    for a in s.tables["annotations"]:
        why[a["coder"], "accepted" if a["accepted"] else "rejected by the audit"] += 1
    coders = _table(["coder", "verdict", "annotations"], [[*k, n] for k, n in sorted(why.items())])
    agreed = [[r["code"], r["coders"], r["units"], "-" if r["alpha"] is None else f"{r['alpha']:.2f}"]
              for r in s.tables["agreement"]]  # fmt: skip
    note = "One coder alone: there is no agreement to measure."
    table = _table(["code", "coders", "units", "Krippendorff's alpha"], agreed) if agreed else element("p", note)
    return coders + element("h3", "Agreement of the coders") + table


def _evidence(con: DuckDBPyConnection, s: Study) -> str:
    header = "".join(element("th", h) for h in ("seq", "tick", "kind", "agent", "other", "text no.", "amount", "words"))
    body = "".join(
        element("tr", "".join(element("td", words("" if v is None else v, 300)) for v in r.values()), id=f"e{r['seq']}")
        for r in cited(con, s.found)
    )
    return element("table", element("tr", header) + body)


def cited(con: DuckDBPyConnection, found: Sequence[Finding]) -> list[Row]:
    """The events that findings cite, in order."""
    return rows(con, CITED, {"seqs": sorted({n for f in found for n in f.evidence})})


def _table(header: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    top = element("tr", "".join(element("th", words(h)) for h in header))
    cells = ["".join(element("td", words(v, 400), class_=_kind(v)) for v in r) for r in body]
    return element("table", top + "".join(element("tr", c) for c in cells))


def _kind(value: object) -> str | None:
    return "n" if isinstance(value, int | float) else None


def _names(con: DuckDBPyConnection) -> dict[int, str]:
    return {r["agent_id"]: r["name"] for r in rows(con, NAMES)}


def _called(names: dict[int, str], agent: int) -> str:
    return names.get(agent) or str(agent)


def _md(text: object) -> str:
    """A text that stays a text in Markdown."""
    shown = words(text, 500).replace("\n", " ")
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|~" else c for c in shown)


def markdown(con: DuckDBPyConnection, s: Study) -> str:
    """The same without pictures."""
    out = [f"# A study of {_md(s.run)}", "", _md(_summary(con, s)), "", "## Findings", ""]
    for f in s.found:
        seqs = ", ".join(f"[{n}](#e{n})" for n in f.evidence[:12])
        out.append(f"- {_md(f.claim)} ({_md(f.instrument)}; confidence {f.sure:.2f}; evidence: {seqs})")
    out += ["", "## Notable lives", ""]
    out += [f"- **{_md(r['name'])}**: {_md(biography(r))}" for r in rows(con, NOTABLE)]
    out += [
        "",
        "## Evidence",
        "",
        "| seq | tick | kind | agent | other | words |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in cited(con, s.found):
        cells = (r["tick"], r["kind"], r["agent_id"], r["target_id"], r["text"] or "")
        out.append(
            f'| <a id="e{r["seq"]}"></a>{r["seq"]} | ' + " | ".join(_md("" if c is None else c) for c in cells) + " |"
        )
    return "\n".join([*out, ""])


__all__ = ["Study", "biography", "cited", "html", "markdown"]

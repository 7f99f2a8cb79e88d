"""Findings: what the tables of a study add up to, each with the events behind it, its instrument and how sure it is."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, row, rows

CITED = 24
"""Events that one finding cites at most; the tables have all."""
FIRSTS = """
SELECT kind, min_by(tick, seq) AS tick, min(seq) AS seq, count(*) AS n FROM events
WHERE kind IN ('reproduced', 'energy_given', 'energy_taken', 'artifact_created', 'artifact_modified',
               'artifact_handed_over', 'artifact_destroyed', 'intervened') GROUP BY kind ORDER BY seq
"""
PHRASE = {
    "reproduced": ("birth", "births"),
    "energy_given": ("gift of energy", "gifts of energy"),
    "energy_taken": ("theft of energy", "thefts of energy"),
    "artifact_created": ("text", "texts"),
    "artifact_modified": ("rewriting of a text", "rewritings of texts"),
    "artifact_handed_over": ("handing over of a text", "handings over of texts"),
    "artifact_destroyed": ("destruction of a text", "destructions of texts"),
    "intervened": ("intervention from outside", "interventions from outside"),
}
WORST = """
WITH bins AS (SELECT tick // 25 AS bin, count(*) AS deaths, list(seq ORDER BY seq) AS seqs
              FROM events WHERE kind = 'died' GROUP BY bin)
SELECT bin * 25 AS tick, deaths, seqs, (SELECT population FROM ticks WHERE tick = greatest(0, bin * 25 - 1)) AS before
FROM bins ORDER BY deaths DESC, bin LIMIT 1
"""
LAST = "SELECT tick, population FROM ticks ORDER BY tick DESC LIMIT 1"
FOUNDERS = "SELECT count(*) AS n, min(seq) AS seq FROM events WHERE kind = 'born' AND tick = 0"


@dataclass(frozen=True)
class Finding:
    """One claim."""

    topic: str
    tick: int
    claim: str
    sure: float
    """From 0 to 1: 1 is counted from the record."""
    instrument: str
    evidence: tuple[int, ...]

    @property
    def id(self) -> str:
        """The same for the same claim."""
        return blake2b(f"{self.topic}|{self.claim}|{self.evidence}".encode(), digest_size=5).hexdigest()

    def row(self) -> Row:
        """As it is stored."""
        return {"finding": self.id, **self.__dict__, "evidence": list(self.evidence)}


def found(con: DuckDBPyConnection, tables: Mapping[str, Sequence[Row]]) -> list[Finding]:
    """All findings of a study, by topic."""
    return [
        *_turning_points(con),
        *_codes(tables["annotations"]),
        *_communities(tables["communities"], tables["edges"]),
        *_texts(tables["lineages"], tables["scores"]),
    ]


def _turning_points(con: DuckDBPyConnection) -> Iterator[Finding]:
    for r in rows(con, FIRSTS):
        one, many = PHRASE[r["kind"]]
        claim = f"The first {one} is in tick {r['tick']}; {r['n']} {one if r['n'] == 1 else many} in all."
        yield Finding("turning points", r["tick"], claim, 1.0, "count of events", (r["seq"],))
    worst = row(con, WORST)
    if worst:
        claim = f"Most deaths fall in ticks {worst['tick']} to {worst['tick'] + 24}: {worst['deaths']}"
        claim += f" of {worst['before']} who lived before." if worst["before"] is not None else "."
        seqs = tuple(worst["seqs"][:CITED])
        yield Finding("turning points", worst["tick"], claim, 1.0, "count of events", seqs)
    end, begin = row(con, LAST), row(con, FOUNDERS)
    if end and begin and begin["seq"] is not None:
        claim = f"It began with {begin['n']} agents; {end['population']} live in tick {end['tick']}."
        died = row(con, "SELECT max(seq) AS seq FROM events WHERE kind = 'died'")
        seqs = (begin["seq"], *([died["seq"]] if died and died["seq"] is not None else []))
        yield Finding("turning points", end["tick"], claim, 1.0, "count of events", seqs)


def _codes(annotations: Sequence[Row]) -> Iterator[Finding]:
    """One finding per code and coder: how many show it, with the strongest cases as evidence."""
    groups: defaultdict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for a in annotations:
        if a["accepted"]:
            groups[a["code"], a["subject"], a["coder"], a["instrument"]].append(a)
    for (code, subject, coder, instrument), some in sorted(groups.items()):
        who = {(a["subject_id"], a["window"] if subject == "community" else 0) for a in some}
        noun = {"agent": ("agent", "agents"), "community": ("community", "communities")}[subject][len(who) != 1]
        strongest = sorted(some, key=lambda a: (-len(a["evidence"]), a["annotation"]))
        seqs = [s for a in strongest[:6] for s in a["evidence"][:4]]
        name = code.replace("_", " ").lower()
        claim = f"{name.capitalize()}: {len(who)} {noun}, {len(some)} annotation{'s' * (len(some) != 1)}."
        sure = min(a["confidence"] for a in some)
        how = f"codebook rule, audited ({coder})" if instrument == "rule" else f"model, audited ({coder})"
        topic = "communities" if subject == "community" else "behaviour"
        yield Finding(topic, min(a["first"] for a in some), claim, sure, how, tuple(sorted(set(seqs))[:CITED]))


def _communities(members: Sequence[Row], edges: Sequence[Row]) -> Iterator[Finding]:
    windows = sorted({m["window"] for m in members})
    if not windows:
        return
    last = windows[-1]
    groups = defaultdict(set)
    for m in members:
        if m["window"] == last:
            groups[m["community"]].add(m["agent"])
    inside = [e for e in edges if e["window"] == last and any({e["source"], e["target"]} <= g for g in groups.values())]
    strong = sorted(inside, key=lambda e: (-e["weight"], e["first_seq"]))[: CITED // 2]
    sizes = ", ".join(str(len(g)) for g in sorted(groups.values(), key=len, reverse=True)[:8])
    claim = (
        f"In the last window ties bind {len(groups)} communit{'y' if len(groups) == 1 else 'ies'} of {sizes} agents."
    )
    seqs = tuple(sorted({s for e in strong for s in (e["first_seq"], e["last_seq"])})[:CITED])
    yield Finding("communities", 0, claim, 0.7, "Louvain communities of positive ties", seqs)


def _texts(lineages: Sequence[Row], scores: Sequence[Row]) -> Iterator[Finding]:
    for kind, sure, noun in (("version", 1.0, "versions that replace another"), ("inspired", None, "inspired texts")):
        some = [r for r in lineages if r["kind"] == kind]
        if some:
            best = sorted(some, key=lambda r: (-r["confidence"], r["tick"]))[: CITED // 2]
            seqs = tuple(sorted({s for r in best for s in r["evidence"]})[:CITED])
            mean = sum(r["confidence"] for r in some) / len(some)
            claim = f"Of the texts' family tree {len(some)} edges are {noun}."
            yield Finding("texts", best[0]["tick"], claim, mean if sure is None else sure, best[0]["instrument"], seqs)
    if scores:
        novel = [s for s in scores if s["novelty"] >= 4]
        claim = f"{len(novel)} of {len(scores)} versions of texts are mostly new (novelty 4 or 5)."
        seqs = tuple(s["seq"] for s in (novel or list(scores))[:CITED])
        yield Finding("texts", scores[0]["tick"], claim, 0.8, "share of word pairs never written before", seqs)


__all__ = ["Finding", "found"]

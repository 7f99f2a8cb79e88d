"""What the texts that agents leave have to do with one another, and what kind of texts they are.

Exact: a version and the one it replaces. Inferred: a text and one that its author had read, held or written before,
where their words agree. Similarity is the share of a text's pairs of neighbouring words that the other has, too
(containment; Broder 1997), averaged with the cosine of their word counts without the commonest words.
"""

import re
import zlib
from collections import Counter, defaultdict
from functools import lru_cache

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows

SIMILAR = 0.35
"""From which similarity on a text counts as inspired by another."""
RECENT = 60
"""So many of the texts that an author met last are compared."""
COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "do",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "she",
        "so",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "they",
        "this",
        "to",
        "us",
        "was",
        "we",
        "were",
        "what",
        "when",
        "which",
        "who",
        "will",
        "with",
        "you",
        "your",
    ]
)
VERSIONS = """
SELECT seq, tick, artifact_id, agent_id AS author_id, CAST(data ->> 'version' AS BIGINT) AS version,
       CAST(data ->> 'parent_version' AS BIGINT) AS parent_version, coalesce(text, '') AS text, kind
FROM events WHERE kind IN ('artifact_created', 'artifact_modified') ORDER BY seq
"""
MET = """
SELECT seq, artifact_id, CAST(data ->> 'version' AS BIGINT) AS version,
       CASE WHEN kind = 'artifact_handed_over' THEN target_id ELSE agent_id END AS agent
FROM events WHERE kind IN ('artifact_read', 'artifact_picked_up', 'artifact_handed_over') ORDER BY seq
"""
CLASSES = {
    "institutional": [
        "council",
        "guild",
        "clan",
        "tribe",
        "alliance",
        "founded",
        "member",
        "members",
        "treaty",
        "office",
        "market",
        "law",
        "school",
    ],
    "norms and governance": [
        "must",
        "should",
        "shall",
        "never",
        "always",
        "forbidden",
        "allowed",
        "rule",
        "rules",
        "law",
        "punish",
        "fair",
        "share",
    ],
    "procedural": [
        "how",
        "step",
        "steps",
        "first",
        "then",
        "next",
        "plan",
        "meet",
        "build",
        "follow",
        "gather",
        "bring",
        "turn",
        "together",
        "when",
    ],
}
"""Words that speak for a class; a text with none of them is informational."""


@lru_cache(maxsize=20_000)
def words(text: str) -> tuple[str, ...]:
    """Its words in small letters."""
    return tuple(re.findall(r"\w+", text.lower()))


@lru_cache(maxsize=20_000)
def pairs(text: str) -> frozenset[tuple[str, ...]]:
    """Its pairs of neighbouring words; a single word stands for itself."""
    found = words(text)
    return frozenset(zip(found, found[1:], strict=False)) if len(found) > 1 else frozenset([found] if found else [])


def similarity(child: str, parent: str) -> float:
    """From 0 to 1 how much of a text is in another.

    >>> similarity("bread for all", "bread for all"), similarity("bread", "stone")
    (1.0, 0.0)
    """
    mine, theirs = pairs(child), pairs(parent)
    contained = len(mine & theirs) / len(mine) if mine else 0.0
    a, b = (Counter(w for w in words(t) if w not in COMMON) for t in (child, parent))
    norm = float(sum(n * n for n in a.values()) * sum(n * n for n in b.values())) ** 0.5
    cosine = sum(n * b[w] for w, n in a.items()) / norm if norm else contained
    return round((contained + cosine) / 2, 6)


def lineages(con: DuckDBPyConnection) -> list[Row]:
    """Edges of the texts' phylogeny: exact ones from versions, inferred ones with similarity as their confidence.

    `evidence` is the writing of the child, and the meeting or writing of the parent.
    """
    versions = rows(con, VERSIONS)
    texts = {(v["artifact_id"], v["version"]): v for v in versions}
    met: defaultdict[int, dict[tuple[int, int], int]] = defaultdict(dict)
    meetings = iter(rows(con, MET))
    ahead = next(meetings, None)
    found: list[Row] = []
    for v in versions:
        while ahead is not None and ahead["seq"] < v["seq"]:
            met[ahead["agent"]][ahead["artifact_id"], ahead["version"]] = ahead["seq"]
            ahead = next(meetings, None)
        known = met[v["author_id"]] if v["author_id"] is not None else {}
        if v["kind"] == "artifact_modified":
            before = texts.get((v["artifact_id"], v["parent_version"]))
            if before:
                found.append(_edge(v, before, "version", 1.0, [before["seq"], v["seq"]]))
        else:
            found += _inspired(v, known, texts)
        if v["author_id"] is not None:
            met[v["author_id"]][v["artifact_id"], v["version"]] = v["seq"]
    return found


def _inspired(v: Row, known: dict[tuple[int, int], int], texts: dict[tuple[int, int], Row]) -> list[Row]:
    """The text it most resembles among those that its author had met, if that is enough."""
    recent = sorted(known.items(), key=lambda item: -item[1])[:RECENT]
    scored = [(similarity(v["text"], texts[k]["text"]), seq, texts[k]) for k, seq in recent if k in texts]
    best = max(scored, key=lambda s: (s[0], s[1]), default=None)
    if best is None or best[0] < SIMILAR:
        return []
    return [_edge(v, best[2], "inspired", best[0], [best[1], v["seq"]])]


def _edge(child: Row, parent: Row, kind: str, confidence: float, evidence: list[int]) -> Row:
    return {
        "child": child["artifact_id"],
        "child_version": child["version"],
        "parent": parent["artifact_id"],
        "parent_version": parent["version"],
        "kind": kind,
        "confidence": confidence,
        "instrument": "record" if kind == "version" else "lexical similarity",
        "tick": child["tick"],
        "evidence": sorted(set(evidence)),
    }


def scores(con: DuckDBPyConnection) -> list[Row]:
    """For each version: novelty 0 to 5 against all texts before it, complexity, and its class."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for v in rows(con, VERSIONS):
        mine = pairs(v["text"])
        novelty = round(5 * len(mine - seen) / len(mine)) if mine else 0
        seen |= mine
        found.append(
            {
                **{k: v[k] for k in ("artifact_id", "version", "seq", "tick", "author_id")},
                "novelty": novelty,
                **complexity(v["text"]),
                "class": kind_of(v["text"]),
            }
        )
    return found


def complexity(text: str) -> Row:
    """Bytes, bytes after deflate, their ratio, different words per word, and how deeply clauses nest."""
    raw = text.encode("utf-8", "replace")
    packed = len(zlib.compress(raw, 9))
    found = words(text)
    sentences = re.split(r"[.!?]+", text)
    depth = max(1 + len(re.findall(r"[,;:(]|\b(?:that|which|because|if|when|who|while)\b", s)) for s in sentences)
    return {
        "bytes": len(raw),
        "compressed": packed,
        "ratio": packed / len(raw) if raw else 0.0,
        "richness": len(set(found)) / len(found) if found else 0.0,
        "depth": depth,
    }


def kind_of(text: str) -> str:
    """Its cultural class: the one for which most of its words speak.

    >>> kind_of("All must share. Never steal."), kind_of("Food in the north")
    ('norms and governance', 'informational')
    """
    count = Counter(words(text))
    votes = {name: sum(count[w] for w in set(signs)) for name, signs in CLASSES.items()}
    best = max(votes, key=lambda name: votes[name])
    return best if votes[best] else "informational"


__all__ = ["complexity", "kind_of", "lineages", "scores", "similarity"]

"""The audit: an annotation stands only if the events it cites exist, are of its subject and its time, and show it.

No model takes part. What a second model says may lower confidence and never raise it, nor add evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from duckdb import DuckDBPyConnection

from ethnos.analytics.asking import Row, rows
from ethnos.analytics.study.annotation import Annotation
from ethnos.analytics.study.codebook import MOST_EVIDENCE, Codebook, shown
from ethnos.analytics.study.lifelog import concerns

CITED = "SELECT seq, tick, kind, agent_id, target_id, actor_id FROM events WHERE seq IN (SELECT unnest($seqs))"


def audited(con: DuckDBPyConnection, book: Codebook, found: Sequence[Annotation]) -> list[Annotation]:
    """The same annotations, each accepted or rejected with the reason."""
    seqs = sorted({s for a in found for s in a.evidence if 0 <= s < 2**62})
    events = {r["seq"]: r for r in rows(con, CITED, {"seqs": seqs})} if seqs else {}
    return [_judged(con, book, events, a) for a in found]


def _judged(con: DuckDBPyConnection, book: Codebook, events: Mapping[int, Row], a: Annotation) -> Annotation:
    why = _objection(con, book, events, a)
    return replace(a, accepted=False, why=why) if why else a


def _objection(con: DuckDBPyConnection, book: Codebook, events: Mapping[int, Row], a: Annotation) -> str:
    code = book.named(a.code)
    if code is None or code.subject != a.subject:
        return "the codebook has no such code for this kind of subject"
    if not 1 <= len(a.evidence) <= MOST_EVIDENCE:
        return f"it cites {len(a.evidence)} events"
    if lost := [s for s in a.evidence if s not in events]:
        return f"there is no event {lost[0]}"
    cited = [events[s] for s in a.evidence]
    if late := [e for e in cited if not a.first <= e["tick"] <= a.last]:
        return f"event {late[0]['seq']} is of tick {late[0]['tick']}, outside {a.first} to {a.last}"
    who = set(a.members)
    strange = [e["seq"] for e in cited if not who & {e["agent_id"], e["target_id"], e["actor_id"]}]
    if strange:
        seen = {seq for _, seq in concerns(con, a.members, strange, a.first, a.last)}
        if outside := [s for s in strange if s not in seen]:
            return f"event {outside[0]} is not in the subject's log"
    if code.needs and not shown(code.needs, a.members, cited, inside=a.subject == "community"):
        return f"the cited events do not show what {a.code} needs"
    return ""


def doubted(a: Annotation, confidence: float, why: str = "") -> Annotation:
    """After a second opinion: the lower confidence counts, and nothing else changes."""
    lower = max(0.0, min(a.confidence, confidence))
    return replace(a, confidence=lower, why=why if lower < a.confidence else a.why)


__all__ = ["audited", "doubted"]

"""Annotations: a code for a life, or for a community, with the events that support it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from ethnos.analytics.study.codebook import MOST_EVIDENCE


@dataclass(frozen=True)
class Subject:
    """Whom an annotation is about."""

    kind: str
    """agent or community."""
    id: int
    members: tuple[int, ...]
    window: int


@dataclass(frozen=True)
class Annotation:
    """One claim of one coder. `note` is a model's words where the coder is a model: untrusted."""

    subject: str
    subject_id: int
    members: tuple[int, ...]
    window: int
    code: str
    first: int
    last: int
    evidence: tuple[int, ...]
    confidence: float
    note: str
    coder: str
    """scripted, or model-1, model-2, ..."""
    instrument: str
    """rule or model."""
    model: str
    prompt: str
    """Digest of the prompt; empty where there was none."""
    codebook: str
    accepted: bool = True
    why: str = ""
    """Why the audit rejected it, or lowered its confidence."""

    @property
    def id(self) -> str:
        """The same for the same claim, however often it is made."""
        parts = (self.subject, self.subject_id, self.window, self.code, self.evidence, self.coder, self.model)
        return blake2b(repr((*parts, self.prompt, self.codebook)).encode("utf-8", "replace"), digest_size=8).hexdigest()

    def row(self) -> dict[str, Any]:
        """As it is stored."""
        kept = {k: list(v) if isinstance(v, tuple) else v for k, v in self.__dict__.items()}
        return {"annotation": self.id, **kept}


def merged(found: Iterable[Annotation]) -> list[Annotation]:
    """What overlapping windows say of the same agent, made one where they share evidence."""
    groups: defaultdict[tuple[Any, ...], list[Annotation]] = defaultdict(list)
    for a in found:
        where = a.window if a.subject == "community" else -1
        key = (a.subject, a.subject_id, where, a.code, a.coder, a.model, a.codebook, a.accepted)
        groups[key].append(a)
    return [one for group in groups.values() for one in _chain(sorted(group, key=lambda a: (a.first, a.last)))]


def _chain(group: list[Annotation]) -> list[Annotation]:
    """Two say the same if they are of different windows and share an event."""
    kept: list[Annotation] = []
    latest: dict[int, int] = {}
    for a in group:
        same = next((latest[s] for s in a.evidence if s in latest and kept[latest[s]].window != a.window), None)
        if same is None:
            same = len(kept)
            kept.append(a)
        else:
            before = kept[same]
            evidence = tuple(sorted({*before.evidence, *a.evidence}))[:MOST_EVIDENCE]
            sure = min(before.confidence, a.confidence)
            first, last = min(before.first, a.first), max(before.last, a.last)
            kept[same] = replace(before, first=first, last=last, evidence=evidence, confidence=sure)
        latest |= dict.fromkeys(a.evidence, same)
    return kept


__all__ = ["Annotation", "Subject", "merged"]

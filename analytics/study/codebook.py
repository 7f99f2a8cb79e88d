"""Codebooks: what annotations may say, and what the events cited for each have to show."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ethnos.analytics.asking import Row
from ethnos.errors import QueryError

SHIPPED = Path(__file__).with_name("codebook.yaml")
MOST_EVIDENCE = 200
"""`seq` numbers that one annotation cites at most."""


class Needs(BaseModel):
    """What the evidence has to show, all of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kinds: Annotated[list[str], Field(min_length=1)]
    """Of events that count."""
    role: Literal["agent", "target", "either"] = "either"
    """As what the subject is in them: `agent_id` or `target_id`."""
    at_least: Annotated[int, Field(ge=1, le=100)] = 1
    others: Annotated[int, Field(ge=0, le=100)] = 0
    """So many different others."""
    both_ways: bool = False
    """With one other, in both roles."""


class Code(BaseModel):
    """One thing to look for."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{1,40}$")]
    family: Literal["event", "behaviour", "emergence"]
    meaning: Annotated[str, Field(min_length=3, max_length=400)]
    subject: Literal["agent", "community"] = "agent"
    needs: Needs | None = None


class Codebook(BaseModel):
    """All codes, and the version by which annotations name them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Annotated[str, Field(min_length=1, max_length=40)]
    codes: Annotated[list[Code], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _distinct(self) -> "Codebook":
        names = [c.name for c in self.codes]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"codes that are there twice: {', '.join(twice)}")
        return self

    @property
    def digest(self) -> str:
        """Of everything it says."""
        return blake2b(self.model_dump_json().encode(), digest_size=8).hexdigest()

    @property
    def id(self) -> str:
        """Version and digest: what annotations are filed under."""
        return f"{self.version}-{self.digest}"

    def named(self, name: str) -> Code | None:
        """The code of this name."""
        return next((c for c in self.codes if c.name == name), None)


def read(path: Path = SHIPPED) -> Codebook:
    """A codebook from a YAML file. Raises QueryError with everything that is wrong with it."""
    try:
        return Codebook.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except OSError as error:
        raise QueryError(f"cannot read the codebook {path}: {error.strerror}") from None
    except (ValidationError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise QueryError(f"{path} is no codebook: {error}") from None


def shown(needs: Needs, members: Iterable[int], events: Iterable[Row], *, inside: bool = False) -> bool:
    """Whether these events show what a code needs of an agent (one member) or of a community (`inside`)."""
    who = set(members)
    count, others = 0, set()
    ways: defaultdict[int, set[str]] = defaultdict(set)
    for e in events:
        if e["kind"] not in needs.kinds:
            continue
        roles = {r for r, c in (("agent", "agent_id"), ("target", "target_id")) if e[c] in who}
        roles &= {"agent", "target"} if needs.role == "either" else {needs.role}
        if not roles or (inside and not {e["agent_id"], e["target_id"]} <= who):
            continue
        count += 1
        for role in roles:
            other = e["target_id" if role == "agent" else "agent_id"]
            if other is not None:
                others.add(other)
                ways[other].add(role)
    mutual = any(len(w) == 2 for other, w in ways.items() if inside or other not in who)
    return count >= needs.at_least and len(others) >= needs.others and (mutual or not needs.both_ways)


__all__ = ["MOST_EVIDENCE", "SHIPPED", "Code", "Codebook", "Needs", "read", "shown"]

"""What a study wrote: Parquet tables in a run's folder `study/`, beside the record, which they do not touch."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ethnos.errors import RecordDamaged, RunError
from ethnos.record.directory import RunDirectory, put_in_place

_I, _F, _S, _B = pa.int64(), pa.float64(), pa.string(), pa.bool_()
_L = pa.list_(pa.int64())


def _schema(meaning: str, **columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(n, t) for n, t in columns.items()], metadata={"meaning": meaning})


STUDIED: dict[str, pa.Schema] = {
    "annotations": _schema(
        "What coders claim of agents and communities, with the events that support it.",
        annotation=_S, subject=_S, subject_id=_I, members=_L, window=_I, code=_S, first=_I, last=_I, evidence=_L,
        confidence=_F, note=_S, coder=_S, instrument=_S, model=_S, prompt=_S, codebook=_S, accepted=_B, why=_S,
    ),
    "edges": _schema(
        "Who had to do with whom, per window and kind of event.",
        window=_I, source=_I, target=_I, kind=_S, weight=_F, n=_I, first_seq=_I, last_seq=_I,
    ),
    "communities": _schema("Who belonged together, per window.", window=_I, method=_S, community=_I, agent=_I),
    "lineages": _schema(
        "Which text came of which: exact where kind is version, else inferred.",
        child=_I, child_version=_I, parent=_I, parent_version=_I, kind=_S, confidence=_F, instrument=_S, tick=_I,
        evidence=_L,
    ),
    "scores": _schema(
        "Novelty, complexity and class of each version of a text.",
        artifact_id=_I, version=_I, seq=_I, tick=_I, author_id=_I, novelty=_I, bytes=_I, compressed=_I, ratio=_F,
        richness=_F, depth=_I, **{"class": _S},
    ),
    "agreement": _schema("Krippendorff's alpha of the coders, per code.", code=_S, coders=_I, units=_I, alpha=_F),
    "findings": _schema(
        "What the report claims, with the events behind each claim.",
        finding=_S, topic=_S, tick=_I, claim=_S, sure=_F, instrument=_S, evidence=_L,
    ),
}  # fmt: skip
"""The tables by name."""


def folder(run: RunDirectory) -> Path:
    """Where a run's study is."""
    return run.path / "study"


def write(path: Path, table: str, rows: Sequence[Mapping[str, Any]], notes: Mapping[str, str] | None = None) -> None:
    """Write one table: readers see the old one or the new one. Raises RunError."""
    schema = STUDIED[table]
    schema = schema.with_metadata({**(schema.metadata or {}), **(notes or {})})
    aside = path.with_name(f".{path.name}.aside")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([dict(r) for r in rows], schema=schema), aside, compression="zstd")
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        put_in_place(aside, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def read(path: Path, table: str) -> list[dict[str, Any]]:
    """The rows of one file. Raises RecordDamaged."""
    return list(_table(path, table).to_pylist())


def notes(path: Path) -> dict[str, str]:
    """What was noted when a file was written; nothing if there is none."""
    if not path.is_file():
        return {}
    try:
        found = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise RecordDamaged(f"{path}: {error}") from None
    return {k.decode(): v.decode() for k, v in found.items() if not k.startswith(b"ARROW")}


def studied_table(run: RunDirectory, table: str) -> pa.Table | None:
    """One table of a run's study, if there is one that can be read: a study can be made again, and blocks no reader."""
    path = folder(run) / f"{table}.parquet"
    try:
        return _table(path, table) if path.is_file() else None
    except RecordDamaged:
        return None


def _table(path: Path, table: str) -> pa.Table:
    schema = STUDIED[table]
    try:
        return pq.read_table(path, columns=schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise RecordDamaged(f"{path}: {error}") from None


__all__ = ["STUDIED", "folder", "notes", "read", "studied_table", "write"]

"""`ethnos sql`: questions to one or more runs."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ethnos.cli.output import print_line, print_table, safe
from ethnos.errors import EthnosError, QueryError
from ethnos.record.directory import find_all, is_pattern
from ethnos.record.reader import connect, stream_query


@dataclass(frozen=True)
class Form:
    """How an answer is wanted: as a table, unless one of the others is set."""

    limit: int = 50
    csv: bool = False
    json: bool = False
    parquet: Path | None = None
    force: bool = False


def ask(names: list[str], query: str, form: Form) -> None:
    """Answer one query. Several runs, or a pattern, give all tables a column `run`."""
    runs = find_all(names)
    several = len(runs) > 1 or any(is_pattern(n) for n in names)
    with connect(*runs, run_column=several) as con:
        con.execute("SET python_enable_replacements = false")
        schema, batches = stream_query(con, query)
        answer(schema, batches, form)


def answer(schema: pa.Schema, batches: Iterator[pa.RecordBatch], form: Form) -> None:
    """Print or write rows in the form that is wanted."""
    if form.parquet is not None:
        write_parquet(schema, batches, form.parquet, force=form.force)
    elif form.csv:
        write_csv(schema, batches)
    elif form.json:
        write_json(schema, batches)
    else:
        write_table(schema, batches, form.limit)


def write_table(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limit: int) -> None:
    """The first rows; no more are computed than are shown."""
    rows = list(islice(_rows(batches), limit + 1))
    numeric = [f.name for f in schema if _is_number(f.type)]
    print_table(schema.names, rows[:limit], right=numeric)
    if len(rows) > limit:
        print_line(f"The first {limit} rows. --limit shows more; --csv, --json and --parquet give all.")
    else:
        print_line(f"{len(rows)} row{'s' * (len(rows) != 1)}")


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """All rows as CSV; on a terminal without what could steer it."""
    tame = sys.stdout.isatty()
    sys.stdout.flush()
    if not all(_is_flat(f.type) for f in schema) or tame or not hasattr(sys.stdout, "buffer"):
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(schema.names)
        for row in _rows(batches):
            writer.writerow(safe(_cell(v)) if tame else _cell(v) for v in row)
        return
    with pa.csv.CSVWriter(sys.stdout.buffer, schema, write_options=_CSV) as fast:
        for batch in batches:
            fast.write_batch(batch)


_CSV = pa.csv.WriteOptions(quoting_style="needed", quoting_header="needed")


def write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """All rows as one object, written row by row."""
    names = _distinct(schema.names)
    columns = [{"name": n, "type": str(f.type)} for n, f in zip(names, schema, strict=True)]
    out = sys.stdout
    out.write(f'{{"columns": {json.dumps(columns)},\n "rows": [')
    for i, row in enumerate(_rows(batches)):
        out.write(",\n  " if i else "\n  ")
        out.write(json.dumps(dict(zip(names, row, strict=True)), allow_nan=False))
    out.write("]}\n")


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path, *, force: bool) -> None:
    """All rows to a file that is whole or not there."""
    if path.exists() and not force:
        raise EthnosError(f"{path} exists; --force overwrites it")
    aside = path.with_name(f".{path.name}.aside")
    count = 0
    try:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
                count += batch.num_rows
        aside.rename(path)
    except pa.ArrowException as error:
        raise QueryError(f"Parquet cannot hold this result: {error}") from None
    finally:
        aside.unlink(missing_ok=True)
    print_line(f"{path}: {count} rows", error=True)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Any]]:
    """Rows of plain values, as JSON has them."""
    for batch in batches:
        columns = [[plain(v) for v in column.to_pylist()] for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))


def plain(value: Any) -> Any:
    """A value as JSON has it: whole numbers stay whole, what is no number is null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list | bool) else str(value)


def _distinct(names: list[str]) -> list[str]:
    """Names of which none is there twice: SQL allows it, an object's keys do not."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_flat(kind: pa.DataType) -> bool:
    """Whether Arrow's CSV writer takes it as it is."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind))

"""Small tables, pieces and engines for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from frazil.hot import Piece, SharedLocation, SharedMemory
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.scan.table_rows import PiecePart
from frazil.settings import QueryConfig

BEGIN_US = 1_790_000_000_000_000
"""2026-09-21 14:13:20 UTC, the time of the first rows."""

_BLANK: dict[str, Any] = {
    "int32": 0,
    "int64": 0,
    "string": "",
    "timestamp[us, tz=UTC]": 0,
    "binary": b"",
}


class Exactly:
    """An exact filter; a bloom filter may also return true for values that are missing."""

    def __init__(self, values: Sequence[str | None]) -> None:
        self._values = frozenset(values)

    def may_hold(self, value: str) -> bool:
        return value in self._values


def batch_of(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return rows of a table; missing columns are null or blank."""
    columns = []
    for field in TABLES[table]:
        blank: Any = None if field.nullable else _BLANK.get(str(field.type), [])
        values = [row.get(field.name, blank) for row in rows]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=TABLES[table])


def piece_of(table: str, rows: Sequence[Mapping[str, Any]], *, is_known: bool = True) -> Piece:
    """Return rows as a piece, with all statistics or none."""
    batch = batch_of(table, rows)
    name = "open"
    if not is_known or not rows:
        return Piece(name=name, batches=(batch,), row_count=batch.num_rows)
    times = batch.column("time").cast(pa.int64()).to_pylist()
    has_ids = "trace_id" in batch.schema.names
    has_services = "service_name" in batch.schema.names
    return Piece(
        name=name,
        batches=(batch,),
        row_count=batch.num_rows,
        time_min_us=min(times),
        time_max_us=max(times),
        services=frozenset(batch.column("service_name").to_pylist()) if has_services else None,
        filters={
            column: Exactly(batch.column(column).to_pylist())
            for column in (("trace_id", "span_id") if has_ids else ())
        },
    )


def part_of(table: str, rows: Sequence[Mapping[str, Any]]) -> PiecePart:
    """Return rows as a worker sees them."""
    piece = piece_of(table, rows)
    return PiecePart(
        batches=piece.batches,
        row_count=piece.row_count,
        time_min_us=piece.time_min_us,
        time_max_us=piece.time_max_us,
    )


def shared(piece: Piece, times: int = 1) -> Piece:
    """Return the rows in memory that other processes map, as the hot tier has them; many times, if
    a query shall take long."""
    memory = SharedMemory()
    added = [memory.add(batch) for batch in piece.batches]
    return replace(
        piece,
        batches=tuple(batch for batch, _ in added) * times,
        row_count=piece.row_count * times,
        location=SharedLocation(
            memory=memory, extents=tuple(extent for _, extent in added) * times
        ),
    )


def log(at: int, **more: Any) -> dict[str, Any]:
    """Return a log record, `at` seconds after `BEGIN_US`."""
    time_us = BEGIN_US + at * 1_000_000
    return {
        "_offset": at,
        "time": time_us,
        "time_unix_nano": time_us * 1000,
        "service_name": "web",
        "severity_number": 9,
        "body": f"line {at}",
        "body_type": "string",
        **more,
    }


class FixedClock(SystemClock):
    """One hour after `BEGIN_US`."""

    def wall_ms(self) -> int:
        return BEGIN_US // 1000 + 3_600_000


@contextmanager
def engine_over(
    pieces: Mapping[str, Sequence[Piece]], config: QueryConfig | None = None
) -> Iterator[Engine]:
    shown = {table: tuple(some) for table, some in pieces.items()}
    with Engine.open(lambda: shown, TABLES, config or QueryConfig(), FixedClock()) as engine:
        yield engine

"""Rows of every shape for the tests of the lake's files, and how to read them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.disk import Disk
from frazil.lake.files.writer import WrittenFile
from frazil.model import Signal
from frazil.model.arrow import TABLES, DeadLetter, ExportRequest, decode
from tests.model.arrow.requests import Writer
from tests.sim.disk import SimDisk

SIGNALS = ("logs", "traces", "metrics")


def bodies(signal: str, seed: int, count: int) -> list[bytes]:
    """Return random requests with many edge cases."""
    writer = Writer(Random(seed), wildness=0.2)
    return [writer.request(signal) for _ in range(count)]


def requests_of(signal: str, seed: int, count: int) -> list[ExportRequest]:
    return [
        ExportRequest(
            partition=3, offset=n, ingest_time_ms=1_700_000_000_000 + n * 40_000_000, body=body
        )
        for n, body in enumerate(bodies(signal, seed, count))
    ]


def decoded(
    signal: str, requests: Sequence[ExportRequest]
) -> tuple[pa.RecordBatch, list[DeadLetter]]:
    """Return the rows and dead letters of requests, decoded one by one."""
    parts = [decode(signal, [request]) for request in requests]
    schema = TABLES[Signal(signal).table]
    rows = pa.Table.from_batches([part.batch for part in parts], schema).combine_chunks()
    (batch,) = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return batch, [letter for part in parts for letter in part.dead]


def opened(disk: Disk, file: WrittenFile) -> pq.ParquetFile:
    """Open a written file with PyArrow's own reader."""
    if isinstance(disk, SimDisk):
        return pq.ParquetFile(
            pa.BufferReader(disk.data(file.path)), page_checksum_verification=True
        )
    handle = disk.open(file.path)
    try:
        data = handle.read(0, handle.size())
    finally:
        handle.close()
    return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)


def rows_of(table: pa.Table | pa.RecordBatch) -> Iterator[str]:
    """Return each row as text that shows every bit: -0.0 is not 0.0, and NaN equals NaN."""
    columns = [plain(table.column(name)) for name in table.column_names]
    for row in zip(*columns, strict=True):
        yield repr(row)


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def multiset(tables: Iterable[pa.Table | pa.RecordBatch]) -> Counter[str]:
    return Counter(row for table in tables for row in rows_of(table))

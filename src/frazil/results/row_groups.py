"""Rows in groups of a good size for a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from frazil.results.result import Result

GROUP_ROWS: Final = 128 * 1024
GROUP_BYTES: Final = 64 * 1024 * 1024
"""Size in memory."""


def row_groups(result: Result) -> Iterator[pa.Table]:
    """Yield the rows in tables of at least GROUP_ROWS rows or GROUP_BYTES bytes."""
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in result:
        batches.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(batches, result.schema)
            batches, rows, size = [], 0, 0
    if batches:
        yield pa.Table.from_batches(batches, result.schema)

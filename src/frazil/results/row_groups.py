"""Rows in groups of a good size for a Parquet file: neither many small ones, nor all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from frazil.results.result import Result

GROUP_ROWS: Final = 128 * 1024
GROUP_BYTES: Final = 64 * 1024 * 1024
"""Of rows in memory."""


def row_groups(result: Result) -> Iterator[pa.Table]:
    """The rows as they come, some thousands at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in result:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(waiting, result.schema)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, result.schema)

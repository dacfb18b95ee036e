"""The `copy_history` table: which files the tables of the lake were loaded from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from frazil.lake import LakeView

COPY_HISTORY_SCHEMA = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("uri", pa.string(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("errors", pa.int64(), nullable=False),
        pa.field("first_error", pa.string()),
        pa.field("first_error_line", pa.int64()),
        pa.field("loaded_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("commit_id", pa.string(), nullable=False),
    ]
)


def copy_history_of(lake: LakeView | None) -> pa.RecordBatch:
    """Return one row per loaded or skipped file, in commit order of each table."""
    parts = [
        ledger.add_column(0, "table_name", pa.array([name] * ledger.num_rows, pa.string()))
        for name, ledger in (() if lake is None else lake.load_history())
    ]
    if not parts:
        return pa.RecordBatch.from_pylist([], COPY_HISTORY_SCHEMA)
    rows = pa.concat_tables(part.cast(COPY_HISTORY_SCHEMA) for part in parts).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in rows.columns], schema=COPY_HISTORY_SCHEMA
    )

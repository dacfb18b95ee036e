"""Like rows of a file of the lake, counted by the engine."""

from __future__ import annotations

import pyarrow as pa
from datafusion import col, functions, lit

from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.count_rewrite import ROW_COUNT
from frazil.query.plan.session import open_session
from frazil.query.scan.parquet_scan import ParquetScan, check_there, cold_frame

DIFFERENT_MAX = 4096
"""With more different rows than that in a file, adding up their numbers is no quicker."""
MEMORY_BYTES_MAX = 64 * 1024 * 1024
"""What a count may take; with more it is given up, and the query does without."""


def count_file(
    schema: pa.Schema, scan: ParquetScan, columns: tuple[str, ...]
) -> pa.RecordBatch | None:
    """One row for each different row, with how many there are; None when they are too many."""
    session = open_session(MEMORY_BYTES_MAX, SingleQueryContext(0))
    frame = cold_frame(session, schema, scan, "count")
    counted = frame.aggregate(
        [col(f'"{name}"') for name in columns], [functions.count(lit(1)).alias(ROW_COUNT)]
    )
    try:
        batches = counted.limit(DIFFERENT_MAX + 1).collect()
    except Exception:  # noqa: BLE001 # top of loop: the query itself meets it again, and tells
        return None
    check_there([scan])
    rows = pa.Table.from_batches(batches, counted.schema())
    if rows.num_rows > DIFFERENT_MAX:
        return None
    fields = [pa.field(name, schema.field(name).type) for name in columns]
    whole = rows.cast(pa.schema([*fields, pa.field(ROW_COUNT, pa.int64())])).combine_chunks()
    (batch,) = whole.to_batches() or [pa.RecordBatch.from_pylist([], whole.schema)]
    return batch

"""Distinct rows of a data file with their counts, computed by DataFusion."""

from __future__ import annotations

import pyarrow as pa
from datafusion import col, functions, lit

from frazil.model import MiB
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.count_rewrite import ROW_COUNT
from frazil.query.plan.session import open_session
from frazil.query.scan.parquet_scan import check_files_exist, parquet_frame
from frazil.query.scan.table_rows import ParquetScan

DISTINCT_MAX = 4096
"""With more distinct rows in a file, adding up their counts is no faster than counting rows."""
MEMORY_BYTES_MAX = 64 * MiB
"""Memory of one count; if it needs more, the query runs without counts."""


def count_file(
    schema: pa.Schema, scan: ParquetScan, columns: tuple[str, ...]
) -> pa.RecordBatch | None:
    """Return the distinct rows with their counts; None if they are too many."""
    session = open_session(MEMORY_BYTES_MAX, SingleQueryContext(0))
    frame = parquet_frame(session, schema, scan, "count")
    counted = frame.aggregate(
        [col(f'"{name}"') for name in columns], [functions.count(lit(1)).alias(ROW_COUNT)]
    )
    try:
        batches = counted.limit(DISTINCT_MAX + 1).collect()
    except Exception:  # noqa: BLE001 # top of loop: the query itself will raise it
        return None
    check_files_exist([scan])
    rows = pa.Table.from_batches(batches, counted.schema())
    if rows.num_rows > DISTINCT_MAX:
        return None
    fields = [pa.field(name, schema.field(name).type) for name in columns]
    table = rows.cast(pa.schema([*fields, pa.field(ROW_COUNT, pa.int64())])).combine_chunks()
    (batch,) = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return batch

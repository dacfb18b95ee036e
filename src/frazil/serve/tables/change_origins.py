"""When changes were written, and by whom."""

from __future__ import annotations

import pyarrow as pa

from frazil.tables import KeyedTables


def with_origins(
    tables: KeyedTables, name: str, partition: int, changes: pa.RecordBatch
) -> pa.RecordBatch:
    """Add to changes of a partition when each was written, as `_time`, and by whom, as `_by`; null
    if the log no longer has it."""
    origins = tables.origins_at(name, partition, changes["_offset"].to_pylist())
    times = [None if origin is None else origin.time_ms for origin in origins]
    by = [None if origin is None else origin.by for origin in origins]
    return changes.append_column("_time", pa.array(times, pa.timestamp("ms", "UTC"))).append_column(
        "_by", pa.array(by, pa.string())
    )

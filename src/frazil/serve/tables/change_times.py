"""When changes were written."""

from __future__ import annotations

import pyarrow as pa

from frazil.tables import KeyedTables


def with_times(
    tables: KeyedTables, name: str, partition: int, changes: pa.RecordBatch
) -> pa.RecordBatch:
    """Add when each change of a partition was written, as `_time`; null if the log no longer has
    it."""
    times = tables.times_at(name, partition, changes["_offset"].to_pylist())
    return changes.append_column("_time", pa.array(times, pa.timestamp("ms", "UTC")))

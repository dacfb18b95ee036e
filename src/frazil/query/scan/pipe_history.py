"""The `pipe_history` table: runs of pipes, and how each ended."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from frazil.definitions import PipeRun

PIPE_HISTORY_SCHEMA = pa.schema(
    [
        pa.field("pipe", pa.string(), nullable=False),
        pa.field("run_id", pa.int64(), nullable=False),
        pa.field("attempt", pa.int64(), nullable=False),
        pa.field("trigger", pa.string(), nullable=False),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("started_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("ended_at", pa.timestamp("us", tz="UTC")),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("errors", pa.int64(), nullable=False),
        pa.field("message", pa.string()),
    ]
)


_SAME = frozenset(PIPE_HISTORY_SCHEMA.names) - {"table_name", "message"}


def pipe_history_of(runs: Iterable[PipeRun]) -> pa.RecordBatch:
    """Return one row per attempt."""
    rows = [
        {
            **{name: getattr(run, name) for name in _SAME},
            "table_name": run.table,
            "message": run.message or None,
        }
        for run in runs
    ]
    return pa.RecordBatch.from_pylist(rows, PIPE_HISTORY_SCHEMA)

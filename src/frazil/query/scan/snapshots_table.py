"""The `snapshots` table: all snapshots of all lake tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.model import TopicPartition

if TYPE_CHECKING:
    from frazil.lake import SnapshotInfo, TablesView, TableView
    from frazil.model import TopicPartition

SNAPSHOTS_SCHEMA = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("parent_id", pa.int64()),
        pa.field("committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("added_rows", pa.int64()),
        pa.field("total_rows", pa.int64()),
        pa.field("total_files", pa.int64()),
        pa.field("offsets", pa.string()),
        pa.field("tags", pa.string()),
    ]
)
US_PER_MS = 1000


def snapshots_of(view: TablesView | None) -> pa.RecordBatch:
    """Return one row per snapshot, in commit order."""
    tables = () if view is None else view.tables.values()
    rows = [_row(table, snapshot) for table in tables for snapshot in table.snapshots]
    return pa.RecordBatch.from_pylist(rows, SNAPSHOTS_SCHEMA)


def _row(table: TableView, snapshot: SnapshotInfo) -> dict[str, Any]:
    tags = sorted(tag for tag, tagged in table.tags.items() if tagged == snapshot.snapshot_id)
    return {
        "table_name": table.name,
        "snapshot_id": snapshot.snapshot_id,
        "parent_id": snapshot.parent_id,
        "committed_at": snapshot.committed_ms * US_PER_MS,
        "operation": snapshot.operation,
        "added_rows": snapshot.added_rows,
        "total_rows": snapshot.total_rows,
        "total_files": snapshot.total_files,
        "offsets": None if snapshot.offsets is None else _text(snapshot.offsets),
        "tags": ", ".join(tags) or None,
    }


def _text(offsets: Mapping[TopicPartition, int]) -> str:
    """Return JSON such as `{"otlp_logs": {"0": 1200}}`, as in the table's properties."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(nested)

"""The `statement_audit` table: who sent which statement, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from frazil.definitions import AuditEntry

AUDIT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("who", pa.string(), nullable=False),
        pa.field("head", pa.string(), nullable=False),
        pa.field("statement", pa.string(), nullable=False),
        pa.field("outcome", pa.string()),
        pa.field("message", pa.string()),
        pa.field("duration_ms", pa.int64()),
    ]
)


def audit_of(entries: Iterable[AuditEntry]) -> pa.RecordBatch:
    """Return one row per statement. One that runs, or that a crash interrupted, has no outcome."""
    rows = [
        {
            "id": entry.id,
            "time": entry.time,
            "who": entry.who,
            "head": entry.head,
            "statement": entry.statement,
            "outcome": entry.outcome or None,
            "message": entry.message or None,
            "duration_ms": entry.duration_ms if entry.outcome else None,
        }
        for entry in entries
    ]
    return pa.RecordBatch.from_pylist(rows, AUDIT_SCHEMA)

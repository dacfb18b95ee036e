"""Reads batches of the log as requests for the decoder."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.log import StoredBatch
from frazil.model.arrow import ExportRequest


def requests_of(
    batches: Iterable[StoredBatch], partition: int, begin: int, end: int
) -> list[ExportRequest]:
    """Return the requests of the offsets [begin, end), without control batches."""
    return [
        ExportRequest(
            partition=partition,
            offset=record.offset,
            ingest_time_ms=record.timestamp_ms,
            body=record.value or b"",
        )
        for batch in batches
        if not batch.header.is_control
        for record in batch.records()
        if begin <= record.offset < end
    ]

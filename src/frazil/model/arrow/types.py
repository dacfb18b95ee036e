"""Input and output of the decoder: requests, rows, dead letters."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """One OTLP export request, as stored in the log."""

    partition: int
    offset: int
    ingest_time_ms: int
    """When the log received it, since 1970."""
    body: bytes
    """An Export…ServiceRequest in protobuf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A request, or one of its records, that could not become rows, and why."""

    partition: int
    offset: int
    row: int | None
    """Index of the record in the request; None for the whole request."""
    reason: str
    payload: bytes
    """The bytes of the request, or of the record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """The rows of requests, in their order, and the dead letters."""

    batch: pa.RecordBatch
    dead: list[DeadLetter]
    saved_bytes: int = 0
    """How much larger the batch would be without dictionaries."""

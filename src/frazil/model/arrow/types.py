"""What goes into a decoder and what comes out: requests, rows, dead letters."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """One OTLP export request as the log holds it."""

    partition: int
    offset: int
    ingest_time_ms: int
    """When the log took it in, since 1970."""
    body: bytes
    """An Export…ServiceRequest, as protobuf writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A request, or one record of it, that could not become rows, and why."""

    partition: int
    offset: int
    row: int | None
    """Place of the record inside the request; None when all of the request is meant."""
    reason: str
    payload: bytes
    """The bytes of the request, or those of the one record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoded:
    """The rows of some requests, in their order, and what could not become rows."""

    batch: pa.RecordBatch
    dead: list[DeadLetter]
    saved_bytes: int = 0
    """What the batch would have more if no number stood for a text."""

"""Piece: rows of one table that are kept together, and what is known of them without looking.

A sealed segment gives one piece per table and schema; what is still open, one per table. Pieces
are immutable, so a query that holds some of them sees one moment, however long it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa


class Filter(Protocol):
    """Tells values that are certainly not there from those that may be."""

    def may_hold(self, value: str) -> bool: ...


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Piece:
    """Some rows, in the order of the log."""

    name: str
    """The file they are in, or `open`; for people who ask what was read."""
    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    time_min_us: int | None = None
    time_max_us: int | None = None
    """Bounds of the column `time`; None when there are no rows."""
    services: frozenset[str] | None = None
    """All values of `service_name`; None when they are too many to know."""
    filters: Mapping[str, Filter] = field(default_factory=dict)
    """By column: trace_id, span_id."""
    topic: str = ""
    partition: int = 0
    offset_begin: int = 0
    offset_end: int = 0
    """The offsets of the log that these rows come from, the end exclusive."""

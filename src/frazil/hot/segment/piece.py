"""Piece: rows of one table, with statistics to prune them.

A sealed segment has one piece per table and schema, an open segment one per table. Pieces are
immutable, so a query that holds them sees one moment, however long it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from frazil.hot.segment.shared_memory import Extent, SharedMemory


class Filter(Protocol):
    """Tells which values are certainly absent."""

    def may_hold(self, value: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedLocation:
    """Where another process finds the rows of a sealed segment."""

    path: str
    stream: int
    check: int
    """CRC32C of the footer: a file that took the name later has another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLocation:
    """Where another process finds rows of an open segment: the first batches of its piece. The
    others are small, and in no shared memory."""

    memory: SharedMemory
    extents: tuple[Extent, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Piece:
    """Rows of one table, in log order."""

    name: str
    """Path of the file, or `open`; for display."""
    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    time_min_us: int | None = None
    time_max_us: int | None = None
    """Bounds of the column `time`; None without rows."""
    services: frozenset[str] | None = None
    """All values of `service_name`; None if there are too many."""
    filters: Mapping[str, Filter] = field(default_factory=dict)
    """By column: trace_id, span_id."""
    topic: str = ""
    partition: int = 0
    offset_begin: int = 0
    offset_end: int = 0
    """The log offsets of these rows; the end is exclusive."""
    location: SealedLocation | SharedLocation | None = None
    """Where another process finds them; None if only this one has them."""
    unfilled: tuple[str, ...] = ()
    """Promoted columns that are null in all rows, because the rows are older: their values are in
    the maps."""
    from_offset: int | None = None
    """There are rows below this offset at the location, which are not part of the piece."""

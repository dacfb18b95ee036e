"""Limits: timeout, memory and rows of one query."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one query. None means the engine's limit; a request cannot exceed that."""

    timeout_ms: int | None = None
    memory_bytes_max: int | None = None
    rows_max: int | None = None
    bytes_max: int | None = None
    """Bytes of all rows, as Arrow. Without it, results are unlimited: they are streamed."""

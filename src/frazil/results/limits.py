"""Limits: what one query may take."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one query may take. None is the engine's own limit; nobody gets more than that."""

    timeout_ms: int | None = None
    memory_bytes_max: int | None = None
    rows_max: int | None = None

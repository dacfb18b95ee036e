"""ColumnStats: null count and bounds of a column; and the service names of some rows."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model import KiB

TIME = "time"
OFFSET = "_offset"
SERVICE = "service_name"
TEXT_BYTES_MAX = 64
"""Longer text bounds are left out."""
SERVICES_MAX = 1024
SERVICES_BYTES_MAX = 64 * KiB
"""With more services, pruning by service is of no use."""

Bound = bool | int | float | str


class ColumnStats(msgspec.Struct, frozen=True, array_like=True):
    """Statistics of one column. Bounds are None without values, and if they are not reliable."""

    name: str
    null_count: int
    lower: Bound | None = None
    upper: Bound | None = None


def stats_of(name: str, column: pa.ChunkedArray) -> ColumnStats:
    """Compute the statistics of a column."""
    lower, upper = _bounds(column)
    return ColumnStats(name, column.null_count, lower, upper)


def _bounds(column: pa.ChunkedArray) -> tuple[Bound | None, Bound | None]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind):
        if pc.any(pc.is_nan(column)).as_py():
            return None, None  # engines disagree on the order of NaN
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)):
        return None, None
    bounds = pc.min_max(column)
    lower, upper = bounds["min"].as_py(), bounds["max"].as_py()
    if isinstance(lower, str) and max(len(lower.encode()), len(upper.encode())) > TEXT_BYTES_MAX:
        return None, None
    if isinstance(lower, float):  # some engines order -0.0 before 0.0
        return lower or -0.0, upper or 0.0
    return lower, upper


def services_of(column: pa.Array | pa.ChunkedArray) -> frozenset[str] | None:
    """Return the distinct names, or None if there are too many."""
    names = pc.drop_null(pc.unique(column))
    return bounded_services(names.to_pylist()) if len(names) <= SERVICES_MAX else None


def bounded_services(names: list[str] | frozenset[str]) -> frozenset[str] | None:
    if len(names) > SERVICES_MAX or sum(map(len, names)) > SERVICES_BYTES_MAX:
        return None
    return frozenset(names)

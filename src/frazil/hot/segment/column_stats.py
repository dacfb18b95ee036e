"""What is known of some rows without looking at them: bounds of columns, names of services."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

TIME = "time"
OFFSET = "_offset"
SERVICE = "service_name"
TEXT_BYTES_MAX = 64
"""Longer bounds are left out: they would be copies of the rows."""
SERVICES_MAX = 1024
SERVICES_BYTES_MAX = 64 * 1024
"""With more services than this in one place, leaving places out by service is of no use."""

Bound = bool | int | float | str


class ColumnStats(msgspec.Struct, frozen=True, array_like=True):
    """One column. No bounds when there are no values, or none that a comparison may rely on."""

    name: str
    null_count: int
    lower: Bound | None = None
    upper: Bound | None = None


def column_facts(name: str, column: pa.ChunkedArray) -> ColumnStats:
    """Count and compare the values of a column."""
    lower, upper = _bounds(column)
    return ColumnStats(name, column.null_count, lower, upper)


def _bounds(column: pa.ChunkedArray) -> tuple[Bound | None, Bound | None]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind):
        if pc.any(pc.is_nan(column)).as_py():
            return None, None  # is NaN above everything or nowhere? Engines disagree.
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)):
        return None, None
    found = pc.min_max(column)
    lower, upper = found["min"].as_py(), found["max"].as_py()
    if isinstance(lower, str) and max(len(lower.encode()), len(upper.encode())) > TEXT_BYTES_MAX:
        return None, None
    if isinstance(lower, float):  # -0.0 and 0.0 are equal, and yet some order them
        return lower or -0.0, upper or 0.0
    return lower, upper


def services_of(column: pa.Array | pa.ChunkedArray) -> frozenset[str] | None:
    """The distinct names; None when they are too many to keep."""
    names = pc.drop_null(pc.unique(column))
    return bounded_services(names.to_pylist()) if len(names) <= SERVICES_MAX else None


def bounded_services(names: list[str] | frozenset[str]) -> frozenset[str] | None:
    if len(names) > SERVICES_MAX or sum(map(len, names)) > SERVICES_BYTES_MAX:
        return None
    return frozenset(names)

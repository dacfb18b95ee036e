"""ColumnStats: null count and bounds of times; and the service names of some rows."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model import KiB

TIME = "time"
OFFSET = "_offset"
SERVICE = "service_name"
SERVICES_MAX = 1024
SERVICES_BYTES_MAX = 64 * KiB
"""With more services, pruning by service is of no use."""

Bound = bool | int | float | str


class ColumnStats(msgspec.Struct, frozen=True, array_like=True):
    """Statistics of one column. Bounds are None without values. Files of earlier releases also have
    those of columns that are no times."""

    name: str
    null_count: int
    lower: Bound | None = None
    upper: Bound | None = None


def stats_of(name: str, column: pa.ChunkedArray) -> ColumnStats:
    """Compute the statistics of a column of times."""
    bounds = pc.min_max(column.cast(pa.int64()))
    return ColumnStats(name, column.null_count, bounds["min"].as_py(), bounds["max"].as_py())


def services_of(column: pa.Array | pa.ChunkedArray) -> frozenset[str] | None:
    """Return the distinct names, or None if there are too many."""
    names = pc.drop_null(pc.unique(column))
    return bounded_services(names.to_pylist()) if len(names) <= SERVICES_MAX else None


def bounded_services(names: list[str] | frozenset[str]) -> frozenset[str] | None:
    if len(names) > SERVICES_MAX or sum(map(len, names)) > SERVICES_BYTES_MAX:
        return None
    return frozenset(names)

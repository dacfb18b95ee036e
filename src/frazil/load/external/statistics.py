"""Row count and bounds of a file, from its Parquet footer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.load.external.partitions import Value

US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
US_PER_DAY = 86_400_000_000
EPOCH = date(1970, 1, 1)

Bounds = tuple[int, int] | tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """What is known about the rows of a file."""

    row_count: int
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """Column -> lower and upper bound, both inclusive. Times are in microseconds."""
    empty: frozenset[str] = frozenset()
    """Columns that are null in every row."""
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    """Column -> its compressed size."""


def statistics_of(metadata: pq.FileMetaData) -> FileStatistics:
    """Return the statistics of a Parquet file, of columns whose bounds are used for pruning."""
    schema = metadata.schema.to_arrow_schema()
    bounds: dict[str, Bounds] = {}
    column_bytes: dict[str, int] = {}
    empty = set()
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        top = name if schema.get_field_index(name) >= 0 else name.partition(".")[0]
        sizes = (
            metadata.row_group(at).column(index).total_compressed_size
            for at in range(metadata.num_row_groups)
        )
        column_bytes[top] = column_bytes.get(top, 0) + sum(sizes)
        if schema.get_field_index(name) < 0:
            continue  # inside of a struct, a list or a map
        kind = schema.field(name).type
        if not is_prunable(kind):
            continue
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        found = [group.column(index).statistics for group in groups if group.num_rows]
        if not found or any(each is None for each in found):
            continue
        if all(each.has_null_count and not each.num_values for each in found):
            empty.add(name)
            continue
        # A row group with NULLs only has no bounds, and no value outside of those of the others.
        valued = [each for each in found if not each.has_null_count or each.num_values]
        if all(each.has_min_max for each in valued):
            with suppress(UnicodeDecodeError):  # a bound that was cut inside of a character
                bounds[name] = _bounds(kind, valued)
    return FileStatistics(
        row_count=metadata.num_rows,
        bounds=bounds,
        empty=frozenset(empty),
        column_bytes=column_bytes,
    )


def is_prunable(kind: pa.DataType) -> bool:
    """Return whether bounds of such a column are used."""
    return (
        pa.types.is_signed_integer(kind)
        or pa.types.is_string(kind)
        or (pa.types.is_timestamp(kind) and kind.unit in US_PER_UNIT)
    )


def _bounds(kind: pa.DataType, found: list[Any]) -> Bounds:
    if pa.types.is_string(kind):
        return min(str(each.min) for each in found), max(str(each.max) for each in found)
    scale = US_PER_UNIT[kind.unit] if pa.types.is_timestamp(kind) else 1
    return (
        min(int(each.min_raw) for each in found) * scale,
        max(int(each.max_raw) for each in found) * scale,
    )


def partition_bounds(name: str, value: Value) -> dict[str, Bounds]:
    """Return the bounds of a column that has one value in all rows of a file."""
    if value is None:
        return {}
    if isinstance(value, date):
        day_us = (value - EPOCH).days * US_PER_DAY
        return {name: (day_us, day_us)}
    if isinstance(value, int):
        return {name: (value, value)}
    return {name: (value, value)}


def time_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns whose bounds are times."""
    return frozenset(
        field.name
        for field in schema
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)
    )

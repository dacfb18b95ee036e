"""Iceberg's metrics of a data file, from its Parquet footer.

A wrong bound would hide rows, so a column has bounds only if every row group has them. The rest is
computed as in PyIceberg and Iceberg's own writer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from frazil.lake.files.parquet_schema import ParquetColumn, ParquetLayout

CODE_POINT_MAX = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""Not characters: UTF-8 cannot encode them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMetrics:
    """Metrics by field id, as in Iceberg's DataFile. Bounds are in its single-value encoding."""

    column_sizes: Mapping[int, int]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    split_offsets: tuple[int, ...]


@dataclass(slots=True)
class _Column:
    """Totals of one column over all row groups."""

    size_bytes: int = 0
    value_count: int = 0
    null_count: int = 0
    bounds: list[tuple[Any, Any]] = field(default_factory=list)
    has_counts: bool = True
    has_bounds: bool = True


def metrics_of(
    footer: Any, layout: ParquetLayout, nan_value_counts: Mapping[int, int]
) -> FileMetrics:
    """Return the metrics of a file with this footer, a `pyarrow.parquet.FileMetaData`.

    The footer has no NaN counts, so the writer counts them.
    """
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    columns = {
        leaf.field_id: _column_of(leaf, [group.column(at) for group in groups])
        for at, leaf in enumerate(layout.leaves)
    }
    bounds = {
        leaf: columns[leaf.field_id].bounds
        for leaf in layout.leaves
        if columns[leaf.field_id].has_bounds and columns[leaf.field_id].bounds
    }
    lower = {leaf: _lower(leaf, min(low for low, _ in pairs)) for leaf, pairs in bounds.items()}
    upper = {leaf: _upper(leaf, max(high for _, high in pairs)) for leaf, pairs in bounds.items()}
    return FileMetrics(
        column_sizes={i: c.size_bytes for i, c in columns.items()},
        value_counts={i: c.value_count for i, c in columns.items()},
        null_value_counts={i: c.null_count for i, c in columns.items() if c.has_counts},
        nan_value_counts=nan_value_counts,
        lower_bounds={leaf.field_id: bound for leaf, bound in lower.items()},
        upper_bounds={leaf.field_id: bound for leaf, bound in upper.items() if bound is not None},
        split_offsets=tuple(_begin(group.column(0)) for group in groups),
    )


def _column_of(leaf: ParquetColumn, chunks: Sequence[Any]) -> _Column:
    column = _Column(has_bounds=leaf.has_bounds)
    for chunk in chunks:
        assert chunk.path_in_schema == leaf.path
        column.size_bytes += chunk.total_compressed_size
        column.value_count += chunk.num_values
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            column.has_counts = column.has_bounds = False
            continue
        column.null_count += statistics.null_count
        if statistics.has_min_max:
            if column.has_bounds:
                column.bounds.append((statistics.min_raw, statistics.max_raw))
        elif statistics.null_count < chunk.num_values and not pa.types.is_floating(leaf.kind):
            # Too long for a footer, so unknown. Doubles without bounds are all NaN.
            column.has_bounds = False
    return column


def _begin(chunk: Any) -> int:
    """Return the position of a row group, given its first column chunk."""
    if chunk.has_dictionary_page and chunk.dictionary_page_offset < chunk.data_page_offset:
        return int(chunk.dictionary_page_offset)
    return int(chunk.data_page_offset)


def _lower(leaf: ParquetColumn, least: Any) -> bytes:
    """Return a bound that is at most `least`."""
    if pa.types.is_string(leaf.kind):
        text: str = least.decode()
        return text[: leaf.length_max].encode()
    if pa.types.is_binary(leaf.kind):
        return bytes(least[: leaf.length_max])
    return PACK[leaf.kind](least)


def _upper(leaf: ParquetColumn, most: Any) -> bytes | None:
    """Return a bound that is at least `most`, or None if none is short enough."""
    if pa.types.is_string(leaf.kind):
        text = _text_above(most.decode(), leaf.length_max)
        return None if text is None else text.encode()
    if pa.types.is_binary(leaf.kind):
        return _bytes_above(most, leaf.length_max)
    return PACK[leaf.kind](most)


def _text_above(text: str, length_max: int | None) -> str | None:
    if length_max is None or len(text) <= length_max:
        return text
    for at in reversed(range(length_max)):
        following = ord(text[at]) + 1
        if following == SURROGATES[0]:
            following = SURROGATES[1] + 1
        if following <= CODE_POINT_MAX:
            return text[:at] + chr(following)
    return None


def _bytes_above(data: bytes, length_max: int | None) -> bytes | None:
    if length_max is None or len(data) <= length_max:
        return data
    kept = data[:length_max].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


PACK: dict[pa.DataType, Callable[[Any], bytes]] = {
    pa.bool_(): struct.Struct("<?").pack,
    pa.int32(): struct.Struct("<i").pack,
    pa.int64(): struct.Struct("<q").pack,
    pa.float32(): struct.Struct("<f").pack,
    pa.float64(): struct.Struct("<d").pack,
    pa.date32(): struct.Struct("<i").pack,
    pa.timestamp("us"): struct.Struct("<q").pack,
    pa.timestamp("us", tz="UTC"): struct.Struct("<q").pack,
}
"""Iceberg's single-value encoding of each fixed-size type."""

"""Read windows of rows in log order.

1. measure  sum up the row groups that may hold rows of a window, from file footers
2. split    cut a window that is too large between offsets
3. read     read those row groups, keep the rows of the window, and sort them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.lake.read.offset_windows import Window
from frazil.lake.scan.data_file import TableFile
from frazil.model.arrow import promoted_in, promoted_values

POSITION_COLUMNS = ("_log_partition", "_offset", "_row")
"""Columns that identify a row. Tables of records have no `_row`."""
BATCH_ROWS = 16 * 1024
"""Rows per batch: small, so that filtered rows are freed soon."""

Fetch = Callable[[str], Any]
"""Opens a file by its location for Arrow. Any thread may call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRowGroups:
    """Row groups of one file that may hold rows of a window."""

    file: TableFile
    footer: Any
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedWindow:
    """A window with the row groups to read and their size."""

    window: Window
    groups: tuple[WindowRowGroups, ...]
    size_bytes: int
    """Uncompressed Parquet size of these row groups."""

    @property
    def row_count(self) -> int:
        """Upper bound of the rows in the window."""
        return sum(g.footer.row_group(n).num_rows for g in self.groups for n in g.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """All rows of these offsets of a partition, in order."""

    partition: int
    begin: int
    end: int
    batch: pa.RecordBatch


def measure(window: Window, fetch: Fetch) -> SizedWindow:
    """Read the footers of a window's files. Raise FileNotFoundError if one is missing."""
    footers = []
    for file in window.files:
        with fetch(file.location) as source:
            footers.append((file, pq.read_metadata(source)))
    return _sized(window, footers)


def _sized(window: Window, footers: list[tuple[TableFile, Any]]) -> SizedWindow:
    groups = tuple(
        WindowRowGroups(file=file, footer=footer, numbers=_numbers(footer, window))
        for file, footer in footers
    )
    size_bytes = sum(
        group.footer.row_group(number).total_byte_size
        for group in groups
        for number in group.numbers
    )
    return SizedWindow(
        window=window,
        groups=tuple(group for group in groups if group.numbers),
        size_bytes=size_bytes,
    )


def _numbers(footer: Any, window: Window) -> tuple[int, ...]:
    paths = [footer.schema.column(at).path for at in range(footer.num_columns)]
    partition_at, offset_at = paths.index("_log_partition"), paths.index("_offset")
    numbers = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if _may_hold(group.column(partition_at), window.partition, window.partition + 1) and (
            _may_hold(group.column(offset_at), window.begin, window.end)
        ):
            numbers.append(number)
    return tuple(numbers)


def _may_hold(chunk: Any, begin: int, end: int) -> bool:
    stats = chunk.statistics
    return stats is None or not stats.has_min_max or (stats.min < end and begin <= stats.max)


def split(sized: SizedWindow, fetch: Fetch, rows_max: int) -> list[SizedWindow]:
    """Split a window into parts of at most `rows_max` rows each, or of a single offset."""
    if sized.row_count <= rows_max:
        return [sized]
    offsets = [part.column("_offset") for part in _parts(sized, fetch, list(POSITION_COLUMNS[:2]))]
    counts = pc.value_counts(pa.chunked_array(offsets, pa.int64()))
    order = pc.sort_indices(counts.field("values"))
    cuts, taken = [sized.window.begin], 0
    for offset, count in zip(
        counts.field("values").take(order).to_pylist(),
        counts.field("counts").take(order).to_pylist(),
        strict=True,
    ):
        if taken and taken + count > rows_max:
            cuts.append(offset)
            taken = 0
        taken += count
    cuts.append(sized.window.end)
    footers = [(group.file, group.footer) for group in sized.groups]
    return [
        _sized(replace(sized.window, begin=begin, end=end), footers)
        for begin, end in pairwise(cuts)
    ]


def read(sized: SizedWindow, fetch: Fetch, schema: pa.Schema) -> WindowRows:
    """Read the rows of a window with the columns of `schema`; columns that an older file lacks are
    null. Raise FileNotFoundError if a file is missing."""
    window = sized.window
    promoted = {each.name for each in promoted_in(schema)}
    names = [name for name in schema.names if name not in promoted]
    parts = [_conformed(part, schema) for part in _parts(sized, fetch, names)]
    keys = [(name, "ascending") for name in POSITION_COLUMNS if name in schema.names]
    rows = pa.Table.from_batches(parts, schema)
    rows = rows.take(pc.sort_indices(rows, keys)).combine_chunks()
    (batch,) = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return WindowRows(partition=window.partition, begin=window.begin, end=window.end, batch=batch)


def _parts(sized: SizedWindow, fetch: Fetch, names: list[str]) -> Iterator[pa.RecordBatch]:
    window = sized.window
    for group in sized.groups:
        with (
            fetch(group.file.location) as source,
            pq.ParquetFile(
                source, metadata=group.footer, pre_buffer=True, page_checksum_verification=True
            ) as file,
        ):
            columns = [name for name in names if name in file.schema_arrow.names]
            for batch in file.iter_batches(
                BATCH_ROWS, list(group.numbers), columns, use_threads=False
            ):
                rows = batch.filter(_is_in_window(batch, window))
                if rows.num_rows:
                    yield rows


def _is_in_window(batch: pa.RecordBatch, window: Window) -> pa.Array:
    offset = batch.column("_offset")
    is_within = pc.and_(
        pc.greater_equal(offset, window.begin),
        pc.less(offset, window.end),
    )
    return pc.and_(is_within, pc.equal(batch.column("_log_partition"), window.partition))


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the columns of a schema. Promoted ones are computed: a file
    may be older, or have another column of that name."""
    promoted = {each.name: each for each in promoted_in(schema)}
    columns = [
        promoted_values(batch.column(promoted[field.name].map_name), promoted[field.name])
        if field.name in promoted
        else batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

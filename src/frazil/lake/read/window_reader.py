"""The rows of windows: weighed before they are read, read in the order of the log.

1. weigh   footers say how large the row groups are that may have rows of a window
2. split   a window that is too large is cut between offsets, so that each part has few rows enough
3. read    these row groups, of which only rows of the window are kept; then sorted
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

PLACE = ("_log_partition", "_offset", "_row")
"""Where a row comes from; a row that is a record has no `_row`."""
BATCH_ROWS = 16 * 1024
"""Read at once: what is left out is not in memory for long."""

Fetch = Callable[[str], Any]
"""Gives a file by its path, as Arrow reads it. Any thread may call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRowGroups:
    """Row groups of one file that may have rows of a window."""

    file: TableFile
    footer: Any
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedWindow:
    """A window, and what reading it takes."""

    window: Window
    groups: tuple[WindowRowGroups, ...]
    size_bytes: int
    """As Parquet has these row groups, not compressed."""

    @property
    def row_count(self) -> int:
        """At most."""
        return sum(each.footer.row_group(n).num_rows for each in self.groups for n in each.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """All rows of these offsets of a partition, in order."""

    partition: int
    begin: int
    end: int
    batch: pa.RecordBatch


def weigh(window: Window, fetch: Fetch) -> SizedWindow:
    """Look at the footers of a window's files. FileNotFoundError when one is gone."""
    footers = []
    for file in window.files:
        with fetch(file.location) as source:
            footers.append((file, pq.read_metadata(source)))
    return _weighed(window, footers)


def _weighed(window: Window, footers: list[tuple[TableFile, Any]]) -> SizedWindow:
    groups = tuple(
        WindowRowGroups(file=file, footer=footer, numbers=_numbers(footer, window))
        for file, footer in footers
    )
    size_bytes = sum(
        each.footer.row_group(number).total_byte_size for each in groups for number in each.numbers
    )
    return SizedWindow(
        window=window, groups=tuple(each for each in groups if each.numbers), size_bytes=size_bytes
    )


def _numbers(footer: Any, window: Window) -> tuple[int, ...]:
    paths = [footer.schema.column(at).path for at in range(footer.num_columns)]
    partition_at, offset_at = paths.index("_log_partition"), paths.index("_offset")
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        if _may_hold(group.column(partition_at), window.partition, window.partition + 1) and (
            _may_hold(group.column(offset_at), window.begin, window.end)
        ):
            found.append(number)
    return tuple(found)


def _may_hold(chunk: Any, begin: int, end: int) -> bool:
    known = chunk.statistics
    return known is None or not known.has_min_max or (known.min < end and begin <= known.max)


def split(weighed: SizedWindow, fetch: Fetch, rows_max: int) -> list[SizedWindow]:
    """The same window in parts of at most `rows_max` rows each, or of one offset."""
    if weighed.row_count <= rows_max:
        return [weighed]
    offsets = [part.column("_offset") for part in _parts(weighed, fetch, list(PLACE[:2]))]
    counts = pc.value_counts(pa.chunked_array(offsets, pa.int64()))
    order = pc.sort_indices(counts.field("values"))
    cuts, taken = [weighed.window.begin], 0
    for offset, count in zip(
        counts.field("values").take(order).to_pylist(),
        counts.field("counts").take(order).to_pylist(),
        strict=True,
    ):
        if taken and taken + count > rows_max:
            cuts.append(offset)
            taken = 0
        taken += count
    cuts.append(weighed.window.end)
    footers = [(each.file, each.footer) for each in weighed.groups]
    return [
        _weighed(replace(weighed.window, begin=begin, end=end), footers)
        for begin, end in pairwise(cuts)
    ]


def read(weighed: SizedWindow, fetch: Fetch, schema: pa.Schema) -> WindowRows:
    """The rows of a window, with the columns of `schema`; those that an older file does not have
    are null. FileNotFoundError when a file is gone."""
    window = weighed.window
    parts = [_shaped(part, schema) for part in _parts(weighed, fetch, schema.names)]
    keys = [(name, "ascending") for name in PLACE if name in schema.names]
    rows = pa.Table.from_batches(parts, schema)
    rows = rows.take(pc.sort_indices(rows, keys)).combine_chunks()
    (batch,) = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return WindowRows(partition=window.partition, begin=window.begin, end=window.end, batch=batch)


def _parts(weighed: SizedWindow, fetch: Fetch, names: list[str]) -> Iterator[pa.RecordBatch]:
    window = weighed.window
    for each in weighed.groups:
        with (
            fetch(each.file.location) as source,
            pq.ParquetFile(
                source, metadata=each.footer, pre_buffer=True, page_checksum_verification=True
            ) as file,
        ):
            there = [name for name in names if name in file.schema_arrow.names]
            for batch in file.iter_batches(
                BATCH_ROWS, list(each.numbers), there, use_threads=False
            ):
                kept = batch.filter(_is_wanted(batch, window))
                if kept.num_rows:
                    yield kept


def _is_wanted(batch: pa.RecordBatch, window: Window) -> pa.Array:
    offset = batch.column("_offset")
    is_within = pc.and_(
        pc.greater_equal(offset, window.begin),
        pc.less(offset, window.end),
    )
    return pc.and_(is_within, pc.equal(batch.column("_log_partition"), window.partition))


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema, in its order, of its types."""
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

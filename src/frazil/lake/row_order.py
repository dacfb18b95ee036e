"""Rows by day, and in the order of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from frazil.lake.file_layout import REPEATED, FileLayout
from frazil.lake.layout import PARTITION_COLUMN, PARTITION_FIELD

DAY_US = 86_400_000_000
FEW = 4
"""Less than one row in so many is few."""


def combined(batches: list[pa.RecordBatch], layout: FileLayout) -> pa.Table:
    """All rows, each column in one piece. Column by column: never is all of it there twice."""
    columns = {name: [b.column(name) for b in batches] for name in layout.schema.names}
    batches.clear()
    arrays = {}
    for field in layout.numbered_schema:
        chunks = columns.pop(field.name)
        if field.name in REPEATED:
            arrays[field.name] = _numbered(chunks, field.type)
        else:
            arrays[field.name] = pa.concat_arrays(chunks)
    return pa.table(arrays)


def _numbered(maps: Sequence[pa.MapArray], kind: pa.DataType) -> pa.MapArray:
    """The same maps with numbers for their texts, which are there once: less to move about."""
    counts, keys, items = [pa.array([0], pa.int32())], [], []
    for each in maps:
        offsets = each.offsets
        begin, end = offsets[0].as_py(), offsets[-1].as_py()
        counts.append(pc.subtract(offsets[1:], offsets[:-1]))
        keys.append(each.keys[begin:end])
        items.append(each.items[begin:end])
    return pa.MapArray.from_arrays(
        pc.cumulative_sum_checked(pa.concat_arrays(counts)),
        pa.chunked_array(keys).dictionary_encode().combine_chunks(),
        pa.chunked_array(items).dictionary_encode().combine_chunks(),
        type=kind,
    )


def picked(rows: pa.Table, places: pa.Array) -> pa.Table:
    """The rows at these places, in this order, with no other text than theirs.

    Parquet writes every text that has a number, and a day of few rows has few of them.
    """
    some = rows.take(places)
    if len(places) * FEW < rows.num_rows:
        for at, name in enumerate(some.column_names):
            if name in REPEATED:
                some = some.set_column(at, some.field(at), _renumbered(some.column(at)))
    return some


def _renumbered(maps: pa.ChunkedArray) -> pa.MapArray:
    (each,) = maps.chunks
    return pa.MapArray.from_arrays(
        each.offsets,
        each.keys.dictionary_decode().dictionary_encode(),
        each.items.dictionary_decode().dictionary_encode(),
        type=each.type,
    )


def days_of(rows: pa.Table, order: Sequence[str]) -> Iterator[tuple[int, pa.Array]]:
    """Each day, and the places of its rows in the order they are to be written in."""
    days = day_of(rows[PARTITION_COLUMN])
    keys = rows.select(order).append_column(PARTITION_FIELD, days)
    places = pc.sort_indices(keys, [(name, "ascending") for name in (PARTITION_FIELD, *order)])
    runs = pc.run_end_encode(days.combine_chunks().take(places), run_end_type=pa.int64())
    begin = 0
    for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield day, places.slice(begin, end - begin)
        begin = end


def day_of(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole days since 1970, downwards also before it."""
    us = times.cast(pa.int64())
    days = pc.divide(us, DAY_US)
    is_before = pc.less(us, pc.multiply(days, DAY_US))
    return pc.subtract(days, is_before.cast(pa.int64()))


def date_of(day: int) -> str:
    """The day as Iceberg writes it into paths; years have four digits, or as many as they need."""
    # Days of the civil calendar, in eras of 400 years that begin on a first of March, for years
    # that Python's dates do not reach.
    era, day_of_era = divmod(day + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day_of_year - (153 * march_month + 2) // 5 + 1:02d}"

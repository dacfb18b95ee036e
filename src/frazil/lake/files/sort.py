"""Rows by day, and in the order of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.tables.properties import PARTITION_COLUMN, PARTITION_FIELD

DAY_US = 86_400_000_000
FEW = 4
"""Less than one row in so many is few."""


def combined(batches: list[pa.RecordBatch], layout: ParquetLayout) -> pa.Table:
    """All rows, each column in one piece. Column by column: never is all of it there twice."""
    columns = {name: [b.column(name) for b in batches] for name in layout.schema.names}
    batches.clear()
    arrays = {}
    for field in layout.numbered_schema:
        arrays[field.name] = _joined(columns.pop(field.name), field.type)
    return pa.table(arrays)


def _joined(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array of that type."""
    if pa.types.is_map(kind) and pa.types.is_dictionary(kind.key_type):
        return _joined_maps(chunks, kind)
    if pa.types.is_dictionary(kind):
        return _numbered(chunks)
    return pa.concat_arrays(chunks)


def _numbered(chunks: Sequence[pa.Array]) -> pa.DictionaryArray:
    """The same texts, each of which is there once, and numbers for them."""
    if not all(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        return pa.chunked_array(chunks).dictionary_encode().combine_chunks()
    texts = pa.concat_arrays([chunk.dictionary for chunk in chunks]).dictionary_encode()
    places, first = [], 0
    for chunk in chunks:
        places.append(pc.add(chunk.indices, pa.scalar(first, pa.int32())))
        first += len(chunk.dictionary)
    numbers = texts.indices.take(pa.concat_arrays(places))
    return pa.DictionaryArray.from_arrays(numbers, texts.dictionary, safe=False)


def _joined_maps(maps: Sequence[pa.MapArray], kind: pa.DataType) -> pa.MapArray:
    """The same for maps: less to move about."""
    counts, keys, items = [pa.array([0], pa.int32())], [], []
    for each in maps:
        offsets = each.offsets
        begin, end = offsets[0].as_py(), offsets[-1].as_py()
        counts.append(pc.subtract(offsets[1:], offsets[:-1]))
        keys.append(each.keys[begin:end])
        items.append(each.items[begin:end])
    return pa.MapArray.from_arrays(
        pc.cumulative_sum_checked(pa.concat_arrays(counts)),
        _joined(keys, kind.key_type),
        _joined(items, kind.item_type),
        type=kind,
    )


def picked(rows: pa.Table, places: pa.Array) -> pa.Table:
    """The rows at these places, in this order, with no other text than theirs.

    Parquet writes every text that has a number, and a day of few rows has few of them.
    """
    some = rows.take(places)
    if len(places) * FEW < rows.num_rows:
        for at, field in enumerate(some.schema):
            some = some.set_column(at, field, _renumbered(some.column(at).combine_chunks()))
    return some


def _renumbered(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode().dictionary_encode()
    if pa.types.is_map(array.type):
        keys, items = _renumbered(array.keys), _renumbered(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=array.type)
    return array


def days_of(rows: pa.Table, order: Sequence[str]) -> Iterator[tuple[int, pa.Array]]:
    """Each day, and the places of its rows in the order they are to be written in."""
    days = day_of(rows[PARTITION_COLUMN])
    keys = pa.table({PARTITION_FIELD: days, **{name: _rank(rows[name]) for name in order}})
    places = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    runs = pc.run_end_encode(days.combine_chunks().take(places), run_end_type=pa.int64())
    begin = 0
    for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield day, places.slice(begin, end - begin)
        begin = end


def _rank(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Something that sorts as the column does: Arrow does not sort by numbers that are texts."""
    if not pa.types.is_dictionary(column.type):
        return column
    (each,) = column.chunks
    return pa.chunked_array([pc.rank(each.dictionary, tiebreaker="dense").take(each.indices)])


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

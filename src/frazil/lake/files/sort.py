"""Combine rows, split them by day and sort them in the order of their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from frazil.lake.files.parquet_schema import ParquetLayout
from frazil.lake.tables.properties import PARTITION_COLUMN, PARTITION_FIELD

DAY_US = 86_400_000_000


def combine(batches: list[pa.RecordBatch], layout: ParquetLayout) -> pa.Table:
    """Return all rows with one chunk per column. Works column by column to limit peak memory."""
    columns = {name: [b.column(name) for b in batches] for name in layout.schema.names}
    batches.clear()
    arrays = {}
    for field in layout.numbered_schema:
        arrays[field.name] = _concatenated(columns.pop(field.name), field.type)
    return pa.table(arrays)


def _concatenated(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Concatenate chunks into one array of a type."""
    if pa.types.is_map(kind) and pa.types.is_dictionary(kind.key_type):
        return _concatenated_maps(chunks, kind)
    if pa.types.is_dictionary(kind):
        return _dictionary_array(chunks)
    return pa.concat_arrays(chunks)


def _dictionary_array(chunks: Sequence[pa.Array]) -> pa.DictionaryArray:
    """Concatenate strings into one dictionary array without duplicates in its dictionary."""
    if not all(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        return pa.chunked_array(chunks).dictionary_encode().combine_chunks()
    texts = pa.concat_arrays([chunk.dictionary for chunk in chunks]).dictionary_encode()
    indices, first = [], 0
    for chunk in chunks:
        indices.append(pc.add(chunk.indices, pa.scalar(first, pa.int32())))
        first += len(chunk.dictionary)
    codes = texts.indices.take(pa.concat_arrays(indices))
    return pa.DictionaryArray.from_arrays(codes, texts.dictionary, safe=False)


def _concatenated_maps(maps: Sequence[pa.MapArray], kind: pa.DataType) -> pa.MapArray:
    """Concatenate maps with dictionary-encoded keys: less memory to move when sorting."""
    counts, keys, items = [pa.array([0], pa.int32())], [], []
    for array in maps:
        offsets = array.offsets
        begin, end = offsets[0].as_py(), offsets[-1].as_py()
        counts.append(pc.subtract(offsets[1:], offsets[:-1]))
        keys.append(array.keys[begin:end])
        items.append(array.items[begin:end])
    return pa.MapArray.from_arrays(
        pc.cumulative_sum_checked(pa.concat_arrays(counts)),
        _concatenated(keys, kind.key_type),
        _concatenated(items, kind.item_type),
        type=kind,
    )


def compact(rows: pa.Table) -> pa.Table:
    """Drop unused dictionary entries. Parquet would write every entry: a file would have values of
    rows of other days, or of rows that were removed."""
    columns = [
        pa.chunked_array([_compacted(chunk) for chunk in column.chunks], column.type)
        for column in rows.columns
    ]
    return pa.table(columns, schema=rows.schema)


def _compacted(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        used = pc.drop_null(pc.unique(array.indices))
        if len(used) == len(array.dictionary):
            return array
        codes = pc.index_in(array.indices, used)
        return pa.DictionaryArray.from_arrays(codes, array.dictionary.take(used), safe=False)
    if pa.types.is_map(array.type):
        keys, items = _compacted(array.keys), _compacted(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=array.type)
    return array


def days_of(rows: pa.Table, order: Sequence[str]) -> Iterator[tuple[int, pa.Array]]:
    """Yield each day with the indices of its rows, sorted by `order`."""
    days = day_of(rows[PARTITION_COLUMN])
    keys = pa.table({PARTITION_FIELD: days, **{name: _rank(rows[name]) for name in order}})
    indices = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    runs = pc.run_end_encode(days.combine_chunks().take(indices), run_end_type=pa.int64())
    begin = 0
    for day, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield day, indices.slice(begin, end - begin)
        begin = end


def _rank(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that sort like the column: Arrow cannot sort by a dictionary column."""
    if not pa.types.is_dictionary(column.type):
        return column
    (array,) = column.chunks
    return pa.chunked_array([pc.rank(array.dictionary, tiebreaker="dense").take(array.indices)])


def day_of(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return days since 1970, rounded down also before 1970."""
    us = times.cast(pa.int64())
    days = pc.divide(us, DAY_US)
    is_before = pc.less(us, pc.multiply(days, DAY_US))
    return pc.subtract(days, is_before.cast(pa.int64()))


def date_of(day: int) -> str:
    """Return a day as Iceberg writes it into paths; years have at least four digits."""
    # The civil calendar in eras of 400 years that start on 1 March: Python's dates end with the
    # year 9999.
    era, day_of_era = divmod(day + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    month = march_month + 3 if march_month < 10 else march_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day_of_year - (153 * march_month + 2) // 5 + 1:02d}"

"""Like rows, counted: one row for all that say the same, and how many there are.

Column by column, rows get numbers: the same number when they are alike in all columns so far.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from frazil.query.counts.dictionary_encode import (
    CODES_MAX,
    HEAP_BYTES_MAX,
    SLOT_BITS,
    code_numbers,
    code_texts,
)
from frazil.query.functions.string_buffers import Ints, Longs, buffers_of
from frazil.query.plan.count_rewrite import ROW_COUNT

Arrays = Sequence[pa.Array]
"""A column, batch by batch."""


def count_like(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    """One row for each different row, with how many there are; None when they are too many."""
    known: _Known | None = None
    for place in range(batches[0].num_columns):
        column = [batch.column(place) for batch in batches]
        known = _known_of(column) if known is None else _joined(known, column)
        if known is None:
            return None
    assert known is not None, "there is a column"
    firsts = _rows_at(batches, known.firsts[: known.count])
    return firsts.append_column(ROW_COUNT, pa.array(known.counts[: known.count]))


def _rows_at(batches: Sequence[pa.RecordBatch], places: Longs) -> pa.RecordBatch:
    """Some rows, by their rising places among all of them."""
    edges = np.cumsum([0, *(batch.num_rows for batch in batches)])
    cuts = np.searchsorted(places, edges)
    some = [
        batch.take(pa.array(places[low:high] - edge))
        for batch, edge, low, high in zip(batches, edges, cuts, cuts[1:], strict=False)
        if low < high
    ]
    return pa.concat_batches(some) if some else batches[0].slice(0, 0)


class _Known:
    """Rows that have numbers: the different ones, where each is first, how often it is there."""

    def __init__(self, row_count: int) -> None:
        self.count = 0
        self.firsts = np.zeros(CODES_MAX, np.int64)
        self.counts = np.zeros(CODES_MAX, np.int64)
        self.slots = np.full(1 << SLOT_BITS, -1, np.int32)
        self.codes: Ints = np.empty(row_count, np.int32)


def _known_of(column: Arrays) -> _Known | None:
    has_nulls = any(array.null_count for array in column)
    if pa.types.is_string(column[0].type):
        known = _of_texts(column)
    else:
        numbers = [(a.fill_null(0) if a.null_count else a).to_numpy() for a in column]
        whole = np.concatenate(numbers).astype(np.int64, copy=False)
        known = _of_numbers(whole)
    if known is None or not has_nulls:
        return known
    nulls = np.concatenate([a.is_null().to_numpy(zero_copy_only=False) for a in column])
    marked = np.where(nulls, np.int64(CODES_MAX), known.codes)
    return _of_numbers(marked)


def _joined(known: _Known, column: Arrays) -> _Known | None:
    """The rows told apart by one column more."""
    other = _known_of(column)
    if other is None:
        return None
    return _of_numbers(known.codes.astype(np.int64) * CODES_MAX + other.codes)


def _of_texts(column: Arrays) -> _Known | None:
    known = _Known(sum(map(len, column)))
    buffers = [buffers_of(array) for array in column]
    arrays = [
        (offsets.ctypes.data, letters.ctypes.data, len(offsets) - 1, len(letters))
        for offsets, letters in buffers
    ]
    known.count = code_texts(
        np.array(arrays, np.int64),
        known.slots,
        np.zeros(CODES_MAX, np.uint64),
        np.zeros(CODES_MAX, np.uint64),
        np.zeros(CODES_MAX, np.int64),
        np.zeros(CODES_MAX, np.int64),
        np.zeros(HEAP_BYTES_MAX, np.uint8),
        known.firsts,
        known.counts,
        known.codes,
    )
    return known if known.count >= 0 else None


def _of_numbers(numbers: Longs) -> _Known | None:
    known = _Known(len(numbers))
    known.count = code_numbers(
        numbers,
        known.slots,
        np.zeros(CODES_MAX, np.int64),
        known.firsts,
        known.counts,
        known.codes,
    )
    return known if known.count >= 0 else None

"""Counts distinct rows: each row gets a code, column by column, and equal rows the same code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from frazil.query.counts.dictionary_encode import (
    CODES_MAX,
    HEAP_BYTES_MAX,
    SLOT_BITS,
    encode_numbers,
    encode_texts,
)
from frazil.query.functions.string_buffers import Ints, Longs, buffers_of
from frazil.query.plan.count_rewrite import ROW_COUNT

Arrays = Sequence[pa.Array]
"""One column of several batches."""


def count_distinct(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return the distinct rows in order of first occurrence, with their counts; None if they are
    too many."""
    encoded: _Encoded | None = None
    for index in range(batches[0].num_columns):
        column = [batch.column(index) for batch in batches]
        encoded = _encode(column) if encoded is None else _add_column(encoded, column)
        if encoded is None:
            return None
    assert encoded is not None, "there is a column"
    firsts = _take(batches, encoded.firsts[: encoded.count])
    return firsts.append_column(ROW_COUNT, pa.array(encoded.counts[: encoded.count]))


def _take(batches: Sequence[pa.RecordBatch], rows: Longs) -> pa.RecordBatch:
    """Return rows by their ascending numbers in the concatenated batches."""
    edges = np.cumsum([0, *(batch.num_rows for batch in batches)])
    cuts = np.searchsorted(rows, edges)
    taken = [
        batch.take(pa.array(rows[low:high] - edge))
        for batch, edge, low, high in zip(batches, edges, cuts, cuts[1:], strict=False)
        if low < high
    ]
    return pa.concat_batches(taken) if taken else batches[0].slice(0, 0)


class _Encoded:
    """The code of each row; per code its first row and its count."""

    def __init__(self, row_count: int) -> None:
        self.count = 0
        self.firsts = np.zeros(CODES_MAX, np.int64)
        self.counts = np.zeros(CODES_MAX, np.int64)
        self.slots = np.full(1 << SLOT_BITS, -1, np.int32)
        self.codes: Ints = np.empty(row_count, np.int32)


def _encode(column: Arrays) -> _Encoded | None:
    has_nulls = any(array.null_count for array in column)
    if pa.types.is_string(column[0].type):
        encoded = _enencode_texts(column)
    else:
        numbers = [(a.fill_null(0) if a.null_count else a).to_numpy() for a in column]
        encoded = _enencode_numbers(np.concatenate(numbers).astype(np.int64, copy=False))
    if encoded is None or not has_nulls:
        return encoded
    nulls = np.concatenate([a.is_null().to_numpy(zero_copy_only=False) for a in column])
    return _enencode_numbers(np.where(nulls, np.int64(CODES_MAX), encoded.codes))


def _add_column(encoded: _Encoded, column: Arrays) -> _Encoded | None:
    """Encode the rows by one more column."""
    other = _encode(column)
    if other is None:
        return None
    return _enencode_numbers(encoded.codes.astype(np.int64) * CODES_MAX + other.codes)


def _enencode_texts(column: Arrays) -> _Encoded | None:
    encoded = _Encoded(sum(map(len, column)))
    buffers = [buffers_of(array) for array in column]
    arrays = [
        (offsets.ctypes.data, letters.ctypes.data, len(offsets) - 1, len(letters))
        for offsets, letters in buffers
    ]
    encoded.count = encode_texts(
        np.array(arrays, np.int64),
        encoded.slots,
        np.zeros(CODES_MAX, np.uint64),
        np.zeros(CODES_MAX, np.uint64),
        np.zeros(CODES_MAX, np.int64),
        np.zeros(CODES_MAX, np.int64),
        np.zeros(HEAP_BYTES_MAX, np.uint8),
        encoded.firsts,
        encoded.counts,
        encoded.codes,
    )
    return encoded if encoded.count >= 0 else None


def _enencode_numbers(numbers: Longs) -> _Encoded | None:
    encoded = _Encoded(len(numbers))
    encoded.count = encode_numbers(
        numbers,
        encoded.slots,
        np.zeros(CODES_MAX, np.int64),
        encoded.firsts,
        encoded.counts,
        encoded.codes,
    )
    return encoded if encoded.count >= 0 else None

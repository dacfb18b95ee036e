"""Rows that repeat the row before them, as one row and a number.

The rows of a request come one after the other, and all of one resource and scope say the same
about these. A query that only counts rows by such columns need not look at each of them: counting
the services of ten million rows reads some ten thousand. What was found out about a piece is kept
for as long as the piece is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.query.texts import buffers_of, nulls_of

if TYPE_CHECKING:
    from frazil.hot import Piece

REPEATED = frozenset(
    {
        "service_name",
        "service_namespace",
        "service_instance_id",
        "deployment_environment",
        "host_name",
        "k8s_namespace_name",
        "k8s_pod_name",
        "k8s_container_name",
        "scope_name",
        "scope_version",
        "resource_schema_url",
        "scope_schema_url",
    }
)
"""Columns of text that are the same in all rows of one resource and scope."""
ROW_COUNT = "_frazil_row_count"
"""The column that says how many rows a row stands for."""
WORTHWHILE = 4
"""A piece whose runs are shorter than this, on average, is read row by row."""
KEPT_MAX = 4
"""What is kept of one piece: so many sets of columns."""


class Runs:
    """The runs of pieces. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[Piece, dict[tuple[str, ...], list[pa.RecordBatch]]] = (
            WeakKeyDictionary()
        )

    def of(self, piece: Piece, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """The rows of a piece in these columns, and how many each of them stands for."""
        names = tuple(columns)
        with self._lock:
            kept = self._kept.setdefault(piece, {})
            found = kept.get(names)
        if found is not None:
            return found
        rows = [batch.select(columns) for batch in piece.batches]
        found = [shorten(rows)]
        if found[0].num_rows * WORTHWHILE > piece.row_count:
            return [_counted(batch, np.ones(batch.num_rows, np.int64)) for batch in rows]
        with self._lock:
            if len(kept) >= KEPT_MAX:
                kept.clear()
            kept[names] = found
        return found


def shorten(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One row for each run of rows that are the same in all columns, which are of text. A run ends
    where a batch does."""
    edges = np.cumsum([0, *(batch.num_rows for batch in batches)])
    is_new = np.zeros(edges[-1], np.bool_)
    for batch, begin, end in zip(batches, edges, edges[1:], strict=False):
        _mark(batch, is_new[begin:end])
    begins = np.flatnonzero(is_new)
    places = np.searchsorted(begins, edges)
    firsts = [
        batch.take(pa.array(begins[low:high] - begin))
        for batch, begin, low, high in zip(batches, edges, places, places[1:], strict=False)
    ]
    return _counted(pa.concat_batches(firsts), np.diff(begins, append=edges[-1]))


def _mark(batch: pa.RecordBatch, is_new: npt.NDArray[np.bool_]) -> None:
    """Mark the rows that differ from the one before."""
    # The compiled part is loaded by the first query that uses it, not by everybody who starts.
    from frazil.query.changes import mark_changes

    is_new[:1] = True
    for column in batch.columns:
        offsets, letters = buffers_of(column)
        mark_changes(offsets, letters, is_new)
        nulls = nulls_of(column)
        if nulls is not None:
            is_new[1:] |= nulls[1:] != nulls[:-1]


def _counted(batch: pa.RecordBatch, counts: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """With one more column: how many rows each stands for."""
    return batch.append_column(ROW_COUNT, pa.array(counts, pa.int64()))

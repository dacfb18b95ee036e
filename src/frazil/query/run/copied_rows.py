"""Rows that are copied for one query: only the columns it reads and the rows that may match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.query.plan.predicates import Conditions, Predicate
from frazil.query.plan.pruning import NS_PER_US, time_window

TEXT_COLUMNS = ("service_name", "trace_id", "span_id")
"""Text columns whose predicates are applied before rows are copied."""
BATCH_ROWS_MIN = 8192
"""Smaller batches are concatenated: each costs the worker as much as some hundred rows."""


def matching_batches(
    batches: Iterable[pa.RecordBatch], conditions: Conditions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of the rows that may match."""
    small: list[pa.RecordBatch] = []
    row_count = 0
    for batch in batches:
        mask = _mask(batch, conditions)
        projected = batch.select(columns)
        if mask is not None:
            projected = projected.filter(mask)
        if not projected.num_rows:
            continue
        small.append(projected)
        row_count += projected.num_rows
        if row_count >= BATCH_ROWS_MIN:
            yield small[0] if len(small) == 1 else pa.concat_batches(small)
            small, row_count = [], 0
    if small:
        yield pa.concat_batches(small)


def _mask(batch: pa.RecordBatch, conditions: Conditions) -> pa.Array | None:
    """Return which rows pass the predicates that are cheap to check; None if there are none."""
    masks = []
    window = time_window(conditions)
    if "time" in batch.schema.names:
        time = batch.column("time").cast(pa.int64())
        if window.low is not None:
            masks.append(pc.greater_equal(time, _clamped(window.low // NS_PER_US)))
        if window.high is not None:
            masks.append(pc.less_equal(time, _clamped(window.high // NS_PER_US)))
    for column in TEXT_COLUMNS:
        values = conditions.get(column, Predicate()).values
        if values is not None and column in batch.schema.names:
            masks.append(pc.is_in(batch.column(column), pa.array(sorted(values), pa.string())))
    combined = None
    for mask in masks:
        combined = mask if combined is None else pc.and_(combined, mask)
    return combined


def _clamped(time_us: int) -> int:
    return max(-(2**63), min(time_us, 2**63 - 1))


def with_all_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Add blank columns. The plan does not read them, but the text may name them."""
    names = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in names else _blank(field.type, batch.num_rows)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_ZEROS: list[pa.Buffer] = [pa.py_buffer(np.zeros(1 << 16, dtype=np.uint8))]


def _blank(kind: pa.DataType, length: int) -> pa.Array:
    """Return zeros or empty values. All arrays share one buffer."""
    while len(_ZEROS[-1]) < 16 * (length + 1):
        _ZEROS.append(pa.py_buffer(np.zeros(len(_ZEROS[-1]) * 2, dtype=np.uint8)))
    zeros = _ZEROS[-1]
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        entries = (
            pa.struct([kind.key_field, kind.item_field])
            if pa.types.is_map(kind)
            else kind.value_type
        )
        return pa.Array.from_buffers(kind, length, [None, zeros], children=[_blank(entries, 0)])
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        children = [_blank(field.type, length) for field in fields]
        return pa.Array.from_buffers(kind, length, [None], children=children)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.Array.from_buffers(kind, length, [None, zeros, pa.py_buffer(b"")])
    return pa.Array.from_buffers(kind, length, [None, zeros])

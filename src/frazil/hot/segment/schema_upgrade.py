"""Converts rows written by an earlier release to the current schema."""

from __future__ import annotations

import pyarrow as pa


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in `schema`: columns that it lacks are dropped, new ones are null.

    Raises `ArrowInvalid` if a value would be lost or a required one is missing.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [_column(batch, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    column = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
    if column.null_count and not field.nullable:
        raise pa.ArrowInvalid(f"column {field.name} is required and has nulls")
    return column if column.type == field.type else column.cast(field.type)

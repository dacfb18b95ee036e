"""Schema drift: rows that an earlier release wrote, shown in the schema of today."""

from __future__ import annotations

import pyarrow as pa


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows in `schema`: columns it does not have are left out, new ones are null.

    `ArrowInvalid` when that cannot be done without inventing or losing values.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [_column(batch, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    column = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
    if column.null_count and not field.nullable:
        raise pa.ArrowInvalid(f"column {field.name} may not be null and has no values")
    return column if column.type == field.type else column.cast(field.type)

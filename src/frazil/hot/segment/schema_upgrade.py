"""Converts rows written by an earlier release, or with other settings, to the current schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from frazil.model.arrow import promotion_of, with_filled


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in `schema`: columns that it lacks are dropped, new ones are null.

    Raises `ArrowInvalid` if a value would be lost or a required one is missing.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [_column(batch, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    has_column = _has_column(batch.schema, field)
    column = batch.column(field.name) if has_column else pa.nulls(batch.num_rows, field.type)
    if column.null_count and not field.nullable:
        raise pa.ArrowInvalid(f"column {field.name} is required and has nulls")
    return column if column.type == field.type else column.cast(field.type)


def _has_column(written: pa.Schema, field: pa.Field) -> bool:
    """Return whether rows were written with this column, and not with another of its name."""
    at = written.get_field_index(field.name)
    return at >= 0 and promotion_of(written.field(at)) == promotion_of(field)


def unfilled_columns(written: pa.Schema, schema: pa.Schema) -> tuple[str, ...]:
    """Return the promoted columns of `schema` that rows of another schema do not have."""
    return tuple(
        field.name
        for field in schema
        if promotion_of(field) is not None and not _has_column(written, field)
    )


def filled(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> tuple[pa.RecordBatch, ...]:
    """Return conformed rows with these promoted columns computed from their maps."""
    return tuple(with_filled(batch, names) for batch in batches) if names else tuple(batches)

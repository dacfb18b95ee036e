"""Rows of a result as table cells. Values have their JSON form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from frazil.cli.terminal.table import Heading

if TYPE_CHECKING:
    import pyarrow as pa


def headings_of(schema: pa.Schema) -> list[Heading]:
    """Return the columns of a result."""
    import pyarrow as pa

    return [
        Heading(
            name=field.name,
            is_number=pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type),
        )
        for field in schema
    ]


def rows_of(batch: pa.RecordBatch) -> Iterator[list[str | None]]:
    """Yield the rows of a batch as cells."""
    import pyarrow as pa

    from frazil.results import json_rows

    timestamps = {
        index for index, field in enumerate(batch.schema) if pa.types.is_timestamp(field.type)
    }
    for row in json_rows(batch):
        yield _cells(json.loads(row), timestamps)


def _cells(values: Sequence[Any], timestamps: set[int]) -> list[str | None]:
    return [
        value.replace("T", " ") if index in timestamps and value is not None else text_of(value)
        for index, value in enumerate(values)
    ]


def text_of(value: Any) -> str | None:
    """Return a value as text; nested values as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)

"""Rows as an HTML table for a notebook: bounded, and escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pyarrow as pa

COLUMNS_MAX = 40
CELL_LENGTH_MAX = 200
TYPE = '<span style="font-weight:normal;font-size:smaller">{}</span>'


def html_of(batches: Sequence[pa.RecordBatch], schema: pa.Schema, rows_max: int) -> str:
    """Return a table of the first rows."""
    visible = pa.Table.from_batches(batches, schema).slice(0, rows_max)
    row_count = sum(batch.num_rows for batch in batches)
    fields = list(schema)[:COLUMNS_MAX]
    styles = [f'style="text-align:{_side(field.type)};vertical-align:top"' for field in fields]
    head = "".join(
        f"<th {style}>{_cell(field.name)}<br>{TYPE.format(_cell(str(field.type)))}</th>"
        for style, field in zip(styles, fields, strict=True)
    )
    columns = [
        [f"<td {style}>{_cell(value)}</td>" for value in column.to_pylist(maps_as_pydicts="lossy")]
        for style, column in zip(styles, visible.columns, strict=False)
    ]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
    notes = []
    if row_count > rows_max:
        notes.append(f"the first {rows_max} rows")
    if len(schema) > COLUMNS_MAX:
        notes.append(f"the first {COLUMNS_MAX} of {len(schema)} columns")
    note = f"<p>{', '.join(notes)}</p>" if notes else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _side(kind: pa.DataType) -> str:
    """Align numbers to the right."""
    return "right" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "left"


def _cell(value: object) -> str:
    if value is None:
        return "<i>NULL</i>"
    if isinstance(value, dict):
        value = ", ".join(f"{key}: {item}" for key, item in value.items())
    text = str(value)
    if len(text) > CELL_LENGTH_MAX:
        text = text[:CELL_LENGTH_MAX] + "…"
    return html.escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))

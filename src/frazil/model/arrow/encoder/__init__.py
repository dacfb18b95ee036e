"""model/arrow/encoder: Arrow to OTLP bytes.

rows ── columns, value types ──> fields ── protobuf ──> messages ── grouping ──> requests

encode.py         encode: rows to requests
rows.py           Cells: checked columns; errors with row and column
value_types.py    read the column `_value_types`
attributes.py     attributes and bodies
nested_values.py  values that are JSON
fields.py         columns as protobuf fields
protobuf.py       protobuf bytes by column
grouping.py       messages shared by many rows, and requests
common.py         resources and scopes
logs.py           log records
spans.py          spans
metrics.py        metrics and data points
"""

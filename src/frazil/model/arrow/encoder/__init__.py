"""model/arrow/encoder: from Arrow to OTLP bytes.

attributes.py     attributes and bodies
common.py         resources and scopes
encode.py         encode: rows become requests again
fields.py         columns as fields of protobuf
grouping.py       what is said once for many rows, and requests
logs.py           log records
metrics.py        metrics and data points
nested_values.py  those that are JSON
protobuf.py       protobuf's bytes, by column
rows.py           columns, checked; errors that say where something is wrong
spans.py          spans
value_types.py    what the values were
"""

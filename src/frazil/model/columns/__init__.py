"""columns: telemetry as columns of Arrow. Needs pyarrow and numba, which the log does not.

    schemas.py          the four tables, column for column
    records.py          the table of any other topic
    telemetry.py        Request, Decoded, DeadLetter: into a decoder, and out of it
    decode.py           decode, decode_numbered: many requests become rows; warm
    decode_any.py       the same, whatever is in them; dead letters as rows
    decode_fields.py    the fields of OTLP
    decode_table.py     the table that steers the walk
    decode_walk.py      the walk over the bytes
    decode_read.py      protobuf's tags, lengths, numbers, texts
    decode_heap.py      what a walk finds
    decode_requests.py  requests walked, and what is wrong with them
    decode_sort.py      attributes in the order of their keys
    decode_numbers.py   numbers as text
    decode_text.py      values as text
    decode_types.py     what values were before they became text
    decode_lay.py       the buffers of Arrow
    decode_arrays.py    arrays around them
    decode_columns.py   columns of any level
    decode_common.py    the columns that every table begins with
    decode_logs.py      those of logs
    decode_spans.py     those of spans
    decode_metrics.py   those of metrics
    decode_memory.py    raw memory, and the compiler
    encode.py           encode: rows become requests again
    encode_rows.py      columns, checked; errors that say where something is wrong
    encode_types.py     what the values were
    encode_values.py    attributes and bodies
    encode_json.py      those that are JSON
    encode_fields.py    columns as fields of protobuf
    encode_wire.py      protobuf's bytes, by column
    encode_levels.py    what is said once for many rows, and requests
    encode_common.py    resources and scopes
    encode_logs.py      log records
    encode_spans.py     spans
    encode_metrics.py   metrics and data points

Nothing here does I/O. `docs/schemas.md` says where each value comes from.
"""

from frazil.model.columns.decode import TABLE_OF, decode, decode_numbered, warm
from frazil.model.columns.decode_any import Decode, decode_some, rows_of_dead
from frazil.model.columns.encode import encode
from frazil.model.columns.records import HEADER, RECORDS
from frazil.model.columns.schemas import (
    DEAD_LETTERS,
    LOGS,
    METRICS,
    NUMBERED_TABLES,
    SPANS,
    TABLES,
    numbered,
)
from frazil.model.columns.telemetry import DeadLetter, Decoded, Request

__all__ = [
    "DEAD_LETTERS",
    "HEADER",
    "LOGS",
    "METRICS",
    "NUMBERED_TABLES",
    "RECORDS",
    "SPANS",
    "TABLES",
    "TABLE_OF",
    "DeadLetter",
    "Decode",
    "Decoded",
    "Request",
    "decode",
    "decode_numbered",
    "decode_some",
    "encode",
    "numbered",
    "rows_of_dead",
    "warm",
]

"""encode: rows of Arrow become OTLP requests again.

1. Rows are taken in pieces, so that a table of any size takes little memory.
2. Each record becomes bytes, column by column, and so does each resource, scope and metric, once
   for all rows that share it and follow each other.
3. These are put into each other, cut where a request would become too large.

What `decode` reads comes back as it was, but for what is on the page docs/schemas.md. Nothing
that is only derived is looked at: the columns that `NEEDED` names are enough.

    encode_rows       columns, checked, and errors that say where something is wrong
    encode_types      what the values were
    encode_values     attributes and bodies; encode_json: those that are JSON
    encode_fields     columns as fields of protobuf, whose bytes encode_wire writes
    encode_levels     what is said once for many rows, and requests made of it
    encode_common, _logs, _spans, _metrics   which column is which field
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from frazil.errors import Malformed
from frazil.model.arrow.encoder.common import RESOURCE, SCOPE, resource_level, scope_level
from frazil.model.arrow.encoder.grouping import MessageLevel, requests
from frazil.model.arrow.encoder.logs import LOG, log_records
from frazil.model.arrow.encoder.metrics import METRIC, POINT, metric_levels, points
from frazil.model.arrow.encoder.protobuf import inside, joined
from frazil.model.arrow.encoder.rows import EncoderRows, read_columns
from frazil.model.arrow.encoder.spans import SPAN, spans
from frazil.model.arrow.encoder.value_types import PARTS, read_types
from frazil.model.arrow.schemas import TABLES, VALUE_TYPES
from frazil.model.signal import Signal

NEEDED = {
    "logs": (*RESOURCE, *SCOPE, *LOG),
    "traces": (*RESOURCE, *SCOPE, *SPAN),
    "metrics": (*RESOURCE, *SCOPE, *METRIC, *POINT),
}
"""Signal -> columns without which there is no way back. `_value_types` may be missing, as in old
files: then all values are strings."""
REQUEST_ROWS_MAX = 8192
"""Of one request: what a collector's batches have."""
REQUEST_BYTES_MAX = 4 << 20
"""Of one request, unless it is a single row that is larger: what gRPC servers take if nobody told
them otherwise. Our own take 20 MiB."""
PIECE_BYTES_MAX = 32 << 20
"""Of the columns that are worked on at a time, unless they are a single row."""


def encode(signal: str, rows: pa.RecordBatch | pa.Table) -> Iterator[bytes]:
    """Requests, as protobuf writes them, from rows of the table of a signal: "logs", "traces" or
    "metrics". Rows stay in their order.

    `Malformed`, with row and column, when the rows are not of this table, or when a value is not
    what `_value_types` says. Requests of the rows before may have been handed out by then.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    names = table.column_names
    missing = [name for name in NEEDED[signal] if name not in names]
    if missing:
        raise Malformed(f"rows of {Signal(signal).table} have no column {', '.join(missing)}")
    wanted = [name for name in (*NEEDED[signal], VALUE_TYPES.name) if name in names]
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise Malformed(f"rows of {Signal(signal).table} have two columns {', '.join(twice)}")
    return _encode(signal, table.select(wanted))


def _encode(signal: str, table: pa.Table) -> Iterator[bytes]:
    begin = 0
    while begin < table.num_rows:
        piece = table.slice(begin, REQUEST_ROWS_MAX)
        while piece.nbytes > PIECE_BYTES_MAX and piece.num_rows > 1:
            piece = piece.slice(0, piece.num_rows // 2)
        yield from _requests(signal, piece, begin)
        begin += piece.num_rows


def _requests(signal: str, piece: pa.Table, first_row: int) -> Iterator[bytes]:
    name = Signal(signal).table
    columns = read_columns(piece, TABLES[name], first_row)
    rows = EncoderRows(columns)
    types = read_types(columns.get(VALUE_TYPES.name), piece.num_rows, PARTS[name])
    resources = resource_level(rows, types)
    scopes = scope_level(rows, types, resources)
    levels: list[MessageLevel] = [scopes, resources]
    if signal == "metrics":
        levels = metric_levels(rows, types, scopes) + levels
        records = inside(1, points(rows, types))
    else:
        records = inside(2, log_records(rows, types) if signal == "logs" else spans(rows, types))
    yield from requests(joined(records), levels, REQUEST_BYTES_MAX)

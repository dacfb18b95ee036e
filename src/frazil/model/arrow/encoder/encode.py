"""encode: Arrow rows to OTLP requests.

1. Rows are processed in pieces, so that a table of any size takes little memory.
2. Records become bytes, column by column; resources, scopes and metrics once for consecutive rows
   that share them.
3. These are nested, and split where a request would become too large.

Returns what `decode` has read, with the exceptions in docs/schemas.md. Derived columns are ignored:
the columns in `NEEDED` are enough.
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
"""Signal -> required columns. `_value_types` may be missing, as in old files: then all values
are strings."""
REQUEST_ROWS_MAX = 8192
"""Rows of one request: the size of a collector's batches."""
REQUEST_BYTES_MAX = 4 << 20
"""Bytes of one request, unless a single row is larger: the default limit of gRPC servers. Ours
accept 20 MiB."""
PIECE_BYTES_MAX = 32 << 20
"""Bytes of columns processed at a time, unless a single row is larger."""


def encode(
    signal: str, rows: pa.RecordBatch | pa.Table, *, has_empty: bool = False
) -> Iterator[bytes]:
    """Yield OTLP requests in protobuf from rows of the table of a signal: "logs", "traces" or
    "metrics". Rows stay in order. With `has_empty` resources, scopes and statuses are written even
    if they are empty, for readers that need them.

    Raises `Malformed` with row and column if the rows are not of this table, or a value does not
    match `_value_types`. Requests of earlier rows may have been yielded by then.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    names = table.column_names
    missing = [name for name in NEEDED[signal] if name not in names]
    if missing:
        raise Malformed(f"rows of {Signal(signal).table} have no column {', '.join(missing)}")
    selected = [name for name in (*NEEDED[signal], VALUE_TYPES.name) if name in names]
    twice = [name for name in selected if names.count(name) > 1]
    if twice:
        raise Malformed(f"rows of {Signal(signal).table} have two columns {', '.join(twice)}")
    return _encode(signal, table.select(selected), has_empty=has_empty)


def _encode(signal: str, table: pa.Table, *, has_empty: bool) -> Iterator[bytes]:
    begin = 0
    while begin < table.num_rows:
        piece = table.slice(begin, REQUEST_ROWS_MAX)
        while piece.nbytes > PIECE_BYTES_MAX and piece.num_rows > 1:
            piece = piece.slice(0, piece.num_rows // 2)
        yield from _requests(signal, piece, begin, has_empty=has_empty)
        begin += piece.num_rows


def _requests(signal: str, piece: pa.Table, first_row: int, *, has_empty: bool) -> Iterator[bytes]:
    name = Signal(signal).table
    columns = read_columns(piece, TABLES[name], first_row)
    rows = EncoderRows(columns)
    types = read_types(columns.get(VALUE_TYPES.name), piece.num_rows, PARTS[name])
    resources = resource_level(rows, types, has_empty=has_empty)
    scopes = scope_level(rows, types, resources, has_empty=has_empty)
    levels: list[MessageLevel] = [scopes, resources]
    if signal == "metrics":
        levels = metric_levels(rows, types, scopes) + levels
        records = inside(1, points(rows, types))
    else:
        is_log = signal == "logs"
        record = log_records(rows, types) if is_log else spans(rows, types, has_empty=has_empty)
        records = inside(2, record)
    yield from requests(joined(records), levels, REQUEST_BYTES_MAX)

"""Rows as an Arrow IPC stream."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from frazil.errors import Malformed, TooLarge
from frazil.serve.tables.ipc_sizes import check_stream

VIEW_WORDS = 4
"""Of 32 bits, of a string view; the first one is its length."""


def rows_of_stream(body: bytes, bytes_max: int) -> pa.Table:
    """Return the rows of a stream. Raises `Malformed` if it is not one, `TooLarge` if its rows take
    more bytes than this, however they are compressed or encoded."""
    try:
        check_stream(body, bytes_max)
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
        # A row has a key of at least one byte.
        plain_bytes = max(table.num_rows, sum(map(_plain_bytes, table.columns)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Malformed(f"the body is not an Arrow IPC stream: {error}") from None
    if plain_bytes > bytes_max:
        raise TooLarge(
            f"the rows take {plain_bytes} bytes when they are decoded, which is above "
            f"serve.rows_bytes_max ({bytes_max}); send fewer rows at once"
        )
    return table


def _plain_bytes(column: pa.ChunkedArray) -> int:
    """Return the bytes of values that are stored once and used by many rows; 0 of others, which
    have been counted as buffers."""
    return sum(_shared_bytes(chunk) for chunk in column.chunks)


def _shared_bytes(chunk: pa.Array) -> int:
    kind = chunk.type
    if isinstance(kind, pa.BaseExtensionType):
        return _shared_bytes(chunk.storage)
    if types.is_run_end_encoded(kind):
        raise Malformed("a column is run-end encoded; send its values")
    if types.is_dictionary(kind):
        lengths = _lengths(chunk.dictionary).take(chunk.indices)
    elif _is_view(kind):
        lengths = _lengths(chunk)
    else:
        return 0
    return int(pc.sum(lengths).as_py() or 0)


def _lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each value."""
    kind = values.type
    if _is_view(kind):
        return _view_lengths(values)
    if types.is_primitive(kind) or types.is_decimal(kind):
        return pa.repeat(kind.bit_width // 8, len(values))
    return pc.binary_length(values)


def _is_view(kind: pa.DataType) -> bool:
    return bool(types.is_string_view(kind) or types.is_binary_view(kind))


def _view_lengths(values: pa.Array) -> pa.Array:
    """Do what Arrow's `binary_length` does for other types."""
    words = memoryview(values.buffers()[1] or b"").cast("i")
    begin, end = VIEW_WORDS * values.offset, VIEW_WORDS * (values.offset + len(values))
    lengths = pa.array(words[begin:end:VIEW_WORDS].tolist(), pa.int32())
    return pc.if_else(values.is_valid(), lengths, 0)


def stream_of(batch: pa.RecordBatch) -> bytes:
    """Return rows as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()
    return body

"""Rows streamed to a client as Arrow, CSV or Parquet.

On an error the connection is cut without an end, so that clients notice the missing rows. An Arrow
stream then ends with an empty batch whose metadata has the error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import FrazilError, Malformed, TooLarge
from frazil.results import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    GROUP_ROWS,
    PARQUET,
    PARTS_KEY,
    Result,
    csv_head,
    csv_of,
    row_groups,
)
from frazil.serve.http.responses import failure_of

CSV = b"text/csv; charset=utf-8"

PIECE_ROWS = 8192
"""Rows per piece of CSV; larger batches are split to bound memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStream:
    """A response that is sent while it is produced."""

    content_type: bytes
    pieces: Iterator[bytes]
    """Read in a thread, one at a time."""
    stop: Callable[[], None]
    """Cancel the next piece. Any thread may call it."""
    close: Callable[[], None]
    """Release the resources of `pieces`."""
    farewell: Callable[[FrazilError], bytes]
    """Last bytes to send before the connection is cut on an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStream:
    """A response that ends only with the client or the node."""

    content_type: bytes
    pieces: AsyncIterator[bytes]
    close: Callable[[], None]
    """Release the resources of `pieces`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketStream:
    """Messages over a WebSocket, until the client or the node ends it."""

    pieces: AsyncIterator[bytes]
    """JSON of each message; nothing to find out whether the client is still there."""
    close: Callable[[], None]
    """Release the resources of `pieces`."""


def arrow_stream(result: Result, *, may_cut: bool, has_parts: bool) -> RowStream:
    """Rows as an Arrow IPC stream. `has_parts` adds the scans to the schema's metadata."""
    sink = _Pieces()
    schema = result.schema
    if has_parts:
        metadata = {**(schema.metadata or {}), PARTS_KEY: msgspec.json.encode(result.parts())}
        schema = schema.with_metadata(metadata)
    writer = pa.ipc.new_stream(sink, schema)

    def pieces() -> Iterator[bytes]:
        for batch in result:
            writer.write_batch(batch)
            yield sink.take()
        if result.is_cut:
            if not may_cut:
                raise _cut(result)
            writer.write_batch(_empty(result.schema), custom_metadata={CUT_KEY: b"true"})
        writer.close()
        yield sink.take()

    def farewell(error: FrazilError) -> bytes:
        why = msgspec.json.encode(failure_of(error))
        writer.write_batch(_empty(result.schema), custom_metadata={ERROR_KEY: why})
        return sink.take()

    return RowStream(
        content_type=ARROW.encode(),
        pieces=pieces(),
        stop=result.cancel,
        close=result.close,
        farewell=farewell,
    )


def csv_stream(result: Result) -> RowStream:
    """Rows as CSV with a header line."""

    def pieces() -> Iterator[bytes]:
        head = csv_head(result.schema)  # sent with the first rows: earlier errors keep their status
        for batch in result:
            for start in range(0, batch.num_rows, PIECE_ROWS):
                yield head + csv_of(batch.slice(start, PIECE_ROWS))
                head = b""
        if result.is_cut:
            raise _cut(result)
        yield head

    return RowStream(
        content_type=CSV,
        pieces=pieces(),
        stop=result.cancel,
        close=result.close,
        farewell=lambda _: b"",
    )


def parquet_stream(result: Result) -> RowStream:
    """Rows as a Parquet file, one row group at a time."""
    sink = _Pieces()

    def pieces() -> Iterator[bytes]:
        try:
            with pq.ParquetWriter(sink, result.schema, compression="zstd") as writer:
                for group in row_groups(result):
                    writer.write_table(group, row_group_size=GROUP_ROWS)
                    yield sink.take()
                if result.is_cut:
                    raise _cut(result)
        except pa.ArrowException as error:
            raise Malformed(f"these rows cannot be written as Parquet: {error}; use CAST") from None
        yield sink.take()

    return RowStream(
        content_type=PARQUET.encode(),
        pieces=pieces(),
        stop=result.cancel,
        close=result.close,
        farewell=lambda _: b"",
    )


def _cut(result: Result) -> TooLarge:
    return TooLarge(
        f"the result has more than {result.returned_count} rows, the limit of this query or "
        "query.rows_max; add a LIMIT, or aggregate"
    )


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class _Pieces:
    """File-like sink: Arrow writes, `take` returns what was written since the last call."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None:
        """Nothing is buffered."""

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken

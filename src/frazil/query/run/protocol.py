"""Messages between the engine and a worker process, over a socket.

frame      length (8 bytes, little endian), kind (1 byte), then `length` bytes
kind 0     a message as MessagePack
kind 1     rows, as an Arrow IPC stream

engine     WorkerHello; then per query PlanRequest, RunRequest or both
worker     WorkerReady; PlanReply or Failed; after RunRequest Started, rows, Finished or Failed
"""

from __future__ import annotations

import socket
import struct

import msgspec
import pyarrow as pa

from frazil import errors
from frazil.errors import FrazilError
from frazil.query.plan.plan import QueryPlan
from frazil.query.run.local import EngineQuery
from frazil.query.scan.parquet_scan import ParquetScan

_HEAD = struct.Struct("<QB")
MESSAGE, ROWS = 0, 1


class WorkerHello(msgspec.Struct, frozen=True, tag=True):
    """The schemas of the tables, as Arrow IPC."""

    schemas: dict[str, bytes]


class WorkerReady(msgspec.Struct, frozen=True, tag=True):
    """The worker has started."""


class PlanRequest(msgspec.Struct, frozen=True, tag=True):
    """Plan this query."""

    query: EngineQuery


class PlanReply(msgspec.Struct, frozen=True, tag=True):
    """The plan, and how long planning took."""

    plan: QueryPlan
    planning_ms: int


class RunRequest(msgspec.Struct, frozen=True, tag=True):
    """Run this query over rows. A memory file with the rows in memory comes with it."""

    query: EngineQuery
    extents: dict[str, tuple[int, int]]
    """Position and length of each table in the memory file."""
    scans: dict[str, list[ParquetScan]]
    """Data files that the worker reads itself."""
    lake_schemas: dict[str, bytes]
    leaf_count_max: int


class Started(msgspec.Struct, frozen=True, tag=True):
    """The query runs and its rows have this schema."""

    schema: bytes


class Finished(msgspec.Struct, frozen=True, tag=True):
    """There are no more rows."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The error the query ended with."""

    kind: str
    message: str

    def error(self) -> FrazilError | AssertionError:
        kind: type[FrazilError | AssertionError] = getattr(errors, self.kind, AssertionError)
        return kind(self.message)


Message = (
    WorkerHello | WorkerReady | PlanRequest | PlanReply | RunRequest | Started | Finished | Failed
)
_DECODER = msgspec.msgpack.Decoder(Message)


def failed_of(error: FrazilError | AssertionError) -> Failed:
    return Failed(type(error).__name__, str(error))


def send(channel: socket.socket, message: Message, *, file: int | None = None) -> None:
    body = msgspec.msgpack.encode(message)
    head = _HEAD.pack(len(body), MESSAGE)
    if file is None:
        channel.sendall(head + body)
    else:
        socket.send_fds(channel, [head], [file])
        channel.sendall(body)


def send_rows(channel: socket.socket, batch: pa.RecordBatch) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body = sink.getvalue()
    channel.sendall(_HEAD.pack(len(body), ROWS))
    channel.sendall(body)


def receive(channel: socket.socket) -> tuple[Message | pa.RecordBatch, int | None]:
    """Return the next frame and the file sent with it. `EOFError` if the other side has closed."""
    try:
        head, files, _, _ = socket.recv_fds(channel, _HEAD.size, 1)
        head += _exactly(channel, _HEAD.size - len(head)) if head else b""
        if not head:
            raise EOFError
        length, kind = _HEAD.unpack(head)
        body = _exactly(channel, length)
    except ConnectionError:
        raise EOFError from None
    file = files[0] if files else None
    if kind == ROWS:
        return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch(), file
    return _DECODER.decode(body), file


def _exactly(channel: socket.socket, length: int) -> bytearray:
    body = bytearray(length)
    view = memoryview(body)
    at = 0
    while at < length:
        count = channel.recv_into(view[at:])
        if count == 0:
            raise EOFError
        at += count
    return body

"""What this process and one apart say to each other, over a socket.

frame      length (8 bytes, little endian), kind (1 byte), then that many bytes
kind 0     a message in MessagePack
kind 1     rows, as an Arrow IPC stream

here       Hello, then for each query Ask, and Carry if it is to run there
apart      Planned or Failed; after Carry: Started, rows, Finished or Failed
"""

from __future__ import annotations

import socket
import struct

import msgspec
import pyarrow as pa

from frazil import errors
from frazil.errors import FrazilError
from frazil.query.plan.plan import QueryPlan
from frazil.query.scan.parquet_scan import ParquetScan
from frazil.query.sql.dialect import EngineText

_HEAD = struct.Struct("<QB")
MESSAGE, ROWS = 0, 1


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The schemas of the tables, as Arrow writes them."""

    schemas: dict[str, bytes]


class WorkerReady(msgspec.Struct, frozen=True, tag=True):
    """It is there, and has all it needs."""


class PlanRequest(msgspec.Struct, frozen=True, tag=True):
    """Plan this text."""

    spelled: EngineText
    moment_us: int
    memory_bytes_max: int


class PlanReply(msgspec.Struct, frozen=True, tag=True):
    """What the plan tells, and how long it took to make."""

    plan: QueryPlan
    planning_ms: int


class RunRequest(msgspec.Struct, frozen=True, tag=True):
    """Run what was planned over rows. A file comes with it; this is where tables lie in it."""

    places: dict[str, tuple[int, int]]
    scans: dict[str, list[ParquetScan]]
    """Files of the lake that it reads itself."""
    cold_schemas: dict[str, bytes]


class Started(msgspec.Struct, frozen=True, tag=True):
    """It runs; its rows will have this schema."""

    schema: bytes


class Finished(msgspec.Struct, frozen=True, tag=True):
    """That was the last row."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The error of ours that it ended with."""

    kind: str
    message: str

    def error(self) -> FrazilError:
        kind: type[FrazilError] = getattr(errors, self.kind)
        return kind(self.message)


Message = Hello | WorkerReady | PlanRequest | PlanReply | RunRequest | Started | Finished | Failed
_DECODER = msgspec.msgpack.Decoder(Message)


def failed_of(error: FrazilError) -> Failed:
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
    """The next frame, and the file that came with it. `EOFError` when the other side is gone."""
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

"""Messages between the engine and a worker process, over a socket.

frame      length (8 bytes, little endian), kind (1 byte), then `length` bytes
kind 0     a message as MessagePack
kind 1     rows, as an Arrow IPC stream

engine     WorkerHello; then per query PlanRequest, then RunRequest with memory files
worker     WorkerReady; Planned or Failed; Started, rows, Finished, or Failed, or Gone
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import msgspec
import pyarrow as pa

from frazil import errors
from frazil.errors import FrazilError
from frazil.query.plan.plan import QueryPlan
from frazil.query.run.references import RowRefs
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.views import EngineViews

_HEAD = struct.Struct("<QB")
MESSAGE, ROWS = 0, 1
MEMORY_SLACK = 2
"""A worker may grow by this many times `memory_bytes_max`: DataFusion counts the memory it holds,
but not the batches it is producing."""
FORKED, LOADED = b"f", b"l"
PID = struct.Struct("<i")
"""Follows `FORKED` in a reply."""
"""Replies of the fork server: a worker, with its process; everything is loaded,
from now on workers share it, and forks are fast."""
FILES_MAX = 250
"""The kernel passes at most 253 files with a message."""


class WorkerHello(msgspec.Struct, frozen=True, tag=True):
    """The schemas of the tables, as Arrow IPC."""

    schemas: dict[str, bytes]


class WorkerReady(msgspec.Struct, frozen=True, tag=True):
    """The worker has started."""


class PlanRequest(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Plan this text."""

    text: str
    topics: tuple[str, ...]
    """Tables of topics that the text may name."""
    tables: tuple[tuple[str, bytes], ...] = ()
    """Keyed tables and other tables of the lake that the text may name, with their schemas as Arrow
    IPC."""
    keyed: tuple[str, ...] = ()
    """Which of them are keyed tables."""
    is_listing: bool = False
    """Whether all of them are needed, not only those that the text names."""
    views: EngineViews = EngineViews()
    """Views of users that the text may name."""
    now_us: int
    memory_bytes_max: int


class Planned(msgspec.Struct, frozen=True, tag=True):
    """The translated text and its plan: which rows it needs."""

    sql: EngineText
    plan: QueryPlan


class RunRequest(msgspec.Struct, frozen=True, tag=True):
    """Run the planned query over these rows."""

    rows: RowRefs


class Gone(msgspec.Struct, frozen=True, tag=True):
    """A segment file was removed or replaced meanwhile: send the rows of now."""

    path: str


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
    WorkerHello
    | WorkerReady
    | PlanRequest
    | Planned
    | RunRequest
    | Gone
    | Started
    | Finished
    | Failed
)
_DECODER = msgspec.msgpack.Decoder(Message)


def failed_of(error: FrazilError | AssertionError) -> Failed:
    return Failed(type(error).__name__, str(error))


def send(channel: socket.socket, message: Message, files: list[int] | None = None) -> None:
    body = msgspec.msgpack.encode(message)
    head = _HEAD.pack(len(body), MESSAGE)
    if files is None:
        channel.sendall(head + body)
    else:
        socket.send_fds(channel, [head], files)
        channel.sendall(body)


def send_rows(channel: socket.socket, batch: pa.RecordBatch) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body = sink.getvalue()
    channel.sendall(_HEAD.pack(len(body), ROWS))
    channel.sendall(body)


def receive(
    channel: socket.socket, check_rows: Callable[[int], None] = lambda _: None
) -> tuple[Message | pa.RecordBatch, list[int]]:
    """Return the next frame and the files sent with it. `EOFError` if the other side has closed.
    Calls `check_rows` with the length of rows before they are received."""
    try:
        head, files, _, _ = socket.recv_fds(channel, _HEAD.size, FILES_MAX)
        head += _exactly(channel, _HEAD.size - len(head)) if head else b""
        if not head:
            raise EOFError
        length, kind = _HEAD.unpack(head)
        if kind == ROWS:
            check_rows(length)
        body = _exactly(channel, length)
    except ConnectionError:
        raise EOFError from None
    if kind == ROWS:
        return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch(), files
    return _DECODER.decode(body), files


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

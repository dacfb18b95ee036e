"""Arrow IPC streams with 64-byte aligned buffers, for mapping.

pyarrow's writer aligns to 8 bytes, and that cannot be configured. The format allows more: a message
has the position of each buffer in its body, and its metadata may be padded. So the written messages
are padded here; any reader of Arrow IPC streams can read the result.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google_crc32c import extend as extend_crc32c

from frazil.disk import Buffer

ALIGNMENT = 64
"""Recommended by Arrow; size of a cache line and of a wide vector register."""
PREFIX = struct.Struct("<II")
"""Precedes each message: 0xFFFFFFFF, length of the metadata with padding."""
CONTINUATION = 0xFFFFFFFF
LENGTH = struct.Struct("<q")
BUFFER = struct.Struct("<qq")
"""Position of a buffer in the body, and its length."""
END_OF_STREAM = PREFIX.pack(CONTINUATION, 0).ljust(ALIGNMENT, b"\0")

# Field numbers of the flatbuffer tables in Message.fbs.
MESSAGE_KIND, MESSAGE_HEADER, MESSAGE_BODY_LENGTH = 1, 2, 3
KIND_DICTIONARY, KIND_BATCH = 2, 3
DICTIONARY_DATA = 1
BATCH_BUFFERS = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedStream:
    """A stream to be written at a multiple of 64 bytes."""

    buffers: list[Buffer]
    length: int
    """In bytes, a multiple of 64."""
    check: int
    """CRC32C of the stream."""
    messages: list[tuple[int, int]]
    """Position and length of each batch's message in the stream."""


def encode_stream(batches: Sequence[pa.RecordBatch]) -> EncodedStream:
    """Encode batches of one schema. They must share their dictionaries."""
    parts: list[bytes | pa.Buffer] = []
    messages: list[tuple[int, int]] = []
    position = 0
    for kind, metadata, body in _messages(_written(batches)):
        message = _aligned(kind, metadata, body)
        length = sum(map(len, message))
        if kind == KIND_BATCH:
            messages.append((position, length))
        parts += message
        position += length
    parts.append(END_OF_STREAM)
    check = 0
    for part in parts:
        check = extend_crc32c(check, part)
    buffers: list[Buffer] = [memoryview(part) for part in parts]
    length = position + len(END_OF_STREAM)
    return EncodedStream(buffers=buffers, length=length, check=check, messages=messages)


def decode_stream(data: pa.Buffer) -> list[pa.RecordBatch]:
    """Decode a stream without copying. Raises `ArrowInvalid` or `OSError` if it is invalid."""
    with pa.ipc.open_stream(data) as reader:
        batches = list(reader)
    for batch in batches:
        batch.validate()
    return batches


def stream_schema(data: pa.Buffer) -> pa.Schema:
    with pa.ipc.open_stream(data) as reader:
        return reader.schema


def _written(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """Write with pyarrow. Runs twice, first to measure: growing the buffer costs more."""
    size = pa.MockOutputStream()
    _write(size, batches)
    data = pa.allocate_buffer(size.size())
    _write(pa.FixedSizeBufferWriter(data), batches)
    return data


def _write(sink: Any, batches: Sequence[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _messages(stream: pa.Buffer) -> Iterator[tuple[int, bytearray, pa.Buffer]]:
    """Yield kind, metadata and body of each message."""
    position = 0
    while True:
        marker, length = PREFIX.unpack_from(stream, position)
        assert marker == CONTINUATION
        if length == 0:
            return
        position += PREFIX.size
        metadata = bytearray(stream.slice(position, length))
        position += length
        body_length = _body_length(metadata)
        kind = metadata[_field(metadata, _u32(metadata, 0), MESSAGE_KIND)]
        yield kind, metadata, stream.slice(position, body_length)
        position += body_length


def _aligned(kind: int, metadata: bytearray, body: pa.Buffer) -> list[bytes | pa.Buffer]:
    """Return a message with padded buffers."""
    parts: list[bytes | pa.Buffer] = []
    moved = 0
    for at in _buffer_entries(kind, metadata):
        begin, length = BUFFER.unpack_from(metadata, at)
        BUFFER.pack_into(metadata, at, moved, length)
        if length:
            padding = bytes(-length % ALIGNMENT)
            parts += [body.slice(begin, length), padding]
            moved += length + len(padding)
    if moved:
        root = _u32(metadata, 0)
        LENGTH.pack_into(metadata, _field(metadata, root, MESSAGE_BODY_LENGTH), moved)
    metadata += bytes(-(PREFIX.size + len(metadata)) % ALIGNMENT)
    return [PREFIX.pack(CONTINUATION, len(metadata)) + metadata, *parts]


def _buffer_entries(kind: int, metadata: bytearray) -> range:
    """Return where in the metadata the (position, length) of each buffer is."""
    if kind not in (KIND_DICTIONARY, KIND_BATCH):
        return range(0)
    batch = _table(metadata, _u32(metadata, 0), MESSAGE_HEADER)
    if kind == KIND_DICTIONARY:
        batch = _table(metadata, batch, DICTIONARY_DATA)
    vector = _table(metadata, batch, BATCH_BUFFERS)
    count = _u32(metadata, vector)
    first = vector + 4
    return range(first, first + BUFFER.size * count, BUFFER.size)


def _body_length(metadata: bytearray) -> int:
    at = _field(metadata, _u32(metadata, 0), MESSAGE_BODY_LENGTH)
    length: int = LENGTH.unpack_from(metadata, at)[0] if at else 0
    return length


def _table(data: bytearray, table: int, field: int) -> int:
    """Return the position of the table or vector that a field refers to."""
    at = _field(data, table, field)
    assert at, "Arrow always writes this field"
    return at + _u32(data, at)


def _field(data: bytearray, table: int, field: int) -> int:
    """Return the position of a field of a flatbuffer table; 0 if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    vtable = table - back
    (vtable_length,) = struct.unpack_from("<H", data, vtable)
    if 4 + 2 * field >= vtable_length:
        return 0
    (inside,) = struct.unpack_from("<H", data, vtable + 4 + 2 * field)
    return table + inside if inside else 0


def _u32(data: bytearray, at: int) -> int:
    value: int = struct.unpack_from("<I", data, at)[0]
    return value

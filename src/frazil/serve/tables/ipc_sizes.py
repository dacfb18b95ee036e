"""How many bytes the batches of an Arrow IPC stream take once they are read, by metadata alone.

A buffer of a compressed batch begins with its size before compression, and buffers may overlap: so
what is read can be larger than the stream by far. Metadata are flatbuffers, as in Message.fbs and
Schema.fbs of Arrow's format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from frazil.errors import Malformed, TooLarge

U16, I32, U32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")
SIZE = struct.Struct("<q")
BUFFER = struct.Struct("<qq")
"""Position in the body, length."""
HEADER = 2
"""Field of a message: a record batch or dictionary batch, by its type."""
DICTIONARY_DATA = 1
"""Field of a dictionary batch: its record batch."""
BUFFERS, COMPRESSION = 2, 3
"""Fields of a record batch."""
NOT_COMPRESSED = -1
"""Size of a buffer that is stored as it is in a compressed batch."""
OLD_COMPRESSION = b"ARROW:experimental_compression"
"""Metadata of a message with which Arrow 0.17 said that it is compressed."""


def check_stream(body: bytes, bytes_max: int) -> None:
    """Raise `TooLarge` if the batches of a stream take more bytes than this, `Malformed` or
    `pa.ArrowException` if it is no stream. Decompresses nothing."""
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    total = 0
    for message in _messages(reader):
        try:
            total += _body_bytes(message)
        except struct.error as error:
            raise Malformed(f"a message of the stream cannot be read: {error}") from None
        if total > bytes_max:
            raise TooLarge(
                f"the rows take at least {total} bytes without compression, which is above "
                f"serve.rows_bytes_max ({bytes_max}); send fewer rows at once"
            )


def _messages(reader: pa.ipc.MessageReader) -> Iterator[pa.ipc.Message]:
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


class _Table(NamedTuple):
    """A table of a flatbuffer."""

    data: memoryview
    position: int

    def field(self, number: int) -> int | None:
        """Return the position of a field, None if it is not there."""
        vtable = self.position - I32.unpack_from(self.data, self.position)[0]
        slot = 4 + 2 * number
        if slot >= U16.unpack_from(self.data, vtable)[0]:
            return None
        distance: int = U16.unpack_from(self.data, vtable + slot)[0]
        return self.position + distance if distance else None

    def table(self, number: int) -> _Table:
        at = self.field(number)
        if at is None:
            raise Malformed("a message of the stream has no batch")
        return _Table(self.data, at + U32.unpack_from(self.data, at)[0])


def _body_bytes(message: pa.ipc.Message) -> int:
    """Return the bytes of all buffers of a message."""
    data = memoryview(message.metadata)
    if message.type not in ("record batch", "dictionary"):
        return 0
    if OLD_COMPRESSION in bytes(data):
        raise Malformed("the stream is compressed as Arrow 0.17 did; use a later release")
    batch = _Table(data, U32.unpack_from(data, 0)[0]).table(HEADER)
    if message.type == "dictionary":
        batch = batch.table(DICTIONARY_DATA)
    buffers = list(_buffers(batch))
    if batch.field(COMPRESSION) is None:
        return sum(length for _, length in buffers)
    body = memoryview(message.body)
    return sum(_size_before(body, *buffer) for buffer in buffers)


def _buffers(batch: _Table) -> Iterator[tuple[int, int]]:
    at = batch.field(BUFFERS)
    if at is None:
        return
    begin = at + U32.unpack_from(batch.data, at)[0]
    (count,) = U32.unpack_from(batch.data, begin)
    for position in range(begin + 4, begin + 4 + BUFFER.size * count, BUFFER.size):
        offset, length = BUFFER.unpack_from(batch.data, position)
        if offset < 0 or length < 0:
            raise Malformed("a message of the stream has a negative length")
        yield offset, length


def _size_before(body: memoryview, offset: int, length: int) -> int:
    """Return the size of a buffer before compression."""
    if length == 0:
        return 0
    (size,) = SIZE.unpack_from(body, offset)
    if size == NOT_COMPRESSED:
        return length
    if size < 0:
        raise Malformed("a buffer of the stream has a negative size")
    return int(size)

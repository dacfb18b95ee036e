"""Avro files whose blocks are compressed with Zstandard: fastavro reads them with a library that it
does not bring along, so the blocks are decompressed before it sees them."""

from __future__ import annotations

import io
from typing import IO, Any

import zstandard

from frazil.model import MiB

MAGIC = b"Obj\x01"
CODEC, ZSTANDARD = b"avro.codec", b"zstandard"
SYNC_BYTES = 16
ENTRY_BYTES_MAX = 16 * MiB
"""Of an entry of the header: the schema."""
BLOCK_BYTES_MAX = 256 * MiB
"""Of a block, compressed or not."""


def without_zstd(stream: IO[bytes]) -> IO[bytes]:
    """Return the same records, in blocks that are not compressed with Zstandard. `ValueError` or
    `EOFError` if it is not an Avro file."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin with Obj")
    metadata = _metadata(stream)
    if metadata.get(CODEC) != ZSTANDARD:
        stream.seek(0)
        return stream
    sync = _bytes(stream, SYNC_BYTES)
    del metadata[CODEC]
    head = MAGIC + _long(len(metadata))
    for key, value in metadata.items():
        head += _long(len(key)) + key + _long(len(value)) + value
    return io.BufferedReader(_PlainBlocks(stream, head + _long(0) + sync))


class _PlainBlocks(io.RawIOBase):
    def __init__(self, stream: IO[bytes], head: bytes) -> None:
        super().__init__()
        self._stream = stream
        self._rest = memoryview(head)
        self._zstd = zstandard.ZstdDecompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(self._next())
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next(self) -> bytes:
        """Return the next block; nothing at the end."""
        first = self._stream.read(1)
        if not first:
            return b""
        count = _read_long(self._stream, first)
        size = _read_long(self._stream, _bytes(self._stream, 1))
        if not 0 <= size <= BLOCK_BYTES_MAX:
            raise ValueError(f"a block claims {size} bytes")
        data = _bytes(self._stream, size)
        try:
            with self._zstd.stream_reader(data) as plain:
                rows = plain.read(BLOCK_BYTES_MAX + 1)
        except zstandard.ZstdError as error:
            raise ValueError(f"a block is not Zstandard: {error}") from error
        if len(rows) > BLOCK_BYTES_MAX:
            raise ValueError(f"a block has more than {BLOCK_BYTES_MAX} bytes")
        return _long(count) + _long(len(rows)) + rows + _bytes(self._stream, SYNC_BYTES)


def _metadata(stream: IO[bytes]) -> dict[bytes, bytes]:
    """Read the map of the header."""
    found: dict[bytes, bytes] = {}
    while count := _read_long(stream, _bytes(stream, 1)):
        if count < 0:
            _read_long(stream, _bytes(stream, 1))  # the bytes of this part
        for _ in range(abs(count)):
            key, value = _entry(stream), _entry(stream)
            found[key] = value
    return found


def _entry(stream: IO[bytes]) -> bytes:
    size = _read_long(stream, _bytes(stream, 1))
    if not 0 <= size <= ENTRY_BYTES_MAX:
        raise ValueError(f"an entry of the header claims {size} bytes")
    return _bytes(stream, size)


def _bytes(stream: IO[bytes], count: int) -> bytes:
    parts = []
    while count:
        part = stream.read(count)
        if not part:
            raise EOFError("the file ends too early")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _read_long(stream: IO[bytes], first: bytes) -> int:
    number, shift, byte = 0, 0, first[0]
    number = byte & 0x7F
    while byte & 0x80:
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
        byte = _bytes(stream, 1)[0]
        number |= (byte & 0x7F) << shift
    return (number >> 1) ^ -(number & 1)


def _long(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)

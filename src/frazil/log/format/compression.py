"""Compression of record batches, compatible with Kafka clients.

The output size is capped while decompressing, so that few bytes cannot allocate a gigabyte. The
framing of each codec is in `docs/formats/record-batch.md`.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable

import cramjam

from frazil.errors import Malformed, TooLarge


class Compression(enum.IntEnum):
    """Compression codec of a batch; the numbers are those of the protocol."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
"""Above any sensible batch; bounds what one hostile batch can use. Applies to writing and
reading."""

ROOM_BYTES_MIN = 64 * 1024
GROWTH = 4
"""The output buffer is tried at 4 times the input, then 4 times that: zeroing the whole cap for
every small batch costs more than decompressing a large one twice."""

NO_ROOM = "failed to write whole buffer"
"""The error text of cramjam's stream codecs for a full output buffer, which has no error type.
If the text changes, a bomb is still refused, as `Malformed`."""

LZ4_LEVEL = 1
"""The fast level, as in all clients; cramjam's default is many times slower."""
LZ4_DESCRIPTOR_BYTES = 7
LZ4_INDEPENDENT_BLOCKS = 0x20

SNAPPY_MAGIC = b"\x82SNAPPY\0"
SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
"""Framing of the Java clients: magic, version, lowest compatible version."""
SNAPPY_LENGTH = struct.Struct(">i")
SNAPPY_BLOCK_BYTES = 32 * 1024
SNAPPY_EXPANSION_MAX = 22
"""Snappy's densest element turns 3 bytes into 64."""


def compress(compression: Compression, data: bytes) -> bytes:
    """Compress the records of a batch. Raises `TooLarge` if `decompress` would refuse the
    result."""
    if len(data) > DECOMPRESSED_BYTES_MAX:
        raise TooLarge(
            f"{len(data)} bytes of records in one compressed batch;"
            f" the limit is {DECOMPRESSED_BYTES_MAX}"
        )
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case Compression.SNAPPY:
            return _compress_snappy(data)
        case Compression.LZ4:
            return _compress_lz4(data)
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def decompress(
    compression: Compression, data: bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Decompress. Raises `TooLarge` above `bytes_max` bytes, `Malformed` for invalid bytes."""
    try:
        match compression:
            case Compression.NONE:
                return data
            case Compression.GZIP:
                return _expand(cramjam.gzip.decompress_into, data, bytes_max)
            case Compression.SNAPPY:
                return _decompress_snappy(data, bytes_max)
            case Compression.LZ4:
                _require_independent_blocks(data)
                return _expand(cramjam.lz4.decompress_into, data, bytes_max)
            case Compression.ZSTD:
                return _expand(cramjam.zstd.decompress_into, data, bytes_max)
    except cramjam.DecompressionError as error:
        raise Malformed(f"{compression.name.lower()} bytes do not decompress: {error}") from None


def _expand(into: Callable[[bytes, bytearray], int], data: bytes, bytes_max: int) -> bytes:
    room_bytes = min(bytes_max, max(ROOM_BYTES_MIN, len(data) * GROWTH))
    while True:
        room = bytearray(room_bytes)
        try:
            length = into(data, room)
        except cramjam.DecompressionError as error:
            if str(error) != NO_ROOM:
                raise
            if room_bytes == bytes_max:
                raise _over(bytes_max) from None
            room_bytes = min(bytes_max, room_bytes * GROWTH)
        else:
            return bytes(memoryview(room)[:length])


def _compress_lz4(data: bytes) -> bytes:
    # Java clients refuse linked blocks, and some versions compute the content checksum
    # differently. The batch has its own checksum, so none is needed here.
    packer = cramjam.lz4.Compressor(LZ4_LEVEL, block_linked=False, content_checksum=False)
    packer.compress(data)
    return bytes(packer.finish())


def _require_independent_blocks(data: bytes) -> None:
    if len(data) < LZ4_DESCRIPTOR_BYTES:
        raise Malformed(f"an LZ4 frame of {len(data)} bytes")
    if not data[4] & LZ4_INDEPENDENT_BLOCKS:
        raise Malformed("an LZ4 frame with linked blocks, which Kafka clients cannot read")


def _compress_snappy(data: bytes) -> bytes:
    parts = [SNAPPY_HEADER]
    for begin in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[begin : begin + SNAPPY_BLOCK_BYTES]))
        parts += (SNAPPY_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, bytes_max: int) -> bytes:
    # A bare block cannot start with the magic: its first element would copy from nothing.
    blocks = _framed_blocks(data) if data.startswith(SNAPPY_MAGIC) else [memoryview(data)]
    lengths = [_snappy_length(block) for block in blocks]
    if sum(lengths) > bytes_max:
        raise _over(bytes_max)
    room = bytearray(sum(lengths))
    view, position = memoryview(room), 0
    for block, length in zip(blocks, lengths, strict=True):
        position += cramjam.snappy.decompress_raw_into(block, view[position : position + length])
    return bytes(room)


def _framed_blocks(data: bytes) -> list[memoryview]:
    # The two versions are ignored: some writers have them in the wrong byte order.
    if len(data) < len(SNAPPY_HEADER):
        raise Malformed(f"snappy framing of {len(data)} bytes")
    view, position, blocks = memoryview(data), len(SNAPPY_HEADER), []
    while position < len(data):
        begin = position + SNAPPY_LENGTH.size
        if begin > len(data):
            raise Malformed("snappy framing ends inside a block length")
        (length,) = SNAPPY_LENGTH.unpack_from(data, position)
        if not 0 < length <= len(data) - begin:
            raise Malformed(f"a snappy block of {length} bytes with {len(data) - begin} left")
        blocks.append(view[begin : begin + length])
        position = begin + length
    return blocks


def _snappy_length(block: memoryview) -> int:
    length = cramjam.snappy.decompress_raw_len(block)
    if length > len(block) * SNAPPY_EXPANSION_MAX:
        raise Malformed(f"a snappy block of {len(block)} bytes cannot hold {length}")
    return length


def _over(bytes_max: int) -> TooLarge:
    return TooLarge(f"a batch decompresses to more than {bytes_max} bytes")

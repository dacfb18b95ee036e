"""Compression of record batches, compatible with Kafka clients.

The output size is capped while decompressing, so that few bytes cannot allocate a gigabyte. Where
the frame tells the size of its content, or a bound of it, the output buffer has that size. The
framing of each codec is in `docs/formats/record-batch.md`.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable

import cramjam
from isal import isal_zlib

from frazil.disk import Buffer
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
ROOM_RATIO_MAX = 64
"""The first output buffer has at most 64 times the size of the input: a frame that claims more must
prove it, since zeroing the whole cap costs more than decompressing a little twice."""
GROWTH = 4
"""If that is too small, the next one is 4 times as large."""
BLOCKS_COUNTED_MAX = 1024
"""Blocks looked at to bound the size: enough for the largest batch in full blocks."""

NO_ROOM = "failed to write whole buffer"
"""The error text of cramjam's stream codecs for a full output buffer, which has no error type.
If the text changes, a bomb is still refused, as `Malformed`."""

GZIP = 16 + zlib.MAX_WBITS
"""zlib's `wbits` for a gzip wrapper."""
ISAL_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]
"""The type stub declares this class as an instance."""

LZ4_LEVEL = 1
"""The fast level, as in all clients; cramjam's default is many times slower."""
LZ4_DESCRIPTOR_BYTES = 7
LZ4_INDEPENDENT_BLOCKS = 0x20
LZ4_BLOCK_CHECKSUM = 0x10
LZ4_CONTENT_SIZE = 0x08
LZ4_DICTIONARY = 0x01
LZ4_STORED = 0x80000000
"""The bit of a block's length that says that the block is not compressed."""
LZ4_CODES = struct.Struct("<I")

ZSTD_MAGIC = bytes.fromhex("28b52ffd")
ZSTD_SINGLE_SEGMENT = 0x20
ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)
ZSTD_BLOCK_HEADER_BYTES = 3
ZSTD_BLOCK_BYTES_MAX = 128 * 1024
ZSTD_COMPRESSED = 2
"""Types of blocks: 0 stored, 1 one byte repeated, 2 compressed."""

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
    compression: Compression, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> memoryview:
    """Decompress. Raises `TooLarge` above `bytes_max` bytes, `Malformed` for invalid bytes."""
    view = memoryview(data)
    try:
        match compression:
            case Compression.NONE:
                return view
            case Compression.GZIP:
                return _decompress_gzip(view, bytes_max)
            case Compression.SNAPPY:
                return _decompress_snappy(view, bytes_max)
            case Compression.LZ4:
                return _expand(cramjam.lz4.decompress_into, view, bytes_max, _lz4_bound(view))
            case Compression.ZSTD:
                return _expand(cramjam.zstd.decompress_into, view, bytes_max, _zstd_bound(view))
    except (cramjam.DecompressionError, ISAL_ERROR) as error:
        raise Malformed(f"{compression.name.lower()} bytes do not decompress: {error}") from None


def _expand(
    into: Callable[[memoryview, bytearray], int],
    data: memoryview,
    bytes_max: int,
    expected_bytes: int | None = None,
) -> memoryview:
    if expected_bytes is None:
        expected_bytes = max(ROOM_BYTES_MIN, len(data) * GROWTH)
    likely_bytes_max = max(ROOM_BYTES_MIN, len(data) * ROOM_RATIO_MAX)
    room_bytes = min(bytes_max, expected_bytes, likely_bytes_max)
    while True:
        room = bytearray(room_bytes)
        try:
            length = into(data, room)
        except cramjam.DecompressionError as error:
            if str(error) != NO_ROOM:
                raise
            if room_bytes == bytes_max:
                raise _over(bytes_max) from None
            room_bytes = min(bytes_max, max(ROOM_BYTES_MIN, room_bytes * GROWTH))
        else:
            return memoryview(room)[:length]


def _decompress_gzip(data: memoryview, bytes_max: int) -> memoryview:
    inflate = isal_zlib.decompressobj(GZIP)
    output = inflate.decompress(data, bytes_max + 1)
    if len(output) > bytes_max:
        raise _over(bytes_max)
    if not inflate.eof:
        raise Malformed("gzip bytes do not decompress: the stream is truncated")
    if inflate.unused_data:  # more members; no Kafka client writes them
        return _expand(cramjam.gzip.decompress_into, data, bytes_max)
    return memoryview(output)


def _compress_lz4(data: bytes) -> bytes:
    # Java clients refuse linked blocks, and some versions compute the content checksum
    # differently. The batch has its own checksum, so none is needed here.
    packer = cramjam.lz4.Compressor(LZ4_LEVEL, block_linked=False, content_checksum=False)
    packer.compress(data)
    return bytes(packer.finish())


def _lz4_bound(data: memoryview) -> int | None:
    """Return the content size of the LZ4 frame if it states one, or else the size of its blocks
    when full; None if unknown. Raises `Malformed` for a frame that Kafka clients cannot read."""
    if len(data) < LZ4_DESCRIPTOR_BYTES:
        raise Malformed(f"an LZ4 frame of {len(data)} bytes")
    flags, sizes = data[4], data[5]
    if not flags & LZ4_INDEPENDENT_BLOCKS:
        raise Malformed("an LZ4 frame with linked blocks, which Kafka clients cannot read")
    position = LZ4_DESCRIPTOR_BYTES + 4 * (flags & LZ4_DICTIONARY)
    if flags & LZ4_CONTENT_SIZE:
        return int.from_bytes(data[6:14], "little")
    block_bytes_max = 1 << 2 * (sizes >> 4 & 7) + 8
    checksum_bytes = 4 if flags & LZ4_BLOCK_CHECKSUM else 0
    bound = 0
    for _ in range(BLOCKS_COUNTED_MAX):
        if position > len(data) - LZ4_CODES.size:
            break
        (code,) = LZ4_CODES.unpack_from(data, position)
        if code == 0:
            return bound
        length = code & ~LZ4_STORED
        bound += length if code & LZ4_STORED else block_bytes_max
        position += LZ4_CODES.size + length + checksum_bytes
    return None


def _zstd_bound(data: memoryview) -> int | None:
    """Return the content size of the zstd frame if it states one, or else a bound from its blocks;
    None if unknown, or if other frames follow."""
    if data[:4] != ZSTD_MAGIC or len(data) < 5:
        return None
    descriptor = data[4]
    is_single = bool(descriptor & ZSTD_SINGLE_SEGMENT)
    begin = 5 + (not is_single) + ZSTD_DICTIONARY_BYTES[descriptor & 3]
    size_bytes = ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or int(is_single)
    position, bound = begin + size_bytes, 0
    for _ in range(BLOCKS_COUNTED_MAX):
        if position > len(data) - ZSTD_BLOCK_HEADER_BYTES:
            return None
        block = int.from_bytes(data[position : position + ZSTD_BLOCK_HEADER_BYTES], "little")
        kind, length = block >> 1 & 3, block >> 3
        bound += ZSTD_BLOCK_BYTES_MAX if kind == ZSTD_COMPRESSED else length
        position += ZSTD_BLOCK_HEADER_BYTES + (1 if kind == 1 else length)
        if block & 1:
            break
    else:
        return None
    if len(data) - position > 4:  # more than a checksum follows: another frame
        return None
    if not size_bytes:
        return bound
    size = int.from_bytes(data[begin : begin + size_bytes], "little")
    return size + 256 * (size_bytes == 2)


def _compress_snappy(data: bytes) -> bytes:
    parts = [SNAPPY_HEADER]
    for begin in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[begin : begin + SNAPPY_BLOCK_BYTES]))
        parts += (SNAPPY_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, bytes_max: int) -> memoryview:
    # A bare block cannot start with the magic: its first element would copy from nothing.
    blocks = _framed_blocks(data) if data[: len(SNAPPY_MAGIC)] == SNAPPY_MAGIC else [data]
    lengths = [_snappy_length(block) for block in blocks]
    if sum(lengths) > bytes_max:
        raise _over(bytes_max)
    room = bytearray(sum(lengths))
    view, position = memoryview(room), 0
    for block, length in zip(blocks, lengths, strict=True):
        position += cramjam.snappy.decompress_raw_into(block, view[position : position + length])
    return view


def _framed_blocks(data: memoryview) -> list[memoryview]:
    # The two versions are ignored: some writers have them in the wrong byte order.
    if len(data) < len(SNAPPY_HEADER):
        raise Malformed(f"snappy framing of {len(data)} bytes")
    position, blocks = len(SNAPPY_HEADER), []
    while position < len(data):
        begin = position + SNAPPY_LENGTH.size
        if begin > len(data):
            raise Malformed("snappy framing ends inside a block length")
        (length,) = SNAPPY_LENGTH.unpack_from(data, position)
        if not 0 < length <= len(data) - begin:
            raise Malformed(f"a snappy block of {length} bytes with {len(data) - begin} left")
        blocks.append(data[begin : begin + length])
        position = begin + length
    return blocks


def _snappy_length(block: memoryview) -> int:
    length = cramjam.snappy.decompress_raw_len(block)
    if length > len(block) * SNAPPY_EXPANSION_MAX:
        raise Malformed(f"a snappy block of {len(block)} bytes cannot hold {length}")
    return length


def _over(bytes_max: int) -> TooLarge:
    return TooLarge(f"a batch decompresses to more than {bytes_max} bytes")

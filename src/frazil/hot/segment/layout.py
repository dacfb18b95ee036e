"""The frame of an ArrowSegment: header, footer and trailer, as bytes and as values.

The byte layout is `docs/formats/arrow-segment.md`. Every byte of the file belongs to something
with a checksum, and the parts follow each other without a gap, so no change goes unnoticed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from google_crc32c import value as crc32c

from frazil.errors import Corrupt
from frazil.hot.segment.column_stats import ColumnStats

MAGIC = b"FRZARR\r\n"
END_MAGIC = b"FRZARR\r\0"
VERSION = 1
HEADER = struct.Struct("<8sHHIQQq20x")
"""magic, version, reserved, identity, begin offset, end offset, created ms; then its CRC32C."""
CHECK = struct.Struct("<I")
HEADER_BYTES = 64
TRAILER = struct.Struct("<QIII")
"""footer position, footer length, CRC32C of the footer, check of the header; then the CRC32C of
these, then the end magic."""
TRAILER_BYTES = TRAILER.size + CHECK.size + len(END_MAGIC)
FOOTER_BYTES_MAX = 64 * 1024 * 1024
"""A length above this is damage, not data: no footer of ours comes near it."""
HINT = (
    "The hot tier makes the file anew from the log while the log has these offsets; look at the "
    "health of the disk."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowSegmentHeader:
    """The first 64 bytes."""

    identity: int
    """Ties the file to its folder."""
    begin_offset: int
    end_offset: int
    """All rows of these offsets are here; the end is exclusive."""
    created_ms: int
    """Wall time of the seal; of the newest one when segments were merged."""

    def encode(self) -> bytes:
        body = HEADER.pack(
            MAGIC, VERSION, 0, self.identity, self.begin_offset, self.end_offset, self.created_ms
        )
        return body + CHECK.pack(crc32c(body))


class FilterEntry(msgspec.Struct, frozen=True, array_like=True):
    """Where the bloom filter of a column lies."""

    column: str
    position: int
    length: int
    check: int


class BatchEntry(msgspec.Struct, frozen=True, array_like=True):
    """One row of the batch manifest: a batch, where its message lies, which offsets it holds."""

    stream: int
    position: int
    length: int
    row_count: int
    begin_offset: int
    end_offset: int


class StreamEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the stream directory: rows of one table in one schema."""

    slot: str
    fingerprint: bytes
    position: int
    length: int
    check: int
    row_count: int
    columns: list[ColumnStats]
    services: list[str] | None
    filters: list[FilterEntry]


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """Stream directory and batch manifest."""

    streams: list[StreamEntry]
    batches: list[BatchEntry]

    def sections(self) -> Iterator[tuple[int, int, int]]:
        """(position, length, check) of everything between header and footer, in file order."""
        for stream in self.streams:
            yield stream.position, stream.length, stream.check
            for entry in stream.filters:
                yield entry.position, entry.length, entry.check


def encode_end(footer: Footer, position: int, header: bytes) -> bytes:
    """Footer and trailer of a file whose sections end at `position`."""
    body = msgspec.msgpack.encode(footer)
    (header_check,) = CHECK.unpack_from(header, HEADER.size)
    trailer = TRAILER.pack(position, len(body), crc32c(body), header_check)
    return body + trailer + CHECK.pack(crc32c(trailer)) + END_MAGIC


def decode_header(data: bytes, path: str) -> ArrowSegmentHeader:
    """The header, or `Corrupt`."""
    if len(data) != HEADER_BYTES:
        raise damaged(path, 0, f"a header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    body = data[: HEADER.size]
    (check,) = CHECK.unpack_from(data, HEADER.size)
    if check != crc32c(body):
        raise damaged(path, HEADER.size, f"header CRC32C {crc32c(body):08x}", f"{check:08x}")
    magic, version, _, identity, begin, end, created_ms = HEADER.unpack(body)
    if magic != MAGIC or version != VERSION:
        raise damaged(path, 0, f"{MAGIC!r} version {VERSION}", f"{magic!r} version {version}")
    if begin >= end:
        raise damaged(path, 16, "offsets that rise", f"{begin} up to {end}")
    return ArrowSegmentHeader(
        identity=identity, begin_offset=begin, end_offset=end, created_ms=created_ms
    )


def decode_trailer(data: bytes, size: int, header: bytes, path: str) -> tuple[int, int, int]:
    """Position, length and check of the footer of a file of `size` bytes, or `Corrupt`."""
    at = size - TRAILER_BYTES
    if len(data) != TRAILER_BYTES or data[-len(END_MAGIC) :] != END_MAGIC:
        raise damaged(path, max(at, 0), f"a trailer that ends in {END_MAGIC!r}", "other bytes")
    (check,) = CHECK.unpack_from(data, TRAILER.size)
    if check != crc32c(data[: TRAILER.size]):
        raise damaged(path, at, f"CRC32C {crc32c(data[: TRAILER.size]):08x}", f"{check:08x}")
    position, length, footer_check, header_check = TRAILER.unpack_from(data)
    if (header_check,) != CHECK.unpack_from(header, HEADER.size):
        raise damaged(path, at, "the trailer of this header", "that of another")
    if position + length != at or length > FOOTER_BYTES_MAX:
        raise damaged(path, at, f"a footer up to byte {at}", f"{length} bytes from {position}")
    return position, length, footer_check


def decode_footer(data: bytes, position: int, check: int, path: str) -> Footer:
    """The footer that lies at `position`, or `Corrupt`."""
    if crc32c(data) != check:
        raise damaged(path, position, f"footer CRC32C {check:08x}", f"{crc32c(data):08x}")
    try:
        footer = msgspec.msgpack.decode(data, type=Footer)
    except msgspec.DecodeError as error:
        raise damaged(path, position, "stream directory and batch manifest", str(error)) from None
    end = HEADER_BYTES
    for begin, length, _ in footer.sections():
        if begin != end or length < 0:
            raise damaged(path, begin, f"a section at byte {end}", f"one at {begin}")
        end += length
    if end != position:
        raise damaged(path, end, f"sections up to byte {position}", f"an end at {end}")
    return footer


def damaged(path: str, position: int, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=HINT)

"""Header, footer and trailer of an ArrowSegment file.

Byte layout: `docs/formats/arrow-segment.md`. Every byte of the file is covered by a checksum, and
sections follow each other without gaps, so every change is detected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from google_crc32c import value as crc32c

from frazil.errors import Corrupt
from frazil.hot.segment.column_stats import ColumnStats
from frazil.model import MiB

MAGIC = b"FRZARR\r\n"
END_MAGIC = b"FRZARR\r\0"
VERSION = 1
HEADER = struct.Struct("<8sHHIQQq20x")
"""magic, version, reserved, identity, begin offset, end offset, created ms; then its CRC32C."""
CHECK = struct.Struct("<I")
HEADER_BYTES = 64
TRAILER = struct.Struct("<QIII")
"""footer position, footer length, CRC32C of the footer, CRC32C of the header; then the CRC32C of
these, then the end magic."""
TRAILER_BYTES = TRAILER.size + CHECK.size + len(END_MAGIC)
FOOTER_BYTES_MAX = 64 * MiB
"""A longer footer means damage; real ones are far smaller."""
HINT = (
    "The hot tier rebuilds the file from the log if the log still has these offsets; check the "
    "health of the disk."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowSegmentHeader:
    """The first 64 bytes."""

    identity: int
    """Ties the file to its folder."""
    begin_offset: int
    end_offset: int
    """The file has all rows of these offsets; the end is exclusive."""
    created_ms: int
    """Wall time of the seal; of the newest one after a merge."""

    def encode(self) -> bytes:
        body = HEADER.pack(
            MAGIC, VERSION, 0, self.identity, self.begin_offset, self.end_offset, self.created_ms
        )
        return body + CHECK.pack(crc32c(body))


class FilterEntry(msgspec.Struct, frozen=True, array_like=True):
    """Position of the bloom filter of a column."""

    column: str
    position: int
    length: int
    check: int


class BatchEntry(msgspec.Struct, frozen=True, array_like=True):
    """One row of the batch manifest: position, rows and offsets of a batch."""

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
        """Yield (position, length, check) of all sections between header and footer, in order."""
        for stream in self.streams:
            yield stream.position, stream.length, stream.check
            for entry in stream.filters:
                yield entry.position, entry.length, entry.check


def encode_end(footer: Footer, position: int, header: bytes) -> bytes:
    """Return the footer and trailer of a file whose sections end at `position`."""
    body = msgspec.msgpack.encode(footer)
    (header_check,) = CHECK.unpack_from(header, HEADER.size)
    trailer = TRAILER.pack(position, len(body), crc32c(body), header_check)
    return body + trailer + CHECK.pack(crc32c(trailer)) + END_MAGIC


def decode_header(data: bytes, path: str) -> ArrowSegmentHeader:
    """Parse the header. Raises `Corrupt`."""
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
        raise damaged(path, 16, "begin below end", f"{begin} up to {end}")
    return ArrowSegmentHeader(
        identity=identity, begin_offset=begin, end_offset=end, created_ms=created_ms
    )


def decode_trailer(data: bytes, size: int, header: bytes, path: str) -> tuple[int, int, int]:
    """Return position, length and checksum of the footer. Raises `Corrupt`."""
    at = size - TRAILER_BYTES
    if len(data) != TRAILER_BYTES or data[-len(END_MAGIC) :] != END_MAGIC:
        raise damaged(path, max(at, 0), f"a trailer that ends in {END_MAGIC!r}", "other bytes")
    (check,) = CHECK.unpack_from(data, TRAILER.size)
    if check != crc32c(data[: TRAILER.size]):
        raise damaged(path, at, f"CRC32C {crc32c(data[: TRAILER.size]):08x}", f"{check:08x}")
    position, length, footer_check, header_check = TRAILER.unpack_from(data)
    if (header_check,) != CHECK.unpack_from(header, HEADER.size):
        raise damaged(path, at, "the checksum of this header", "another one")
    if position + length != at or length > FOOTER_BYTES_MAX:
        raise damaged(path, at, f"a footer up to byte {at}", f"{length} bytes from {position}")
    return position, length, footer_check


def decode_footer(data: bytes, position: int, check: int, path: str) -> Footer:
    """Parse the footer at `position`. Raises `Corrupt`."""
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

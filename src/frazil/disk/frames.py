"""Frames: a 32-byte header in front of every payload, so that bytes prove what they are.

The header's CRC32C covers the header, the file's salt and the first bytes of the payload. A
flipped length is therefore never taken for a torn tail, a frame of another file never parses in
this one, and a payload cannot change places with its neighbour. The rest of the payload carries
its own checksum. The byte layout is `docs/formats/log-segment.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from google_crc32c import value as crc32c

from frazil.disk.files import File

FRAME_MAGIC = b"FRZF"
FRAME_HEADER = struct.Struct("<4sIQQII")
"""magic, payload length, base offset, durable watermark when written, flags, header CRC32C."""
FRAME_HEADER_BYTES = FRAME_HEADER.size
UNCHECKED = struct.Struct("<4sIQQI")
CHECK = struct.Struct("<I")
HEAD_BYTES = 64
"""How much of the payload the header's checksum covers: a whole record batch header."""
PAYLOAD_BYTES_MAX = 128 * 1024 * 1024
"""A length above this is refused by the writer and taken for damage by the reader."""
SALT_BYTES = 8
CHUNK_BYTES = 1024 * 1024


class Frame(NamedTuple):
    """One frame as it lies in a file; `end` is the position behind it."""

    position: int
    end: int
    base_offset: int
    durable_watermark: int
    flags: int
    payload: bytes


def frame_header(
    head: bytes, length: int, base_offset: int, durable_watermark: int, flags: int, salt: bytes
) -> bytes:
    """The 32 bytes in front of a payload of `length` bytes that begins with `head`."""
    assert len(head) == min(length, HEAD_BYTES) and length <= PAYLOAD_BYTES_MAX
    unchecked = UNCHECKED.pack(FRAME_MAGIC, length, base_offset, durable_watermark, flags)
    return unchecked + CHECK.pack(crc32c(unchecked + salt + head))


def parse_frame(data: bytes, at: int, position: int, salt: bytes) -> Frame | int:
    """The frame at `data[at:]`, which lies at `position` of its file.

    When more bytes are needed, how many in all; zero when these bytes are no frame.
    """
    available = len(data) - at
    if available < FRAME_HEADER.size:
        return FRAME_HEADER.size
    length: int
    magic, length, base_offset, durable_watermark, flags, check = FRAME_HEADER.unpack_from(data, at)
    if magic != FRAME_MAGIC or length > PAYLOAD_BYTES_MAX:
        return 0
    head_end = at + FRAME_HEADER.size + min(length, HEAD_BYTES)
    if head_end > len(data):
        return head_end - at
    unchecked = data[at : at + UNCHECKED.size]
    if crc32c(unchecked + salt + data[at + FRAME_HEADER.size : head_end]) != check:
        return 0
    size = FRAME_HEADER.size + length
    if size > available:
        return size
    payload = data[at + FRAME_HEADER.size : at + size]
    return Frame(position, position + size, base_offset, durable_watermark, flags, payload)


def walk_frames(file: File, begin: int, end: int, salt: bytes) -> Iterator[Frame]:
    """The whole frames of `file` from `begin` on, none reaching past `end`.

    Stops without a word at the first bytes that are no whole frame: the caller compares the last
    `Frame.end` with `end` and decides what that means. Holds one chunk, or one frame, at a time.
    """
    position, data, at = begin, b"", 0
    while position < end:
        found = parse_frame(data, at, position, salt)
        if isinstance(found, Frame):
            yield found
            position, at = found.end, at + found.end - found.position
            continue
        if found == 0 or found > end - position:
            return
        data, at = file.read(position, min(max(found, CHUNK_BYTES), end - position)), 0
        if len(data) < found:
            return


def find_frames(data: bytes, position: int, salt: bytes) -> Iterator[tuple[int, int, int]]:
    """Every place in `data` where a valid frame header stands, as (position, base offset, durable
    watermark). For judging what follows damaged bytes: the payloads behind are not checked."""
    at = data.find(FRAME_MAGIC)
    while at >= 0:
        found = parse_frame(data, at, position + at, salt)
        if isinstance(found, Frame) or found > FRAME_HEADER.size + HEAD_BYTES:
            _, _, base_offset, durable_watermark, _, _ = FRAME_HEADER.unpack_from(data, at)
            yield position + at, base_offset, durable_watermark
        at = data.find(FRAME_MAGIC, at + 1)

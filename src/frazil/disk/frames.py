"""Frames: a 32-byte header in front of every payload, so that bytes can be verified.

The header's CRC32C covers the header, the file's salt and the first bytes of the payload. So a
flipped length is never taken for a torn tail, a frame of another file never parses in this one, and
two payloads cannot be swapped. The rest of the payload has its own checksum. The byte layout is in
`docs/formats/log-segment.md`.
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
"""Payload bytes covered by the header's checksum: a whole record batch header."""
PAYLOAD_BYTES_MAX = 128 * 1024 * 1024
"""The writer refuses a larger payload; the reader takes a larger length for damage."""
SALT_BYTES = 8
CHUNK_BYTES = 1024 * 1024


class Frame(NamedTuple):
    """One frame of a file; `end` is the position after it."""

    position: int
    end: int
    base_offset: int
    durable_watermark: int
    flags: int
    payload: bytes


def frame_header(
    head: bytes, length: int, base_offset: int, durable_watermark: int, flags: int, salt: bytes
) -> bytes:
    """Return the 32 bytes in front of a payload of `length` bytes that starts with `head`."""
    assert len(head) == min(length, HEAD_BYTES) and length <= PAYLOAD_BYTES_MAX
    unchecked = UNCHECKED.pack(FRAME_MAGIC, length, base_offset, durable_watermark, flags)
    return unchecked + CHECK.pack(crc32c(unchecked + salt + head))


def parse_frame(data: bytes, at: int, position: int, salt: bytes) -> Frame | int:
    """Return the frame at `data[at:]`, which is at `position` of its file.

    If more bytes are needed, returns how many in total; if these bytes are no frame, returns 0.
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
    """Yield the whole frames of `file` from `begin` on, up to `end`.

    Stops at the first bytes that are no whole frame; the caller compares the last `Frame.end` with
    `end`. Holds one chunk or one frame in memory.
    """
    position, data, at = begin, b"", 0
    while position < end:
        frame = parse_frame(data, at, position, salt)
        if isinstance(frame, Frame):
            yield frame
            position, at = frame.end, at + frame.end - frame.position
            continue
        needed = frame
        if needed == 0 or needed > end - position:
            return
        data, at = file.read(position, min(max(needed, CHUNK_BYTES), end - position)), 0
        if len(data) < needed:
            return


def find_frames(data: bytes, position: int, salt: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (position, base offset, durable watermark) of every valid frame header in `data`.
    Used to judge what follows damaged bytes: payloads are not checked."""
    at = data.find(FRAME_MAGIC)
    while at >= 0:
        frame = parse_frame(data, at, position + at, salt)
        if isinstance(frame, Frame) or frame > FRAME_HEADER.size + HEAD_BYTES:
            _, _, base_offset, durable_watermark, _, _ = FRAME_HEADER.unpack_from(data, at)
            yield position + at, base_offset, durable_watermark
        at = data.find(FRAME_MAGIC, at + 1)

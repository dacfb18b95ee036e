"""LogSegment: one file of a partition, named by its base offset, only ever appended to.

The byte layout is `docs/formats/log-segment.md`: a 64-byte header, then frames whose payloads
are Kafka record batches. The header's salt is drawn anew for every file, so that frames of
another file, or of an earlier life of these disk blocks, never pass for ours.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from google_crc32c import value as crc32c

from frazil.disk import Buffer, Disk, File, Frame, find_frames, walk_frames
from frazil.errors import Corrupt
from frazil.log.format.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from frazil.log.format.batch import BatchHeader, parse_header, read_records
from frazil.log.format.record import Record
from frazil.log.index import NO_TIME, SparseIndex

MAGIC = b"FRZLOG\r\n"
VERSION = 1
HEADER = struct.Struct("<8sHHI8sQqQQI")
CHECK = struct.Struct("<I")
HEADER_BYTES = 64
FLAG_REWRITTEN = 1
"""Written by compaction or repair: offsets may have gaps, end and size are in the header."""
FLAG_DIGEST = 1
"""Frame flag: the first record carries a digest header."""
BATCH_CHECKED_FROM = 21
"""A record batch's own CRC covers everything from this byte on."""
BASE_OFFSET = re.compile("[0-9]{20}")
"""What the name of a segment, and of the files beside it, begins with."""
SEARCH_BYTES = 8 * 1024 * 1024
FRAME_HEAD_BYTES = 128
"""More than a frame header and the payload bytes it covers: searches overlap by this much."""

REPAIR_HINT = (
    "Stop writing to this disk and look at its health. Restore the file from a copy, or set the "
    "damaged bytes aside: `frazil repair --data DIR --dry-run` says what would be lost "
    "(docs/operating.md)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHeader:
    """The first 64 bytes of the file."""

    identity: int
    salt: bytes
    base_offset: int
    created_ms: int
    is_rewritten: bool = False
    sealed_end_offset: int = 0
    sealed_bytes: int = 0

    def encode(self) -> bytes:
        body = HEADER.pack(
            MAGIC,
            VERSION,
            FLAG_REWRITTEN if self.is_rewritten else 0,
            self.identity,
            self.salt,
            self.base_offset,
            self.created_ms,
            self.sealed_end_offset,
            self.sealed_bytes,
            0,
        )
        return body + CHECK.pack(crc32c(body))


def decode_segment_header(data: bytes, path: str) -> SegmentHeader:
    """Read a header, or raise `Corrupt`."""

    def damaged(expected: str, found: str) -> Corrupt:
        return Corrupt(path=path, position=0, expected=expected, found=found, hint=REPAIR_HINT)

    if len(data) < HEADER_BYTES:
        raise damaged(f"a header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    body = data[: HEADER.size]
    (check,) = CHECK.unpack_from(data, HEADER.size)
    if check != crc32c(body):
        raise damaged(f"header CRC32C {crc32c(body):08x}", f"{check:08x}")
    magic, version, flags, identity, salt, base, created, end, size, _ = HEADER.unpack(body)
    if magic != MAGIC or version != VERSION:
        raise damaged(f"{MAGIC!r} version {VERSION}", f"{magic!r} version {version}")
    return SegmentHeader(
        identity=identity,
        salt=salt,
        base_offset=base,
        created_ms=created,
        is_rewritten=bool(flags & FLAG_REWRITTEN),
        sealed_end_offset=end,
        sealed_bytes=size,
    )


class StoredBatch(NamedTuple):
    """One record batch as it lies in a segment, checked."""

    base_offset: int
    end_offset: int
    position: int
    end: int
    flags: int
    durable_watermark: int
    payload: bytes

    @property
    def header(self) -> BatchHeader:
        return parse_header(self.payload)

    def records(self) -> list[Record]:
        return read_records(self.payload)


def identity_of(topic: str, partition: int) -> int:
    """What ties a segment to its partition, so that a file in the wrong folder is noticed."""
    identity: int = crc32c(f"{topic}/{partition}".encode())
    return identity


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def side_name(base_offset: int, suffix: str) -> str:
    """The name of a file that belongs to a segment: `.index` or `.digests`."""
    return f"{base_offset:020d}{suffix}"


def base_offsets(names: Iterable[str], suffix: str) -> list[int]:
    """The base offsets in the names that are ours and end so; a stranger's file is left alone."""
    return [int(n[:20]) for n in names if n[20:] == suffix and BASE_OFFSET.fullmatch(n[:20])]


class LogSegment:
    """An open segment file. Appended to by the writer thread only; closed by its partition."""

    def __init__(
        self, file: File, path: str, header: SegmentHeader, index: SparseIndex, size_bytes: int
    ) -> None:
        self.file = file
        self.path = path
        self.header = header
        self.index = index
        self.size_bytes = size_bytes
        self.max_timestamp_ms = NO_TIME
        self.has_stale_tail = False
        """Does the file go on behind `size_bytes`, with frames of an earlier life?"""

    @classmethod
    def create(
        cls,
        disk: Disk,
        folder: str,
        header: SegmentHeader,
        interval_bytes: int,
        spare: str | None = None,
    ) -> LogSegment:
        """A new, empty, durable segment: file synced, then its name.

        A spare file is used again: its blocks are there already, so syncing what is written over
        them costs the file system no bookkeeping. Its old frames carry another salt.
        """
        path = f"{folder}/{segment_name(header.base_offset)}"
        scratch = spare if spare is not None else path
        file = disk.open(scratch, "create" if spare is None else "edit")
        try:
            file.append_from(0)
            file.append([header.encode()])
            file.sync()
            if spare is not None:
                disk.rename(spare, path)
                scratch = path
            disk.sync_directory(folder)
        except OSError:
            file.close()
            disk.unlink(scratch)
            raise
        segment = cls(file, path, header, SparseIndex(interval_bytes), HEADER_BYTES)
        segment.has_stale_tail = spare is not None
        return segment

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    def append(self, buffers: Sequence[Buffer], size_bytes: int) -> None:
        self.file.append(buffers)
        self.size_bytes += size_bytes

    def truncate(self, size_bytes: int) -> None:
        """Take back unacknowledged bytes, durably: a refused batch must not come back."""
        self.file.truncate(size_bytes)
        self.file.sync()
        self.size_bytes = size_bytes
        self.has_stale_tail = False

    def cut_stale_tail(self) -> None:
        """End the file where its own frames end."""
        if self.has_stale_tail:
            self.truncate(self.size_bytes)

    def add_to_index(self, base_offset: int, position: int, timestamp_ms: int) -> None:
        """Index a durable batch."""
        self.index.add(base_offset, position, self.max_timestamp_ms)
        self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp_ms)

    def close(self) -> None:
        self.file.close()


def walk_batches(
    file: File, header: SegmentHeader, begin: int, end: int, offset: int
) -> Iterator[StoredBatch]:
    """The good batches of a segment from position `begin` on, the first of them at `offset`.

    Stops at the first bytes that are not the batch that must come next; the caller compares.
    """
    watermark = 0
    for frame in walk_frames(file, begin, end, header.salt):
        batch = _checked(frame)
        if batch is None:
            return
        if batch.base_offset < offset or (batch.base_offset > offset and not header.is_rewritten):
            return
        if batch.durable_watermark < watermark:  # of a group that was taken back, long ago
            return
        yield batch
        offset, watermark = batch.end_offset, batch.durable_watermark


def _checked(frame: Frame) -> StoredBatch | None:
    """The frame's record batch, when its own checksum and its place agree."""
    payload = frame.payload
    if len(payload) < BATCH_HEADER_BYTES:
        return None
    base_offset, length = struct.unpack_from(">qi", payload)
    (crc,) = struct.unpack_from(">I", payload, 17)
    (last_offset_delta,) = struct.unpack_from(">i", payload, 23)
    if (
        base_offset != frame.base_offset
        or length != len(payload) - 12
        or last_offset_delta < 0
        or crc32c(payload[BATCH_CHECKED_FROM:]) != crc
    ):
        return None
    return StoredBatch(
        base_offset,
        base_offset + last_offset_delta + 1,
        frame.position,
        frame.end,
        frame.flags,
        frame.durable_watermark,
        payload,
    )


def acknowledged_after(file: File, header: SegmentHeader, position: int, end: int) -> int:
    """The highest durable watermark that any frame behind `position` speaks of; 0 without one.

    A frame says what was durable when it was written. When that lies above the damaged bytes in
    front of it, those bytes had been promised; when not, they are the torn end of the last write.
    """
    watermark = 0
    while position < end:
        data = file.read(position, min(SEARCH_BYTES, end - position))
        for _, _, durable_watermark in find_frames(data, position, header.salt):
            watermark = max(watermark, durable_watermark)
        if len(data) < SEARCH_BYTES:
            break
        position += SEARCH_BYTES - FRAME_HEAD_BYTES
    return watermark

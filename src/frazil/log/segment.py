"""LogSegment: one append-only file of a partition, named by its base offset.

The byte layout is in `docs/formats/log-segment.md`: a 64-byte header, then frames with Kafka record
batches. The header has a random salt per file, so that frames of another file, or of an earlier use
of the same disk blocks, never pass for its own.
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
from frazil.log.watermarks import SegmentTail

MAGIC = b"FRZLOG\r\n"
VERSION = 1
HEADER = struct.Struct("<8sHHI8sQqQQI")
CHECK = struct.Struct("<I")
HEADER_BYTES = 64
FLAG_REWRITTEN = 1
"""Written by compaction or repair: offsets may have gaps; end and size are in the header."""
FLAG_DIGEST = 1
"""Frame flag: the first record has a digest header."""
FLAG_STEP = 2
"""Frame flag: the first record has a header with the step of a copy."""
BATCH_CHECKED_FROM = 21
"""A record batch's own CRC covers everything from this byte on."""
BASE_OFFSET = re.compile("[0-9]{20}")
"""Start of the names of a segment and its side files."""
SEARCH_BYTES = 8 * 1024 * 1024
FRAME_HEAD_BYTES = 128
"""More than a frame header and the payload bytes it covers: searches overlap by this much."""

REPAIR_HINT = (
    "Stop writing to this disk and check its health. Restore the file from a copy, or set the "
    "damaged bytes aside: `frazil repair --data DIR --dry-run` shows what would be lost "
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
    """Decode a header. Raises `Corrupt` if it is damaged."""

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
    """One verified record batch of a segment."""

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
    """Return the value that ties a segment to its partition, to detect files in the wrong
    folder."""
    identity: int = crc32c(f"{topic}/{partition}".encode())
    return identity


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def side_name(base_offset: int, suffix: str) -> str:
    """Return the name of a side file of a segment: `.index` or `.digests`."""
    return f"{base_offset:020d}{suffix}"


def base_offsets(names: Iterable[str], suffix: str) -> list[int]:
    """Return the base offsets in names with this suffix. Other files are ignored."""
    return [int(n[:20]) for n in names if n[20:] == suffix and BASE_OFFSET.fullmatch(n[:20])]


class LogSegment:
    """An open segment file. Appended to by the writer thread only; closed by its partition."""

    def __init__(
        self,
        file: File | None,
        path: str,
        header: SegmentHeader,
        index: SparseIndex,
        size_bytes: int,
    ) -> None:
        self._file = file
        self.path = path
        self.header = header
        self.index = index
        self.size_bytes = size_bytes
        self.max_timestamp_ms = NO_TIME
        self.has_stale_tail = False
        """Whether frames of an earlier use follow `size_bytes`."""

    @classmethod
    def planned(cls, folder: str, header: SegmentHeader, interval_bytes: int) -> LogSegment:
        """Return an empty segment without a file."""
        path = f"{folder}/{segment_name(header.base_offset)}"
        return cls(None, path, header, SparseIndex(interval_bytes), HEADER_BYTES)

    @classmethod
    def create(
        cls,
        disk: Disk,
        folder: str,
        header: SegmentHeader,
        interval_bytes: int,
        spare: str | None = None,
    ) -> LogSegment:
        """Create an empty, durable segment."""
        segment = cls.planned(folder, header, interval_bytes)
        segment.create_file(disk, spare)
        return segment

    def create_file(self, disk: Disk, spare: str | None = None) -> None:
        """Create the file: it is synced, then its name.

        A spare file is reused: its blocks are allocated, so overwriting them needs no file system
        metadata. Its old frames have another salt.
        """
        path = self.path
        scratch = spare if spare is not None else path
        file = disk.open(scratch, "create" if spare is None else "edit")
        try:
            file.append_from(0)
            file.append([self.header.encode()])
            file.sync()
            if spare is not None:
                disk.rename(spare, path)
                scratch = path
            disk.sync_directory(path.rpartition("/")[0])
        except OSError:
            file.close()
            disk.unlink(scratch)
            raise
        self._file = file
        self.has_stale_tail = spare is not None

    @property
    def has_file(self) -> bool:
        return self._file is not None

    @property
    def file(self) -> File:
        assert self._file is not None
        return self._file

    @property
    def is_empty(self) -> bool:
        return self.size_bytes == HEADER_BYTES

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def tail(self) -> SegmentTail:
        return SegmentTail(self.base_offset, self.size_bytes, self.max_timestamp_ms)

    def append(self, buffers: Sequence[Buffer], size_bytes: int) -> None:
        self.file.append(buffers)
        self.size_bytes += size_bytes

    def truncate(self, size_bytes: int) -> None:
        """Remove unacknowledged bytes durably: a refused batch must not reappear."""
        self.file.truncate(size_bytes)
        self.file.sync()
        self.size_bytes = size_bytes
        self.has_stale_tail = False

    def cut_stale_tail(self) -> None:
        """Cut the file after its own frames."""
        if self.has_stale_tail:
            self.truncate(self.size_bytes)

    def add_to_index(self, base_offset: int, position: int, timestamp_ms: int) -> None:
        """Index a durable batch."""
        self.index.add(base_offset, position, self.max_timestamp_ms)
        self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp_ms)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def walk_batches(
    file: File, header: SegmentHeader, begin: int, end: int, offset: int
) -> Iterator[StoredBatch]:
    """Yield the valid batches of a segment from position `begin` on, the first at `offset`.

    Stops at the first bytes that are not the expected next batch; the caller checks where.
    """
    watermark = 0
    for frame in walk_frames(file, begin, end, header.salt):
        batch = _checked(frame)
        if batch is None:
            return
        if batch.base_offset < offset or (batch.base_offset > offset and not header.is_rewritten):
            return
        if batch.durable_watermark < watermark:  # of a group that was undone earlier
            return
        yield batch
        offset, watermark = batch.end_offset, batch.durable_watermark


def _checked(frame: Frame) -> StoredBatch | None:
    """Return the frame's record batch; None if its checksum or offset does not match."""
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
    """Return the highest durable watermark in frames after `position`; 0 without one.

    A frame has the durable watermark at the time it was written. If that is above the damaged bytes
    before it, those bytes were acknowledged; if not, they are the torn tail of the last write.
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

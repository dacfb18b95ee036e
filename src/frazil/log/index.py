"""SparseIndex: positions of offsets and times in a segment. Can be rebuilt from the segment.

Every `interval_bytes` one entry has an offset, its position and the latest timestamp before it, so
one table serves lookups by offset and by time. Sealed segments store theirs in a `.index` file
(`docs/formats/log-segment.md`); the index of the open segment is in memory.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

INDEX_KIND = b"INDX"
INDEX_VERSION = 1
INFO = struct.Struct("<8sQQQqqII")
NO_TIME = -(2**63)
"""Latest timestamp of an empty range: below every real one."""


class IndexEntry(NamedTuple):
    """Base offset and position of a batch."""

    offset: int
    position: int


class SparseIndex:
    """Increasing entries of one segment. Extended by the writer thread; readers see whole
    entries."""

    def __init__(self, interval_bytes: int) -> None:
        self._interval_bytes = interval_bytes
        self.offsets = array("q")
        self.positions = array("q")
        self.times_before = array("q")

    def add(self, offset: int, position: int, time_before_ms: int) -> None:
        """Offer a batch. It becomes an entry if the last one is `interval_bytes` behind."""
        if self.positions and position - self.positions[-1] < self._interval_bytes:
            return
        # Offsets last: a reader that finds an offset also finds its position.
        self.positions.append(position)
        self.times_before.append(time_before_ms)
        self.offsets.append(offset)

    def before_offset(self, offset: int) -> IndexEntry | None:
        """Return the last entry at or before `offset`."""
        at = bisect_right(self.offsets, offset) - 1
        return IndexEntry(self.offsets[at], self.positions[at]) if at >= 0 else None

    def before_time(self, timestamp_ms: int) -> IndexEntry | None:
        """Return the last entry before which every record is older than `timestamp_ms`."""
        at = min(bisect_left(self.times_before, timestamp_ms), len(self.offsets)) - 1
        return IndexEntry(self.offsets[at], self.positions[at]) if at >= 0 else None


class SegmentInfo(NamedTuple):
    """Properties of a sealed segment, stored in its `.index` file."""

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    sealed_ms: int
    digest_count: int


def encode_index(salt: bytes, info: SegmentInfo, index: SparseIndex) -> bytes:
    """Return the body of a `.index` file. The salt ties it to its segment file."""
    entries = zip(index.offsets, index.positions, index.times_before, strict=True)
    return INFO.pack(salt, *info, len(index.offsets)) + b"".join(
        struct.pack("<qqq", *entry) for entry in entries
    )


def decode_index(data: bytes, interval_bytes: int) -> tuple[bytes, SegmentInfo, SparseIndex]:
    """Decode the body of a `.index` file, whose checksum is already verified."""
    salt, *info, count = INFO.unpack_from(data)
    index = SparseIndex(interval_bytes)
    for offset, position, time_before in struct.iter_unpack(
        "<qqq", data[INFO.size : INFO.size + 24 * count]
    ):
        index.positions.append(position)
        index.times_before.append(time_before)
        index.offsets.append(offset)
    return salt, SegmentInfo(*info), index

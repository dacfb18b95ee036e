"""Where in a segment an offset or a time begins. Derived: rebuilt from the segment at will.

One entry every `interval_bytes` holds an offset, its position, and the latest timestamp before
it, so one table serves both look-ups. Sealed segments store theirs in a `.index` file
(`docs/formats/log-segment.md`); the index of the open segment lives in memory.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

INDEX_KIND = b"INDX"
INDEX_VERSION = 1
FACTS = struct.Struct("<8sQQQqqII")
NO_TIME = -(2**63)
"""Latest timestamp of nothing: below every real one."""


class IndexEntry(NamedTuple):
    """A batch's base offset and its position."""

    offset: int
    position: int


class SparseIndex:
    """Rising entries of one segment. Grown by the writer thread; readers see whole entries."""

    def __init__(self, interval_bytes: int) -> None:
        self._interval_bytes = interval_bytes
        self.offsets = array("q")
        self.positions = array("q")
        self.times_before = array("q")

    def add(self, offset: int, position: int, time_before_ms: int) -> None:
        """Offer a batch; every `interval_bytes` one of them becomes an entry."""
        if self.positions and position - self.positions[-1] < self._interval_bytes:
            return
        # Offsets come last: a reader that finds an offset finds its position, too.
        self.positions.append(position)
        self.times_before.append(time_before_ms)
        self.offsets.append(offset)

    def before_offset(self, offset: int) -> IndexEntry | None:
        """The last entry at or before `offset`."""
        at = bisect_right(self.offsets, offset) - 1
        return IndexEntry(self.offsets[at], self.positions[at]) if at >= 0 else None

    def before_time(self, timestamp_ms: int) -> IndexEntry | None:
        """The last entry in front of which everything is older than `timestamp_ms`."""
        at = min(bisect_left(self.times_before, timestamp_ms), len(self.offsets)) - 1
        return IndexEntry(self.offsets[at], self.positions[at]) if at >= 0 else None


class SegmentInfo(NamedTuple):
    """What a sealed segment's `.index` file says of it besides the entries."""

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    sealed_ms: int
    digest_count: int


def encode_index(salt: bytes, info: SegmentInfo, index: SparseIndex) -> bytes:
    """The body of a `.index` file. The salt ties it to the one segment file it was made from."""
    entries = zip(index.offsets, index.positions, index.times_before, strict=True)
    return FACTS.pack(salt, *info, len(index.offsets)) + b"".join(
        struct.pack("<qqq", *entry) for entry in entries
    )


def decode_index(data: bytes, interval_bytes: int) -> tuple[bytes, SegmentInfo, SparseIndex]:
    """Read what `encode_index` wrote. The bytes have passed their checksum."""
    salt, *info, count = FACTS.unpack_from(data)
    index = SparseIndex(interval_bytes)
    for offset, position, time_before in struct.iter_unpack(
        "<qqq", data[FACTS.size : FACTS.size + 24 * count]
    ):
        index.positions.append(position)
        index.times_before.append(time_before)
        index.offsets.append(offset)
    return salt, SegmentInfo(*info), index

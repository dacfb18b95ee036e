"""PartitionView: what readers see of a partition. Immutable, replaced after every group commit.

Tuples, because they are created between a sync and its responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from frazil.disk import Disk
from frazil.errors import Corrupt
from frazil.log.index import SegmentInfo, SparseIndex
from frazil.log.segment import HEADER_BYTES, REPAIR_HINT, SegmentHeader, StoredBatch, walk_batches
from frazil.log.transactions.aborted import AbortedTransactions


class SegmentView(NamedTuple):
    """The readable part of one segment. The info of the open segment grows with every commit."""

    path: str
    header: SegmentHeader
    info: SegmentInfo
    sparse: SparseIndex


class PartitionView(NamedTuple):
    """A partition at one moment. Everything in it is durable.

    `segments` is never empty and the last one is open, except for a `PartitionObserver`: it sees no
    segments while nothing is durable. The first may begin below `start_offset`. Offsets from
    `start_offset` up to `durable_watermark` can be read; those below `last_stable_offset` belong to
    no open transaction.
    """

    start_offset: int
    durable_watermark: int
    segments: tuple[SegmentView, ...]
    last_stable_offset: int
    aborted: AbortedTransactions
    """May already have more than this view shows."""
    exempt_offset: int = 0
    """The lake need not have offsets below: they were deleted on request, or removed before the
    topic awaited the lake."""

    @property
    def size_bytes(self) -> int:
        return sum(segment.info.size_bytes for segment in self.segments)


def batches_of(disk: Disk, segment: SegmentView) -> Iterator[StoredBatch]:
    """Yield every batch of a sealed segment. Raises `Corrupt` if one is damaged."""
    file = disk.open(segment.path)
    try:
        position = HEADER_BYTES
        size, base = segment.info.size_bytes, segment.info.base_offset
        for batch in walk_batches(file, segment.header, HEADER_BYTES, size, base):
            position = batch.end
            yield batch
        if position != size:
            raise Corrupt(
                path=segment.path,
                position=position,
                expected="an acknowledged batch",
                found="other bytes",
                hint=REPAIR_HINT,
            )
    finally:
        file.close()

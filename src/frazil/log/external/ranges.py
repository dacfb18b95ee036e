"""SegmentRange: read offsets of a partition from a process that does not hold the log's lock.

The owner of the log plans a `SegmentRange`: offsets, and the bytes that hold them in one view. The
other process reads exactly these bytes, so everything it sees is durable. Files trimmed or
rewritten since then are detected by their salt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise

from frazil.disk import Disk, File
from frazil.errors import Conflict, Corrupt, OutOfRange
from frazil.log.index import IndexEntry
from frazil.log.reader import is_aborted
from frazil.log.segment import (
    HEADER_BYTES,
    REPAIR_HINT,
    SegmentHeader,
    StoredBatch,
    decode_segment_header,
    walk_batches,
)
from frazil.log.transactions.aborted import AbortedTransaction, AbortedTransactions
from frazil.log.view import PartitionView, SegmentView


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """Adjacent whole batches in one segment file, from `offset` up to `end_offset`."""

    path: str
    salt: bytes
    position: int
    end_position: int
    offset: int
    end_offset: int

    @property
    def size_bytes(self) -> int:
        return self.end_position - self.position


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRange:
    """Offsets from `begin` up to `end` of one partition, and the bytes that hold them."""

    begin: int
    end: int
    extents: tuple[ByteRange, ...]
    aborted: tuple[AbortedTransaction, ...] = ()
    """Transactions whose batches are skipped."""

    @property
    def size_bytes(self) -> int:
        return sum(extent.size_bytes for extent in self.extents)


def plan_ranges(view: PartitionView, begin: int, end: int, bytes_max: int) -> list[SegmentRange]:
    """Split the offsets from `begin` up to `end` into ranges of up to `bytes_max` bytes.

    A range is larger only if a single index interval is. Raises `OutOfRange` unless all offsets can
    be read.
    """
    if not view.start_offset <= begin <= end <= view.last_stable_offset:
        raise OutOfRange(
            f"offsets {begin} up to {end} are outside the log, which holds {view.start_offset} up "
            f"to {view.last_stable_offset}"
        )
    groups: list[list[ByteRange]] = []
    taken = 0
    for step in _steps(view, begin, end):
        if not groups or taken + step.size_bytes > bytes_max:
            groups.append([])
            taken = 0
        taken += step.size_bytes
        _extend(groups[-1], step)
    begins = [begin, *(group[0].offset for group in groups[1:]), end]
    return [
        SegmentRange(
            begin=first,
            end=last,
            extents=tuple(group),
            aborted=tuple(view.aborted.overlapping(first, last)),
        )
        for (first, last), group in zip(pairwise(begins), groups, strict=False)
    ]


def end_within(view: PartitionView, begin: int, bytes_max: int) -> int:
    """Return the offset that `bytes_max` bytes reach from `begin` on: at least one index
    interval, at most the last stable offset."""
    end, taken = begin, 0
    for step in _steps(view, begin, view.last_stable_offset):
        taken += step.size_bytes
        if taken > bytes_max and end > begin:
            break
        end = max(end, step.end_offset)
    return end


def _steps(view: PartitionView, begin: int, end: int) -> Iterator[ByteRange]:
    """Yield the bytes of these offsets, split at the entries of the index."""
    for segment in view.segments:
        info = segment.info
        if info.end_offset <= begin or info.base_offset >= end:
            continue
        for first, last in pairwise(_entries(segment, begin, end)):
            yield ByteRange(
                path=segment.path,
                salt=segment.header.salt,
                position=first.position,
                end_position=last.position,
                offset=first.offset,
                end_offset=last.offset,
            )


def _entries(segment: SegmentView, begin: int, end: int) -> list[IndexEntry]:
    """Return positions of batches: one at or before `begin`, those between, one at or after
    `end`."""
    sparse, info = segment.sparse, segment.info
    entries = [sparse.before_offset(begin) or IndexEntry(info.base_offset, HEADER_BYTES)]
    # The index of the open segment grows beyond this view meanwhile.
    beyond = bisect_left(sparse.offsets, info.end_offset)
    for at in range(bisect_right(sparse.offsets, entries[0].offset), beyond):
        entries.append(IndexEntry(sparse.offsets[at], sparse.positions[at]))
        if entries[-1].offset >= end:
            return entries
    return [*entries, IndexEntry(info.end_offset, info.size_bytes)]


def _extend(extents: list[ByteRange], step: ByteRange) -> None:
    """Merge the bytes into the last extent if they follow it, else append them."""
    if extents and extents[-1].salt == step.salt:
        extents[-1] = replace(
            extents[-1], end_position=step.end_position, end_offset=step.end_offset
        )
    else:
        extents.append(step)


def read_range(disk: Disk, planned: SegmentRange) -> Iterator[StoredBatch]:
    """Yield every batch with an offset in the range, checked, without aborted ones. The first and
    last may have others, too.

    Raises `Conflict` if a file is no longer the planned one (plan again), `Corrupt` if its bytes
    are damaged.
    """
    aborted = AbortedTransactions(planned.aborted)
    for extent in planned.extents:
        try:
            file = disk.open(extent.path)
        except FileNotFoundError:
            raise _replaced(extent) from None
        with closing(file):
            for batch in _read_extent(file, extent, planned):
                if not (aborted and is_aborted(batch, aborted)):
                    yield batch


def _read_extent(file: File, extent: ByteRange, planned: SegmentRange) -> Iterator[StoredBatch]:
    header = _planned_header(file, extent)
    position, offset = extent.position, extent.offset
    for batch in walk_batches(file, header, position, extent.end_position, offset):
        position, offset = batch.end, batch.end_offset
        if batch.base_offset < planned.end and batch.end_offset > planned.begin:
            yield batch
    # Offsets may be missing after the last batch of a rewritten file, too.
    is_whole = offset == extent.end_offset or header.is_rewritten
    if position != extent.end_position or not is_whole:
        _planned_header(file, extent)
        raise Corrupt(
            path=extent.path,
            position=position,
            expected=f"acknowledged batches up to offset {extent.end_offset}",
            found=f"other bytes after offset {offset}",
            hint=REPAIR_HINT,
        )


def _planned_header(file: File, extent: ByteRange) -> SegmentHeader:
    """Return the file's header. Raises `Conflict` if the file was reused since it was planned."""
    header = decode_segment_header(file.read(0, HEADER_BYTES), extent.path)
    if header.salt != extent.salt:
        raise _replaced(extent)
    return header


def _replaced(extent: ByteRange) -> Conflict:
    return Conflict(
        f"{extent.path} with offsets {extent.offset} up to {extent.end_offset} no longer exists: "
        "it was trimmed or rewritten since it was planned, or this machine does not have "
        "the log's folder; check where the log starts now, and plan again"
    )

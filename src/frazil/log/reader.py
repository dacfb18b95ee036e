"""Reader: reads a partition in order. Only durable batches, each checked, no gap unnoticed.

A committed reader stops at the last stable offset and skips aborted batches. A stable one stops
there, too, but returns them: Kafka clients get a list of what to skip.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from frazil.disk import File
from frazil.errors import Corrupt, OutOfRange
from frazil.log.format.record import Record
from frazil.log.index import IndexEntry
from frazil.log.readable import ReadablePartition
from frazil.log.segment import HEADER_BYTES, REPAIR_HINT, StoredBatch, walk_batches
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.view import PartitionView, SegmentView

READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTime:
    """Start at the first record with this timestamp or a later one."""

    timestamp_ms: int


Isolation = Literal["committed", "stable", "uncommitted"]

Excess = Literal["last", "only", "none"]
"""Which batch may exceed the bytes of a read: the last one, if there is one at least; only one that
is alone; or none."""

Start = Literal["earliest", "latest"] | int | AtTime
"""Where a reader starts. There is no default: the right one depends on the caller."""


def start_offset(partition: ReadablePartition, start: Start) -> int:
    """Return the offset that `start` means now."""
    view = partition.view
    if start == "earliest":
        return view.start_offset
    if start == "latest":
        return view.last_stable_offset
    if isinstance(start, AtTime):
        return offset_at_time(partition, start.timestamp_ms)
    assert isinstance(start, int)
    if not view.start_offset <= start <= view.durable_watermark:
        raise OutOfRange(
            f"offset {start} of {partition.topic}/{partition.index} is outside the log, which "
            f"holds {view.start_offset} up to {view.durable_watermark}"
        )
    return start


class Reader:
    """A cursor over one partition. Owned by one thread; keeps at most one file open."""

    def __init__(
        self, partition: ReadablePartition, offset: int, *, isolation: Isolation = "committed"
    ) -> None:
        self.partition = partition
        self.offset = offset
        self._isolation = isolation
        self._file: File | None = None
        self._salt = b""
        self._entry = IndexEntry(0, 0)

    @classmethod
    def open(cls, partition: ReadablePartition, start: Start) -> Reader:
        return cls(partition, start_offset(partition, start))

    def read(self, bytes_max: int = READ_BYTES, *, excess: Excess = "last") -> list[StoredBatch]:
        """Return the next batches, about `bytes_max` bytes. `excess` is which may be above it.

        Empty if everything readable has been read, or if the next batch does not fit; `offset` may
        have advanced over aborted batches even so. Raises `OutOfRange` if retention removed the
        offset.
        """
        while True:
            segment = None
            try:
                with self.partition.swap:  # the owner renames and removes no file meanwhile
                    view = self.partition.current_view()
                    limit = self._limit(view)
                    if self.offset >= limit:
                        return []
                    segment = _segment_of(view, self.offset)
                    if segment is None:
                        raise self._removed()
                    file = self._enter(segment)
                before = self.offset
                batches = self._read_from(file, segment, limit, bytes_max, excess)
                is_stuck = self.offset == before
                if self._isolation == "committed" and view.aborted:
                    batches = [b for b in batches if not is_aborted(b, view.aborted)]
            except Corrupt:
                if not self._is_replaced(segment):
                    raise
                self.close()
                continue
            if batches or is_stuck:
                return batches

    def _limit(self, view: PartitionView) -> int:
        is_all = self._isolation == "uncommitted"
        return view.durable_watermark if is_all else view.last_stable_offset

    def _is_replaced(self, segment: SegmentView | None) -> bool:
        """Return whether a segment that cannot be read was rewritten by compaction meanwhile.
        Raises `OutOfRange` if it was trimmed: its file may be reused already."""
        view = self.partition.current_view(is_stale=True)
        if view.start_offset > self.offset:
            raise self._removed()
        current = _segment_of(view, self.offset)
        return (
            segment is not None
            and current is not None
            and current.header.salt != segment.header.salt
        )

    def _removed(self) -> OutOfRange:
        return OutOfRange(
            f"offset {self.offset} of {self.partition.topic}/{self.partition.index} has been "
            f"removed; the log starts at {self.partition.view.start_offset}"
        )

    def _enter(self, segment: SegmentView) -> File:
        """Open the segment's file and set the cursor to a batch at or before the offset."""
        if self._file is not None and self._salt == segment.header.salt:
            return self._file
        self.close()
        try:
            self._file = self.partition.disk.open(segment.path)
        except FileNotFoundError:
            raise _damaged(segment, 0, "no file") from None
        self._salt = segment.header.salt
        first = IndexEntry(segment.info.base_offset, HEADER_BYTES)
        self._entry = segment.sparse.before_offset(self.offset) or first
        return self._file

    def _read_from(
        self, file: File, segment: SegmentView, limit: int, bytes_max: int, excess: Excess
    ) -> list[StoredBatch]:
        """Return batches of one segment below offset `limit`. Empty only if compaction left none
        up to its end, or to the limit, or if the next one does not fit."""
        end = segment.info.size_bytes
        batches: list[StoredBatch] = []
        taken = 0
        position, offset = self._entry.position, self._entry.offset
        is_limited = is_full = False
        for batch in walk_batches(file, segment.header, position, end, offset):
            if batch.base_offset >= limit:  # the first batch of an open transaction begins there
                is_limited = True
                break
            is_new = batch.end_offset > self.offset
            may_exceed = excess == "last" or (excess == "only" and not batches)
            if is_new and not may_exceed and taken + len(batch.payload) > bytes_max:
                is_full = True
                break
            position, offset = batch.end, batch.end_offset
            if not is_new:
                continue
            batches.append(batch)
            taken += len(batch.payload)
            if taken >= bytes_max:
                break
        if position == end:
            if offset != segment.info.end_offset and not segment.header.is_rewritten:
                raise _damaged(segment, position, "the end of the file")
            offset = segment.info.end_offset
        elif is_limited:
            offset = limit  # compaction may have removed what was before it
        elif not is_full and (taken < bytes_max or not batches):
            raise _damaged(segment, position, "other bytes")
        self._entry = IndexEntry(offset, position)
        self.offset = max(offset, self.offset)  # a first read may begin inside a batch
        return batches

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._salt = b""


def offset_at_time(partition: ReadablePartition, timestamp_ms: int) -> int:
    """Return the offset of the first committed record with this timestamp or a later one; the last
    stable offset if there is none."""
    view = partition.view
    found = record_at_time(partition, timestamp_ms)
    return view.last_stable_offset if found is None else found.offset


def record_at_time(partition: ReadablePartition, timestamp_ms: int) -> Record | None:
    """Return the first committed record with this timestamp or a later one; None if there is
    none."""
    while True:
        try:
            return _look_up(partition, partition.view, timestamp_ms)
        except OutOfRange:
            continue  # removed by retention meanwhile: look again


def _look_up(partition: ReadablePartition, view: PartitionView, timestamp_ms: int) -> Record | None:
    for segment in view.segments:
        if segment.info.max_timestamp_ms < timestamp_ms:
            continue
        entry = segment.sparse.before_time(timestamp_ms)
        reader = Reader(partition, max(entry.offset if entry else 0, view.start_offset))
        try:
            while reader.offset < segment.info.end_offset:
                for batch in reader.read():
                    record = _first_at(batch, timestamp_ms, view.start_offset)
                    if record is not None:
                        return record
                if reader.offset >= partition.view.last_stable_offset:
                    break
        finally:
            reader.close()
    return None


def is_aborted(batch: StoredBatch, aborted: AbortedTransactions) -> bool:
    """Return whether a batch was part of an aborted transaction. Markers are not."""
    header = batch.header
    return (
        header.is_transactional
        and not header.is_control
        and aborted.covers(header.producer_id, batch.base_offset)
    )


def _first_at(batch: StoredBatch, timestamp_ms: int, start_offset: int) -> Record | None:
    """Return the first record in the batch with that time. The record with the header's max
    timestamp may have been compacted away, and the first records deleted."""
    if batch.header.max_timestamp_ms >= timestamp_ms:
        for record in batch.records():
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record
    return None


def _segment_of(view: PartitionView, offset: int) -> SegmentView | None:
    if offset < view.start_offset:
        return None
    at = bisect_right(view.segments, offset, key=lambda s: s.info.base_offset) - 1
    return view.segments[at] if at >= 0 else None


def _damaged(segment: SegmentView, position: int, found: str) -> Corrupt:
    return Corrupt(
        path=segment.path,
        position=position,
        expected="an acknowledged batch",
        found=found,
        hint=REPAIR_HINT,
    )

"""PartitionObserver: what is durable, seen from another process, without the log's lock.

1. watermarks  start and end of the log; its owner writes them after every group commit
2. names       of the segments that exist
3. walk        sealed segments are opened by their index; the open one is scanned once, then only
               its new bytes; never beyond the durable watermark

`observe` does all three. `follow` skips the walk, because the watermarks name the open segment and
its size: a reader that reads every batch anyway checks them itself.

The owner does not wait for observers: files are trimmed, reused and rewritten meanwhile. An attempt
that meets such a file is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

from frazil.disk import Disk, File, read_checkpoint
from frazil.errors import Conflict, Corrupt, Unknown
from frazil.log.index import (
    INDEX_KIND,
    INDEX_VERSION,
    NO_TIME,
    SegmentInfo,
    SparseIndex,
    decode_index,
)
from frazil.log.segment import (
    HEADER_BYTES,
    REPAIR_HINT,
    SegmentHeader,
    acknowledged_after,
    base_offsets,
    decode_segment_header,
    identity_of,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.topic import partition_folder, read_topic
from frazil.log.transactions.aborted_file import AbortedReader
from frazil.log.view import PartitionView, SegmentView
from frazil.log.watermarks import SegmentTail, StoredWatermarks, WatermarkReader

ATTEMPTS_MAX = 20
"""An attempt fails because files went away during it; the next starts with the current ones."""
INTERVAL_BYTES = 64 * 1024
"""Between two entries of an index built by a walk."""
ANY_OFFSET = 2**63 - 1
ANY_TIME = 2**63 - 1
"""Latest timestamp of a segment that was not read: a search by time must read it."""


def partition_count(disk: Disk, topic: str) -> int:
    """Return the number of partitions of a topic; 0 if it does not exist."""
    stored = read_topic(disk, topic)
    return 0 if stored is None else stored.config.partitions


class PartitionObserver:
    """Observes one partition repeatedly. Owned by one thread; changes nothing."""

    def __init__(self, disk: Disk, topic: str, partition: int) -> None:
        self._disk = disk
        self._topic = topic
        self._folder = partition_folder(topic, partition)
        self._identity = identity_of(topic, partition)
        self._watermarks = WatermarkReader(disk, self._folder)
        self._aborted = AbortedReader(disk, self._folder)
        self._known: dict[int, SegmentView] = {}
        """Segments with complete indexes, by base offset."""
        self._view: PartitionView | None = None
        """The last result of `observe`."""
        self._followed: PartitionView | None = None
        """The last result of `follow`."""

    def observe(self, *, is_stale: bool = False) -> PartitionView:
        """Return what is durable now. `is_stale`: the files of the last view may not be there any
        more. Raises `Corrupt` if files lack acknowledged data in every attempt, `Conflict` if they
        changed during every attempt, `Unknown` if the topic was deleted."""
        if is_stale:
            self._view = None
        self._view = self._repeated(self._observe)
        return self._view

    def observe_unowned(self) -> PartitionView:
        """Return what the next owner will find, in a log that no process has open.

        After a power cut the watermark file may be old: the last segment is scanned instead, as
        recovery does. Otherwise like `observe`.
        """
        return self._repeated(self._observe_unowned)

    def follow(self, *, is_stale: bool = False) -> PartitionView:
        """Return what is durable now without reading segments: their indexes may be incomplete.
        Otherwise like `observe`."""
        if is_stale:
            self._followed = None
        self._followed = self._repeated(self._follow)
        return self._followed

    def _repeated(self, look: Callable[[StoredWatermarks], PartitionView]) -> PartitionView:
        reason: Exception | None = None
        for _ in range(ATTEMPTS_MAX):
            stored = self._watermarks.read()
            if stored.is_deleted:
                raise Unknown(f"topic {self._topic} was deleted")
            try:
                return look(stored)
            except (Conflict, Corrupt, FileNotFoundError) as error:
                reason = error
        if isinstance(reason, Corrupt):
            raise reason
        raise Conflict(f"{self._folder} changed during {ATTEMPTS_MAX} attempts: {reason}; retry")

    def _observe(self, stored: StoredWatermarks) -> PartitionView:
        if self._view is not None and _is_current(self._view, stored):
            return self._view
        view = self._joined(stored, self._walked)
        self._known = {segment.info.base_offset: segment for segment in view.segments}
        return view

    def _observe_unowned(self, stored: StoredWatermarks) -> PartitionView:
        end, first_transaction = self._scanned_end(stored.durable_watermark)
        if end > stored.durable_watermark:
            # What the last stable offset is beyond that, recovery finds out.
            stable = stored.stable_point
            if stable.last_stable_offset == stored.durable_watermark:
                stable = stable._replace(last_stable_offset=min(end, first_transaction))
            stored = replace(stored, durable_watermark=end, tail=None, stable=stable)
        return self._joined(stored, self._walked)

    def _scanned_end(self, known: int) -> tuple[int, int]:
        """Return the offset after the last whole batch, 0 if the creation of the last segment was
        torn; and the first offset from `known` on that is part of a transaction."""
        first_transaction = ANY_OFFSET
        bases = base_offsets(self._disk.list(self._folder), ".log")
        if not bases:
            return 0, first_transaction
        with closing(self._open(bases[-1])) as file:
            if file.size() <= HEADER_BYTES:
                return bases[-1], first_transaction
            header = self._header(file, bases[-1])
            if header.is_rewritten:
                return header.sealed_end_offset, first_transaction
            end, position = bases[-1], HEADER_BYTES
            for batch in walk_batches(file, header, HEADER_BYTES, file.size(), end):
                end, position = batch.end_offset, batch.end
                if batch.base_offset >= known and batch.header.is_transactional:
                    first_transaction = min(first_transaction, batch.base_offset)
            acknowledged = acknowledged_after(file, header, position, file.size())
        if acknowledged > end:
            raise self._missing(end, acknowledged)
        return end, first_transaction

    def _follow(self, stored: StoredWatermarks) -> PartitionView:
        view, tail = self._followed, stored.tail
        if tail is None:  # written by an earlier release
            return self._observe(stored)
        if view is not None and _is_current(view, stored):
            return view
        if view is not None and view.segments and view.start_offset == stored.start_offset:
            last = view.segments[-1]
            if last.info.base_offset == tail.base_offset:
                segment = _ending_at(last, stored.durable_watermark, tail)
                segments = (*view.segments[:-1], segment)
                return self._view_of(stored, stored.durable_watermark, segments)
        known = {} if view is None else {s.info.base_offset: s for s in view.segments[:-1]}

        def unread(base: int, next_base: int) -> SegmentView:
            segment = known.get(base)
            if segment is not None and segment.info.end_offset == next_base:
                return segment
            return self._unwalked(base, next_base, stored, tail)

        return self._joined(stored, unread)

    def _joined(
        self, stored: StoredWatermarks, segment_of: Callable[[int, int], SegmentView]
    ) -> PartitionView:
        """List the segments and join them. `segment_of` gets a base offset and the next one."""
        start = stored.start_offset
        end = max(start, stored.durable_watermark)
        bases = [base for base in base_offsets(self._disk.list(self._folder), ".log") if base < end]
        while len(bases) > 1 and bases[1] <= start:
            bases.pop(0)  # being trimmed
        segments: list[SegmentView] = []
        end_offset = bases[0] if bases else end
        if start < end_offset:
            raise self._missing(start, end_offset)
        for base, next_base in pairwise([*bases, end]):
            if base < end_offset:
                continue  # merged into a rewritten segment
            if base > end_offset:
                raise self._missing(end_offset, base)
            segments.append(segment_of(base, next_base))
            end_offset = segments[-1].info.end_offset
        if end_offset < end:
            raise self._missing(end_offset, end)
        return self._view_of(stored, end, tuple(segments))

    def _walked(self, base: int, next_base: int) -> SegmentView:
        """Return a segment with a complete index."""
        with closing(self._open(base)) as file:
            path, header = self._path(base), self._header(file, base)
            end = header.sealed_end_offset if header.is_rewritten else next_base
            known = self._known.get(base)
            if known is None or known.header.salt != header.salt:
                known = self._indexed(path, header, end) or _unread(path, header)
            if known.info.end_offset == end:
                return known
            return _walk(file, known, end)

    def _unwalked(
        self, base: int, next_base: int, stored: StoredWatermarks, tail: SegmentTail
    ) -> SegmentView:
        """Return a segment by its index, or by its size if it has none yet."""
        with closing(self._open(base)) as file:
            path, header = self._path(base), self._header(file, base)
            end = header.sealed_end_offset if header.is_rewritten else next_base
            # A tail that compaction has overtaken tells the size before it.
            if base == tail.base_offset and not header.is_rewritten:
                return _ending_at(_unread(path, header), stored.durable_watermark, tail)
            indexed = self._indexed(path, header, end)
            if indexed is not None:
                return indexed
            # A sealed segment is cut after its last batch before the next one is created.
            size = header.sealed_bytes if header.is_rewritten else file.size()
            return _ending_at(_unread(path, header), end, SegmentTail(base, size, ANY_TIME))

    def _view_of(
        self, stored: StoredWatermarks, end: int, segments: tuple[SegmentView, ...]
    ) -> PartitionView:
        start, stable = stored.start_offset, stored.stable_point
        return PartitionView(
            start,
            end,
            segments,
            max(start, stable.last_stable_offset),
            self._aborted.read(stable.aborted_count),
            stored.exempt_offset,
        )

    def _path(self, base: int) -> str:
        return f"{self._folder}/{segment_name(base)}"

    def _open(self, base: int) -> File:
        return self._disk.open(self._path(base))

    def _header(self, file: File, base: int) -> SegmentHeader:
        path = self._path(base)
        header = decode_segment_header(file.read(0, HEADER_BYTES), path)
        if (header.identity, header.base_offset) != (self._identity, base):
            raise Conflict(f"{path} was replaced meanwhile")
        return header

    def close(self) -> None:
        self._watermarks.close()

    def _indexed(self, path: str, header: SegmentHeader, end: int) -> SegmentView | None:
        """Open a sealed segment by its index, if that exists and matches the file."""
        index_path = f"{self._folder}/{side_name(header.base_offset, '.index')}"
        try:
            body = read_checkpoint(self._disk, index_path, INDEX_KIND, INDEX_VERSION, "")
        except Corrupt:
            return None  # derived: its owner rebuilds it
        if body is None:
            return None
        salt, info, sparse = decode_index(body, INTERVAL_BYTES)
        if (salt, info.base_offset, info.end_offset) != (header.salt, header.base_offset, end):
            return None
        return SegmentView(path, header, info, sparse)

    def _missing(self, begin: int, end: int) -> Corrupt:
        return Corrupt(
            path=self._folder,
            position=0,
            expected=f"offsets {begin} to {end}",
            found="no file that holds them",
            hint=REPAIR_HINT,
        )


def _is_current(view: PartitionView, stored: StoredWatermarks) -> bool:
    """Return whether the watermarks are unchanged since this view."""
    start, stable = stored.start_offset, stored.stable_point
    return (
        start,
        max(start, stored.durable_watermark),
        max(start, stable.last_stable_offset),
        stable.aborted_count,
        stored.exempt_offset,
    ) == (
        view.start_offset,
        view.durable_watermark,
        view.last_stable_offset,
        view.aborted.count,
        view.exempt_offset,
    )


def _unread(path: str, header: SegmentHeader) -> SegmentView:
    """Return a segment of which nothing was read yet."""
    base = header.base_offset
    info = SegmentInfo(base, base, HEADER_BYTES, NO_TIME, 0, 0)
    return SegmentView(path, header, info, SparseIndex(INTERVAL_BYTES))


def _ending_at(segment: SegmentView, end_offset: int, tail: SegmentTail) -> SegmentView:
    """Return a segment with another end, as far as its owner has told."""
    info = segment.info._replace(
        end_offset=end_offset,
        size_bytes=tail.size_bytes,
        max_timestamp_ms=tail.max_timestamp_ms,
    )
    return segment._replace(info=info)


def _walk(file: File, known: SegmentView, end: int) -> SegmentView:
    """Extend a segment up to `end`, with its index."""
    info, header, sparse = known.info, known.header, known.sparse
    offset, position, time = info.end_offset, info.size_bytes, info.max_timestamp_ms
    for batch in walk_batches(file, header, position, file.size(), offset):
        if batch.end_offset > end:
            break
        sparse.add(batch.base_offset, batch.position, time)
        time = max(time, batch.header.max_timestamp_ms)
        offset, position = batch.end_offset, batch.end
        if offset == end:
            break
    if header.is_rewritten and position == header.sealed_bytes:
        offset = end  # offsets may be missing after its last batch, too
    if offset != end:
        raise Corrupt(
            path=known.path,
            position=position,
            expected=f"acknowledged batches up to offset {end}",
            found=f"other bytes after offset {offset}",
            hint=REPAIR_HINT,
        )
    info = info._replace(end_offset=end, size_bytes=position, max_timestamp_ms=time)
    return known._replace(info=info)

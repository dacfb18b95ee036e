"""PartitionObserver: what is durable, seen from another process, without the log's lock.

1. watermarks  start and end of the log; its owner writes them after every group commit
2. names       of the segments that exist
3. walk        sealed segments are opened by their index; the open one is scanned once, then only
               its new bytes; never beyond the durable watermark

The owner does not wait for observers: files are trimmed, reused and rewritten meanwhile. An attempt
that meets such a file is repeated.
"""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise

import msgspec

from frazil.disk import Disk, File, read_checkpoint
from frazil.errors import Conflict, Corrupt
from frazil.log.config import TopicConfig
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
    base_offsets,
    decode_segment_header,
    identity_of,
    segment_name,
    side_name,
    walk_batches,
)
from frazil.log.topic import (
    CONFIG_KIND,
    CONFIG_NAME,
    CONFIG_VERSION,
    FOLDER,
    HINT,
    partition_folder,
)
from frazil.log.view import PartitionView, SegmentView
from frazil.log.watermarks import StoredWatermarks, read_watermarks

ATTEMPTS_MAX = 20
"""An attempt fails because files went away during it; the next starts with the current ones."""
INTERVAL_BYTES = 64 * 1024
"""Between two entries of an index built by a walk."""


def partition_count(disk: Disk, topic: str) -> int:
    """Return the number of partitions of a topic; 0 if it does not exist."""
    path = f"{FOLDER}/{topic}/{CONFIG_NAME}"
    body = read_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, HINT)
    return 0 if body is None else msgspec.json.decode(body, type=TopicConfig).partitions


class PartitionObserver:
    """Observes one partition repeatedly. Owned by one thread; changes nothing."""

    def __init__(self, disk: Disk, topic: str, partition: int) -> None:
        self._disk = disk
        self._folder = partition_folder(topic, partition)
        self._identity = identity_of(topic, partition)
        self._known: dict[int, SegmentView] = {}
        self._view: PartitionView | None = None

    def observe(self) -> PartitionView:
        """Return what is durable now. Raises `Corrupt` if files lack acknowledged data in every
        attempt, `Conflict` if they changed during every attempt."""
        reason: Exception | None = None
        for _ in range(ATTEMPTS_MAX):
            stored = read_watermarks(self._disk, self._folder)
            if self._view is not None and _is_current(self._view, stored):
                return self._view
            try:
                self._view = self._observe(stored)
            except (Conflict, Corrupt, FileNotFoundError) as error:
                reason = error
            else:
                return self._view
        if isinstance(reason, Corrupt):
            raise reason
        raise Conflict(f"{self._folder} changed during {ATTEMPTS_MAX} attempts: {reason}; retry")

    def _observe(self, stored: StoredWatermarks) -> PartitionView:
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
            segments.append(self._segment(base, next_base))
            end_offset = segments[-1].info.end_offset
        if end_offset < end:
            raise self._missing(end_offset, end)
        self._known = {segment.info.base_offset: segment for segment in segments}
        return PartitionView(start, end, tuple(segments))

    def _segment(self, base: int, next_base: int) -> SegmentView:
        path = f"{self._folder}/{segment_name(base)}"
        with closing(self._disk.open(path)) as file:
            header = decode_segment_header(file.read(0, HEADER_BYTES), path)
            if (header.identity, header.base_offset) != (self._identity, base):
                raise Conflict(f"{path} was replaced meanwhile")
            end = header.sealed_end_offset if header.is_rewritten else next_base
            known = self._known.get(base)
            if known is None or known.header.salt != header.salt:
                known = self._indexed(path, header, end) or _unread(path, header)
            if known.info.end_offset == end:
                return known
            return _walk(file, known, end)

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
    offsets = stored.start_offset, max(stored.start_offset, stored.durable_watermark)
    return offsets == (view.start_offset, view.durable_watermark)


def _unread(path: str, header: SegmentHeader) -> SegmentView:
    """Return a segment of which nothing was read yet."""
    base = header.base_offset
    info = SegmentInfo(base, base, HEADER_BYTES, NO_TIME, 0, 0)
    return SegmentView(path, header, info, SparseIndex(INTERVAL_BYTES))


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
            found=f"bytes that are no such batch after offset {offset}",
            hint=REPAIR_HINT,
        )
    info = info._replace(end_offset=end, size_bytes=position, max_timestamp_ms=time)
    return known._replace(info=info)

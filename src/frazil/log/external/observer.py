"""Looking at a log from outside: another process sees what is durable, without the log's lock.

1. marks    say from where up to where the log goes: its owner writes them after every group commit
2. names    of the segments that there are
3. walk     sealed segments are taken by their index; the open one is read through, once, and then
            only what is new in it; never beyond what the marks say

Nobody waits for whoever looks: files are trimmed, written over and rewritten meanwhile. A look
that has met such a file is begun again.
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
from frazil.log.watermarks import StoredWatermarks, read_marks

LOOKS_MAX = 20
"""Each fails because files went away during it, and each begins with what is there now."""
INTERVAL_BYTES = 64 * 1024
"""Between two entries of the index that a walk makes."""


def partition_count(disk: Disk, topic: str) -> int:
    """How many partitions a topic has; 0 when there is no such topic yet."""
    path = f"{FOLDER}/{topic}/{CONFIG_NAME}"
    body = read_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, HINT)
    return 0 if body is None else msgspec.json.decode(body, type=TopicConfig).partitions


class PartitionObserver:
    """One partition, looked at again and again. Belongs to one thread; changes nothing."""

    def __init__(self, disk: Disk, topic: str, partition: int) -> None:
        self._disk = disk
        self._folder = partition_folder(topic, partition)
        self._identity = identity_of(topic, partition)
        self._known: dict[int, SegmentView] = {}
        self._view: PartitionView | None = None

    def look(self) -> PartitionView:
        """What is durable now. `Corrupt` when files do not hold what was promised, also when
        looked at again; `Conflict` when they changed during every look."""
        reason: Exception | None = None
        for _ in range(LOOKS_MAX):
            promise = read_marks(self._disk, self._folder)
            if self._view is not None and _is_old(self._view, promise):
                return self._view
            try:
                self._view = self._look(promise)
            except (Conflict, Corrupt, FileNotFoundError) as error:
                reason = error
            else:
                return self._view
        if isinstance(reason, Corrupt):
            raise reason
        raise Conflict(f"{self._folder} changed during {LOOKS_MAX} looks: {reason}; look again")

    def _look(self, promise: StoredWatermarks) -> PartitionView:
        start = promise.start_offset
        end = max(start, promise.durable_watermark)
        bases = [base for base in base_offsets(self._disk.list(self._folder), ".log") if base < end]
        while len(bases) > 1 and bases[1] <= start:
            bases.pop(0)  # about to go
        segments: list[SegmentView] = []
        reach = bases[0] if bases else end
        if start < reach:
            raise self._hole(start, reach)
        for base, following in pairwise([*bases, end]):
            if base < reach:
                continue  # a rewritten one reaches over it
            if base > reach:
                raise self._hole(reach, base)
            segments.append(self._segment(base, following))
            reach = segments[-1].info.end_offset
        if reach < end:
            raise self._hole(reach, end)
        self._known = {segment.info.base_offset: segment for segment in segments}
        return PartitionView(start, end, tuple(segments))

    def _segment(self, base: int, following: int) -> SegmentView:
        path = f"{self._folder}/{segment_name(base)}"
        with closing(self._disk.open(path)) as file:
            header = decode_segment_header(file.read(0, HEADER_BYTES), path)
            if (header.identity, header.base_offset) != (self._identity, base):
                raise Conflict(f"{path} is another file by now")
            end = header.sealed_end_offset if header.is_rewritten else following
            known = self._known.get(base)
            if known is None or known.header.salt != header.salt:
                known = self._indexed(path, header, end) or _unread(path, header)
            if known.info.end_offset == end:
                return known
            return _walk(file, known, end)

    def _indexed(self, path: str, header: SegmentHeader, end: int) -> SegmentView | None:
        """A sealed segment by its index, if that is there and speaks of this very file."""
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

    def _hole(self, begin: int, end: int) -> Corrupt:
        return Corrupt(
            path=self._folder,
            position=0,
            expected=f"offsets {begin} to {end}",
            found="no file that holds them",
            hint=REPAIR_HINT,
        )


def _is_old(view: PartitionView, promise: StoredWatermarks) -> bool:
    """Does the promise say what it said when this was seen?"""
    said = promise.start_offset, max(promise.start_offset, promise.durable_watermark)
    return said == (view.start_offset, view.durable_watermark)


def _unread(path: str, header: SegmentHeader) -> SegmentView:
    """A segment of which nothing is known yet."""
    base = header.base_offset
    info = SegmentInfo(base, base, HEADER_BYTES, NO_TIME, 0, 0)
    return SegmentView(path, header, info, SparseIndex(INTERVAL_BYTES))


def _walk(file: File, known: SegmentView, end: int) -> SegmentView:
    """The segment up to `end`, from where it is known on. Its index grows with it."""
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
        offset = end  # behind its last batch offsets may be missing, as well as between
    if offset != end:
        raise Corrupt(
            path=known.path,
            position=position,
            expected=f"acknowledged batches up to offset {end}",
            found=f"bytes that are no such batch behind offset {offset}",
            hint=REPAIR_HINT,
        )
    found = info._replace(end_offset=end, size_bytes=position, max_timestamp_ms=time)
    return known._replace(info=found)

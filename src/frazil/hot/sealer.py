"""Sealer: writes frozen segments to files, then saves the log progress, then removes old files.

A failed seal keeps its rows in memory and is retried with a new file, never with the one whose
sync failed. Until it succeeds the log keeps these offsets.

While the disk is short of space, no file is written: rows wait in memory until the lake has them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pyarrow as pa

from frazil.disk import DiskReserve, WriteBuffer
from frazil.errors import Corrupt, Unavailable
from frazil.hot.partition import HotPartition
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.visible import VisibleSegments
from frazil.metrics import Counter, Gauge, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.settings import HotConfig

logger = logging.getLogger(__name__)

ON_DISK = Gauge("frazil.hot.sealed.bytes", "Sealed segments on disk.")
SEALED = Counter("frazil.hot.sealed.segments", "Segments sealed.")
SEAL_FAILED = Counter("frazil.hot.seal.failures", "Seals that failed and will be retried.")
KEPT = Gauge("frazil.hot.kept.bytes", "Bytes above the disk limit that are not in the lake yet.")
SEAL_MS = Histogram("frazil.hot.seal.ms", "Time to make one segment durable.")

SPACE_MS = 1000
"""How often to check the free space of the disk."""
UNMAP_MS = 3000
"""How long to wait after an eviction: a file takes its space until no query has it mapped."""

LakeWatermark = Callable[[str, str, int], int]
"""Table, topic, partition -> the first offset that queries do not get from the lake."""

RemovedBelow = Callable[[str, int], int]
"""Topic, partition -> the offset below which the lake has removed rows."""


class Sealer:
    """Owns the files of all partitions, under one lock that `seal` and `evict` take. Any thread
    may call them."""

    def __init__(
        self,
        visible: VisibleSegments,
        config: HotConfig,
        clock: Clock,
        lake_watermark: LakeWatermark | None,
        reserve: DiskReserve,
        removed_below: RemovedBelow | None = None,
    ) -> None:
        self.trouble: str | None = None
        """Why the disk limit is exceeded, or None."""
        self.shortage: str | None = None
        """What was given up because the disk is short of space, or None."""
        self._reserve = reserve
        self._space_ns = 0
        """When to check the free space next."""
        self._given_up_bytes = 0
        self._lake_watermark = lake_watermark
        self._removed_below = removed_below
        self._visible = visible
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._buffer = WriteBuffer()
        self._retry_ns: dict[HotPartition, int] = {}

    def seal(self) -> int:
        """Write all frozen segments. Returns the number of files written."""
        with self._lock:
            count = sum(map(self._seal_all, self._visible.partitions))
            for partition in self._visible.partitions:
                self._drop_removed(partition)
                self._save_progress(partition)
                self._uncache_log(partition)
            if count or self._is_above_limit:
                self._merge_and_evict()
            self._make_room()
            ON_DISK.set(self._visible.sealed_bytes)
            return count

    def _seal_all(self, partition: HotPartition) -> int:
        now_ns = self._clock.monotonic_ns()
        if self._retry_ns.get(partition, now_ns) > now_ns:
            return 0
        count = 0
        while partition.frozen and self._seal_one(partition, partition.frozen[0]):
            count += 1
        return count

    def _seal_one(self, partition: HotPartition, segment: OpenSegment) -> bool:
        """Write one segment. Returns False if that failed; nothing is changed then."""
        is_held = self._held(partition) >= segment.end_offset
        if is_held and segment.begin_offset < self.dropped_below(partition):
            return self._give_up(partition, segment, "removed")
        if not self._has_room(segment.size_bytes):
            if is_held:
                is_done = self._give_up(partition, segment, "disk")
                self._given_up_bytes += segment.size_bytes if is_done else 0
                return is_done
            if not self._is_memory_short:
                self._reveal(partition)
                return False  # the lake needs the space, and will have these rows soon
        begin_ns = self._clock.monotonic_ns()
        begin, end = segment.begin_offset, segment.end_offset
        try:
            created_ms = self._clock.wall_ms()
            slots = segment.slots()
            sealed = partition.segments.write(begin, end, created_ms, slots, self._buffer)
        except (OSError, Corrupt, pa.ArrowException) as error:
            SEAL_FAILED.add(topic=partition.source.topic)
            logger.error("seal failed, rows stay in memory", extra={"reason": str(error)})
            self._retry_ns[partition] = begin_ns + self._config.retry_ms * NS_PER_MS
            self._reveal(partition)
            return False
        with self._visible.swap:
            partition.frozen = partition.frozen[1:]
            partition.segments.put(sealed)
            self._visible.publish()
            partition.advance_watermark()
        partition.subscriber.finish(partition.log.index, begin, end)
        SEALED.add(topic=partition.source.topic)
        SEAL_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
        return True

    def _reveal(self, partition: HotPartition) -> None:
        """Show the hidden rows of a partition that cannot be sealed now."""
        with self._visible.swap:
            hidden = [segment for segment in partition.frozen if segment.is_hidden]
            if not hidden:
                return
            for segment in hidden:
                segment.reveal()
            self._visible.publish()
            partition.advance_watermark()

    def _give_up(self, partition: HotPartition, segment: OpenSegment, reason: str) -> bool:
        """Drop rows that are in no file, because queries get them from the lake. Returns False if
        that failed; the rows stay then."""
        begin, end = segment.begin_offset, segment.end_offset
        try:
            self._evict(partition, end, reason)
            if not partition.segments.start_at(end):
                return False
        except OSError as error:
            logger.error("hot rows not evicted", extra={"reason": str(error)})
            return False
        with self._visible.swap:
            partition.frozen = partition.frozen[1:]
            self._visible.publish()
            partition.advance_watermark()
        partition.subscriber.finish(partition.log.index, begin, end)
        return True

    def dropped_below(self, partition: HotPartition) -> int:
        """Return the offset below which nothing is kept, because rows were removed there."""
        if self._removed_below is None:
            return 0
        return self._removed_below(partition.source.topic, partition.log.index)

    def _drop_removed(self, partition: HotPartition) -> None:
        """Evict files that have rows which were removed from the lake. Queries do not see them:
        they get these offsets from the lake."""
        below, held = self.dropped_below(partition), self._held(partition)
        ends = [
            segment.end_offset
            for segment in partition.segments.sealed
            if segment.begin_offset < below and segment.end_offset <= held
        ]
        if ends:
            try:
                self._evict(partition, ends[-1], "removed")
            except OSError as error:
                logger.error("removed rows not evicted", extra={"reason": str(error)})

    def _has_room(self, size_bytes: int) -> bool:
        """Return whether a file may be written. Without a lake no space is kept for its flush."""
        return self._lake_watermark is None or not self._reserve.missing_bytes(size_bytes)

    @property
    def _is_memory_short(self) -> bool:
        return self._visible.unsealed_bytes >= self._config.memory_bytes_max

    def _save_progress(self, partition: HotPartition) -> None:
        """While this fails the log keeps more than it needs to."""
        try:
            partition.subscriber.step()
        except (OSError, Unavailable) as error:
            logger.error("progress of the hot tier not saved", extra={"reason": str(error)})

    def _uncache_log(self, partition: HotPartition) -> None:
        """Drop what neither the hot tier nor the lake reads again: the log keeps it for a while."""
        end = partition.segments.end_offset
        if self._lake_watermark is not None:
            end = min(end, self._held(partition))
        try:
            partition.uncache_log(end)
        except OSError as error:
            logger.error("page cache of the log not dropped", extra={"reason": str(error)})

    def _merge_and_evict(self) -> None:
        """Merge small files, and evict the oldest above the limit. Failures wait for the next
        seal."""
        seal_bytes = self._config.seal_bytes
        try:
            for partition in self._visible.partitions:
                # A merged file is written before the small ones are removed.
                if self._has_room(seal_bytes) and partition.segments.merge(
                    seal_bytes, self._buffer
                ):
                    self._publish()
            while self._is_above_limit and self._evict_oldest("size"):
                continue
            self._report_excess()
        except (OSError, Corrupt, pa.ArrowException) as error:
            logger.error("hot segments not merged or evicted", extra={"reason": str(error)})

    def _make_room(self) -> None:
        """Evict the oldest files while the disk is short of space. Without a lake nothing else has
        their rows, and they stay."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._space_ns or self._lake_watermark is None:
            return
        self._space_ns = now_ns + SPACE_MS * NS_PER_MS
        try:
            missing = self._reserve.missing_bytes()
            self._report_shortage(missing)
            while missing > 0 and (freed := self._evict_oldest("disk")):
                missing -= freed
                self._given_up_bytes += freed
                self._space_ns = now_ns + UNMAP_MS * NS_PER_MS
        except OSError as error:
            logger.error("cannot free disk space", extra={"reason": str(error)})

    def _report_shortage(self, missing: int) -> None:
        if not missing:
            self.shortage, self._given_up_bytes = None, 0
            return
        if self.shortage is None:
            logger.warning("the disk is short of space", extra={"missing_bytes": missing})
        self.shortage = (
            f"the disk is short of space: {self._given_up_bytes} bytes of the hot tier evicted, "
            "whose rows are in the lake"
        )

    def _evict_oldest(self, reason: str) -> int:
        """Evict the oldest file that may be. Returns its bytes; 0 if there is none."""
        partitions = [p for p in self._visible.partitions if self._is_evictable(p)]
        if not partitions:
            return 0
        oldest = min(partitions, key=lambda p: p.segments.sealed[0].file.header.created_ms)
        segment = oldest.segments.sealed[0]
        self._evict(oldest, segment.end_offset, reason)
        return segment.file.size_bytes

    @property
    def _is_above_limit(self) -> bool:
        return self._visible.sealed_bytes > self._config.disk_bytes_max

    def _is_evictable(self, partition: HotPartition) -> bool:
        """Return whether the oldest file may be evicted. With a lake, only if queries get its rows
        from there; then every result has them: see `frazil.lake.scan.view`."""
        sealed = partition.segments.sealed
        if not sealed or self._lake_watermark is None:
            return bool(sealed)
        return sealed[0].end_offset <= self._held(partition)

    def _held(self, partition: HotPartition) -> int:
        """Return the first offset that queries do not get from the lake."""
        if self._lake_watermark is None:
            return 0
        source = partition.source
        return self._lake_watermark(source.table, source.topic, partition.log.index)

    def _report_excess(self) -> None:
        """Report files above the limit, which are kept while only the hot tier has their rows."""
        excess = max(0, self._visible.sealed_bytes - self._config.disk_bytes_max)
        KEPT.set(excess)
        if not excess:
            self.trouble = None
            return
        if self.trouble is None:
            logger.error("hot files kept above the disk limit", extra={"bytes": excess})
        self.trouble = (
            f"the hot tier is {excess} bytes above hot.disk_bytes_max "
            f"({self._config.disk_bytes_max}), because the lake does not have these rows yet; "
            "check why the lake lags, or raise the limit"
        )

    def evict(self, partition: HotPartition, offset: int, reason: str) -> int:
        """Remove files that end at or below `offset`. Returns how many."""
        with self._lock:
            return self._evict(partition, offset, reason)

    def _evict(self, partition: HotPartition, offset: int, reason: str) -> int:
        evicted = partition.segments.evict(offset, reason)
        self._publish()
        partition.segments.remove(evicted)
        return len(evicted)

    def _publish(self) -> None:
        with self._visible.swap:
            self._visible.publish()

    def release_memory(self) -> None:
        """Give back memory of mapped files, and of the last seal; later work takes it again."""
        with self._lock:
            self._buffer.release()
        for partition in self._visible.partitions:
            for segment in partition.segments.sealed:
                segment.file.mapped.release()

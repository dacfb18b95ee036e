"""Sealer: what is frozen becomes files, the log is told, old files go. In this order.

A failed seal keeps its rows in memory and is tried again with another file, never with the one
whose sync failed. Until it succeeds the log keeps these offsets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pyarrow as pa

from frazil.errors import Corrupt
from frazil.hot.config import HotConfig
from frazil.hot.partition import HotPartition
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.visible import VisibleSegments
from frazil.metrics import Counter, Gauge, Histogram
from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

ON_DISK = Gauge("frazil.hot.sealed.bytes", "Sealed segments on disk.")
SEALED = Counter("frazil.hot.sealed.segments", "Segments sealed.")
SEAL_FAILED = Counter("frazil.hot.seal.failures", "Seals that failed and will be tried again.")
KEPT = Gauge("frazil.hot.kept.bytes", "Above the cap on disk, and not in the lake yet.")
SEAL_MS = Histogram("frazil.hot.seal.ms", "Time to make one segment durable.")

Held = Callable[[str, str, int], int]
"""Table, topic, partition -> the first offset that queries do not get from the lake."""


class Sealer:
    """The files of all partitions belong to whoever holds the turn, which `seal` and `evict`
    take. Any thread may call them."""

    def __init__(
        self, shown: VisibleSegments, config: HotConfig, clock: Clock, held: Held | None
    ) -> None:
        self.trouble: str | None = None
        """Why there is more on disk than there should be; None when there is not."""
        self._held = held
        self._shown = shown
        self._config = config
        self._clock = clock
        self._turn = threading.Lock()
        self._retry_ns: dict[HotPartition, int] = {}

    def seal(self) -> int:
        """Write what is frozen. Returns how many files were made."""
        with self._turn:
            count = sum(map(self._seal_all, self._shown.partitions))
            for partition in self._shown.partitions:
                self._tell_log(partition)
            if count or self._is_above_cap:
                self._tidy()
            ON_DISK.set(self._shown.sealed_bytes)
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
        """False when it failed: then everything is as before."""
        begin_ns = self._clock.monotonic_ns()
        begin, end = segment.begin_offset, segment.end_offset
        try:
            created_ms = self._clock.wall_ms()
            sealed = partition.shelf.write(begin, end, created_ms, segment.slots())
        except (OSError, Corrupt, pa.ArrowException) as error:
            SEAL_FAILED.add(topic=partition.source.topic)
            logger.error("seal failed, rows stay in memory", extra={"reason": str(error)})
            self._retry_ns[partition] = begin_ns + self._config.retry_ms * NS_PER_MS
            return False
        with self._shown.swap:
            partition.frozen = partition.frozen[1:]
            partition.shelf.put(sealed)
            self._shown.publish()
        partition.subscriber.finish(partition.log.index, begin, end)
        SEALED.add(topic=partition.source.topic)
        SEAL_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
        return True

    def _tell_log(self, partition: HotPartition) -> None:
        """Save progress. While that fails the log keeps more than it must."""
        try:
            partition.subscriber.step()
        except OSError as error:
            logger.error("progress of the hot tier not saved", extra={"reason": str(error)})

    def _tidy(self) -> None:
        """Join small files; remove the oldest above the cap. What fails waits for the next seal."""
        shown = self._shown
        try:
            for partition in shown.partitions:
                if partition.shelf.merge(self._config.seal_bytes):
                    self._publish()
            while self._is_above_cap:
                filled = [p for p in shown.partitions if p.shelf.sealed and self._may_go(p)]
                if not filled:
                    break
                oldest = min(filled, key=lambda p: p.shelf.sealed[0].segment.header.created_ms)
                self._evict(oldest, oldest.shelf.sealed[0].end_offset, "size")
            self._tell_if_above_cap()
        except (OSError, Corrupt, pa.ArrowException) as error:
            logger.error("hot segments not tidied", extra={"reason": str(error)})

    @property
    def _is_above_cap(self) -> bool:
        return self._shown.sealed_bytes > self._config.disk_bytes_max

    def _may_go(self, partition: HotPartition) -> bool:
        """Beside a lake, its oldest file only when queries get those rows from there. Then they
        are in every answer: see `frazil.lake.scan.view`."""
        if self._held is None:
            return True
        source = partition.source
        held = self._held(source.table, source.topic, partition.log.index)
        return partition.shelf.sealed[0].end_offset <= held

    def _tell_if_above_cap(self) -> None:
        """Rows that nobody else shows are kept, whatever they take."""
        above = max(0, self._shown.sealed_bytes - self._config.disk_bytes_max)
        KEPT.set(above)
        if not above:
            self.trouble = None
            return
        if self.trouble is None:
            logger.error("hot files kept above the cap, the lake lags", extra={"bytes": above})
        self.trouble = (
            f"the hot tier has {above} bytes more on disk than hot.disk_bytes_max "
            f"({self._config.disk_bytes_max}): the lake does not hold these rows yet; look why it "
            "is not filled, or raise the limit"
        )

    def evict(self, partition: HotPartition, offset: int, reason: str) -> int:
        """Remove the files that hold nothing at or above `offset`. Returns how many."""
        with self._turn:
            return self._evict(partition, offset, reason)

    def _evict(self, partition: HotPartition, offset: int, reason: str) -> int:
        gone = partition.shelf.evict(offset, reason)
        self._publish()
        partition.shelf.remove(gone)
        return len(gone)

    def _publish(self) -> None:
        with self._shown.swap:
            self._shown.publish()

    def relax(self) -> None:
        """Give memory back that reading the files has taken; reading takes it again."""
        for partition in self._shown.partitions:
            for sealed in partition.shelf.sealed:
                sealed.segment.mapped.release()

"""HotTier: recently acknowledged records as rows.

    step    read and decode new records, publish their rows, freeze large or old segments
    seal    write frozen segments to files, save log progress, evict above the disk limit

Rows are published after they are durable in the log; log progress is saved after a file has them.
Missing files are rebuilt from the log.
"""

from __future__ import annotations

import logging
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from frazil.disk import Disk, DiskReserve, is_full
from frazil.errors import Corrupt, Overloaded, Unknown
from frazil.hot.partition import HotPartition, TopicTable
from frazil.hot.recovery import open_segments
from frazil.hot.sealer import LakeWatermark, RemovedBelow, Sealer
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.sealed import SegmentFolder
from frazil.hot.segment.segments import SealedSegments
from frazil.hot.visible import VisiblePieces, VisibleSegments
from frazil.log import ReadableLog, ReadablePartition, ReadableTopic
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Signal
from frazil.model.arrow import Decode
from frazil.settings import HotConfig

logger = logging.getLogger(__name__)

FOLDER = "hot"
SOURCES = tuple(
    TopicTable(topic=signal.topic, table=signal.table, signal=signal) for signal in Signal
)
PRESSURE = 0.5
"""Above this share of hot.memory_bytes_max the largest open segment is sealed early."""
REPLAYED = 0.125
"""Above this share of hot.seal_bytes the rows that a start has read again are sealed at once."""

UNSEALED = Gauge("frazil.hot.unsealed.bytes", "Bytes of rows that are in no file yet.")
STALLED = Counter("frazil.hot.read.failures", "Times the log could not be read.")


class HotTier:
    """`step` and `freeze` belong to the reading thread; any thread may call the rest."""

    def __init__(
        self,
        disk: Disk,
        log: ReadableLog,
        config: HotConfig | None = None,
        *,
        decode: Decode,
        schemas: Mapping[str, pa.Schema],
        clock: Clock,
        lake_watermark: LakeWatermark | None = None,
        removed_below: RemovedBelow | None = None,
        reserve_bytes: int = 0,
    ) -> None:
        """Check and map the segment files. The first steps read the rest from the log.

        With a lake, `lake_watermark` tells what queries get from there; nothing else is evicted.
        `removed_below` tells below which offsets the lake has removed rows: the hot tier drops what
        it has there. Files are also evicted to keep `reserve_bytes` of the disk free.

        Call it before the log's first maintenance: the log must know which offsets are read again.
        """
        self.config = config or HotConfig()
        self._disk = disk
        self._log = log
        self._decode = decode
        self._schemas = schemas
        self._clock = clock
        self._helper = ThreadPoolExecutor(1, "frazil-hot-decode")
        """Decodes beside the reading thread while a backlog shrinks."""
        self._visible = VisibleSegments(schemas)
        reserve = DiskReserve(disk, reserve_bytes)
        self._sealer = Sealer(
            self._visible, self.config, clock, lake_watermark, reserve, removed_below
        )
        self._followed = Counts[str]()
        """Topic -> how many of its partitions."""
        self._stalled_ns: dict[HotPartition, int] = {}
        self.trouble: str | None = None
        """Why the log last could not be read."""
        self.died: BaseException | None = None
        """What ended a thread of the tier. Nothing new becomes visible after that."""
        self.memory_bytes = 0
        """Bytes of rows that are in no file, as of the last step."""
        self._follow_new()
        with self._visible.swap:
            self._visible.publish()
        self._ends_at_open = {p: p.log.view.last_stable_offset for p in self._visible.partitions}
        """Where the log ended when the tier was opened; emptied once all of that is visible."""
        self._is_replaying = not self.has_caught_up

    def pieces(self, table: str) -> tuple[Piece, ...]:
        """Return the rows of a table that are visible now."""
        return self._visible.pieces[table]

    def visible_pieces(self) -> VisiblePieces:
        """Return the rows of all tables that are visible now."""
        return self._visible.pieces

    def watermark(self, topic: str, partition: int = 0) -> int:
        """Return the first offset whose rows are not visible yet."""
        return self._find(topic, partition).watermark

    def watermarks(self, topic: str) -> dict[int, int]:
        """Return the watermark of each partition of a topic; empty if it is not followed yet."""
        partitions = (p for p in self._visible.partitions if p.source.topic == topic)
        return {partition.log.index: partition.watermark for partition in partitions}

    def step(self) -> int:
        """Make new records visible. Returns the number of requests.

        Bounded in time and memory: while rows wait for the disk, new records wait in the log.
        """
        self._follow_new()
        now_ns = self._clock.monotonic_ns()
        count = sum(self._read(partition, now_ns) for partition in self._visible.partitions)
        with self._visible.swap:
            frozen = sum(p.freeze(self._is_due_in(p)) for p in self._visible.partitions)
            frozen += self._relieve() + self._freeze_replayed()
            if count or frozen:
                self._publish()
        self.memory_bytes = self._visible.unsealed_bytes
        UNSEALED.set(self.memory_bytes)
        return count

    def _read(self, partition: HotPartition, now_ns: int) -> int:
        """Read a partition. After an error it is retried later; other partitions continue."""
        if self.is_full or self._stalled_ns.get(partition, now_ns) > now_ns:
            return 0
        try:
            return partition.read(self.config.read_bytes, now_ns)
        except (Corrupt, OSError) as error:
            self.trouble = str(error)
            STALLED.add(topic=partition.source.topic)
            logger.error("hot tier cannot read the log", extra={"reason": str(error)})
            self._stalled_ns[partition] = now_ns + self.config.retry_ms * NS_PER_MS
            partition.is_behind = False
            return partition.reveal()

    def _is_due_in(self, partition: HotPartition) -> Callable[[OpenSegment], bool]:
        """Return whether an open segment is due: also if rows of it were removed from the lake."""
        dropped = self._sealer.dropped_below(partition)
        return lambda segment: segment.begin_offset < dropped or self._is_due(segment)

    def _is_due(self, segment: OpenSegment) -> bool:
        age_ns = self._clock.monotonic_ns() - segment.opened_ns
        is_old = age_ns >= self.config.seal_age_ms * NS_PER_MS
        return is_old or segment.size_bytes >= self.config.seal_bytes

    def _relieve(self) -> int:
        """Freeze the largest open segment early if memory is short and the sealer is idle."""
        partitions = self._visible.partitions
        limit = PRESSURE * self.config.memory_bytes_max
        if self._visible.unsealed_bytes < limit or any(p.frozen for p in partitions):
            return 0
        opened = [s.segment for p in partitions for s in p.ranges if s.segment is not None]
        largest = max(opened, key=lambda segment: segment.size_bytes)
        return sum(p.freeze(lambda segment: segment is largest) for p in partitions)

    def _freeze_replayed(self) -> int:
        """Freeze what was read again after a start, once, if it is much: a process that ends again
        and again, before its rows are old enough, would read more each time."""
        if not self._is_replaying or not self.has_caught_up:
            return 0
        self._is_replaying = False
        limit = REPLAYED * self.config.seal_bytes
        partitions = self._visible.partitions
        return sum(p.freeze(lambda segment: segment.size_bytes >= limit) for p in partitions)

    def freeze(self) -> None:
        """Freeze all open segments, whatever their size, for the next `seal`."""
        with self._visible.swap:
            for partition in self._visible.partitions:
                partition.freeze(lambda _: True)
            self._publish()

    def _publish(self) -> None:
        """The watermark advances after the rows are visible."""
        for partition in self._visible.partitions:
            partition.update_open_pieces()
        self._visible.publish()
        for partition in self._visible.partitions:
            partition.advance_watermark()

    def seal(self) -> int:
        """Write frozen segments, save log progress, merge and evict. Returns the files written.

        Failures are logged, counted and retried later; the rows stay visible.
        """
        return self._sealer.seal()

    def start_offset(self, topic: str, partition: int = 0) -> int:
        """Return the first offset that is not evicted."""
        return self._find(topic, partition).first_offset

    def evict_below(self, topic: str, offset: int, partition: int = 0) -> int:
        """Remove files that end at or below `offset`. Returns how many.

        Queries that hold their pieces can still read them.
        """
        return self._sealer.evict(self._find(topic, partition), offset, "lake")

    @property
    def disk_trouble(self) -> str | None:
        """Why `hot.disk_bytes_max` is exceeded, or None."""
        return self._sealer.trouble

    @property
    def disk_shortage(self) -> str | None:
        """What was given up because the disk is short of space, or None."""
        return self._sealer.shortage

    def release_memory(self) -> None:
        """Give back memory of mapped files; later reads take it again."""
        self._sealer.release_memory()

    def wait(self, timeout_s: float) -> bool:
        """Wait for new records. Returns False on timeout."""
        return self._log.wait_for_any(
            [(p.log, p.watermark) for p in self._visible.partitions], timeout_s
        )

    @property
    def disk_bytes(self) -> int:
        """Size of all segment files."""
        return self._visible.sealed_bytes

    @property
    def lag(self) -> int:
        """Offsets that are durable and not visible yet."""
        return sum(p.log.view.last_stable_offset - p.watermark for p in self._visible.partitions)

    @property
    def is_complete(self) -> bool:
        """Whether every row of the log is visible, including those of files being rebuilt."""
        return all(p.is_complete for p in self._visible.partitions)

    @property
    def has_caught_up(self) -> bool:
        """Whether every row that the log had at open is visible. Never becomes False again."""
        if all(p.is_visible(end) for p, end in self._ends_at_open.items()):
            self._ends_at_open = {}
        return not self._ends_at_open

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read, and memory for it."""
        return not self.is_full and any(p.is_behind for p in self._visible.partitions)

    @property
    def is_full(self) -> bool:
        """Whether `hot.memory_bytes_max` is reached."""
        return self._visible.unsealed_bytes >= self.config.memory_bytes_max

    @property
    def has_frozen(self) -> bool:
        """Whether there is something to seal."""
        return any(partition.frozen for partition in self._visible.partitions)

    def close(self) -> None:
        """Close the log readers. Open rows are read again from the log at the next start."""
        self._helper.shutdown()
        for partition in self._visible.partitions:
            partition.close()

    def _find(self, topic: str, index: int) -> HotPartition:
        for partition in self._visible.partitions:
            if (partition.source.topic, partition.log.index) == (topic, index):
                return partition
        raise Unknown(f"the hot tier does not follow {topic}/{index}")

    def _follow_new(self) -> None:
        """Follow topics and partitions that exist now. If the disk is full, this is retried in the
        next step."""
        for source in SOURCES:
            try:
                topic = self._log.topic(source.topic)
                if len(topic.partitions) > self._followed[source.topic]:
                    self._follow(source, topic)
            except Unknown:
                continue
            except (OSError, Overloaded) as error:
                if isinstance(error, OSError) and not is_full(error):
                    raise
                logger.warning("disk full: topic not followed", extra={"topic": source.topic})

    def _follow(self, source: TopicTable, topic: ReadableTopic) -> None:
        """Foreign files are set aside before we subscribe, so a later start cannot mistake them for
        ours."""
        name = f"{FOLDER}_{source.table}"
        is_known = self._log.has_subscriber(name)
        added = topic.partitions[self._followed[source.topic] :]
        opened = [self._open(source, p, is_foreign=not is_known) for p in added]
        subscriber = self._log.keep_progress(name, topic.name)
        self._visible.partitions += tuple(
            HotPartition(source, partition, subscriber, segments, self._decode, self._helper)
            for partition, segments in zip(added, opened, strict=True)
        )
        self._followed[source.topic] = len(topic.partitions)

    def _open(
        self, source: TopicTable, partition: ReadablePartition, *, is_foreign: bool
    ) -> SealedSegments:
        folder = SegmentFolder(
            disk=self._disk,
            name=f"{FOLDER}/{source.table}/{partition.index}",
            topic=source.topic,
            partition=partition.index,
            schemas=self._schemas,
        )
        view = partition.current_view()
        return open_segments(
            folder, view.start_offset, view.last_stable_offset, is_foreign=is_foreign
        )

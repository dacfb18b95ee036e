"""HotTier: what was acknowledged a moment ago, as rows.

    step    read what the log has, decode it, show it; freeze what is large or old enough
    seal    write what is frozen into files, tell the log, remove what is too much

Shown after it is durable in the log; the log is told after a file holds it. All of it can be made
again from the log, and is, when files are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow as pa

from frazil.disk import Disk, is_full
from frazil.errors import Corrupt, Overloaded, Unknown
from frazil.hot.config import HotConfig
from frazil.hot.partition import HotPartition, TopicTable
from frazil.hot.recovery import open_shelf
from frazil.hot.sealer import Held, Sealer
from frazil.hot.segment.open_segment import OpenSegment
from frazil.hot.segment.piece import Piece
from frazil.hot.segment.sealed import SegmentFolder
from frazil.hot.segment.segments import SealedSegments
from frazil.hot.visible import Snapshot, VisibleSegments
from frazil.log import Log, Partition, Topic
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Signal
from frazil.model.arrow import Decode

logger = logging.getLogger(__name__)

FOLDER = "hot"
SOURCES = tuple(
    TopicTable(topic=signal.topic, table=signal.table, signal=signal) for signal in Signal
)
PRESSURE = 0.5
"""Above this share of the memory allowed, the largest open segment is sealed early."""

UNSEALED = Gauge("frazil.hot.unsealed.bytes", "Rows in memory that no file holds yet.")
STALLED = Counter("frazil.hot.read.failures", "Times the log could not be read.")


class HotTier:
    """`step` and `freeze` belong to one thread, the reading one; everything else may be called
    from any."""

    def __init__(
        self,
        disk: Disk,
        log: Log,
        config: HotConfig,
        *,
        decode: Decode,
        schemas: Mapping[str, pa.Schema],
        clock: Clock,
        held: Held | None,
    ) -> None:
        self.config = config
        self._disk = disk
        self._log = log
        self._decode = decode
        self._schemas = schemas
        self._clock = clock
        self._shown = VisibleSegments(schemas)
        self._sealer = Sealer(self._shown, config, clock, held)
        self._followed: set[str] = set()
        self._stalled_ns: dict[HotPartition, int] = {}
        self._old: dict[HotPartition, int] = {}
        """How far the log went when the tier was opened, until all of that is visible."""
        self.trouble: str | None = None
        """Why the log could not be read, the last time it could not."""
        self.died: BaseException | None = None
        """What the thread died of that showed rows; nothing new is shown since."""
        self.memory_bytes = 0
        """Rows that no file holds yet, as of the last step."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        log: Log,
        config: HotConfig | None = None,
        *,
        decode: Decode,
        schemas: Mapping[str, pa.Schema],
        clock: Clock,
        held: Held | None = None,
    ) -> HotTier:
        """Check and map the files there are. What they do not hold comes with the first steps.

        Beside a lake, `held` says what queries get from there: nothing else is ever evicted.

        To be called before the log is first maintained: until then it does not know what is
        needed again.
        """
        tier = cls(
            disk,
            log,
            config or HotConfig(),
            decode=decode,
            schemas=schemas,
            clock=clock,
            held=held,
        )
        tier._follow_new()
        with tier._shown.swap:
            tier._shown.publish()
        tier._old = {p: p.log.view.durable_watermark for p in tier._shown.partitions}
        return tier

    def pieces(self, table: str) -> tuple[Piece, ...]:
        """The rows of a table at this moment."""
        return self._shown.snapshot[table]

    def snapshot(self) -> Snapshot:
        """The rows of all tables at one moment."""
        return self._shown.snapshot

    def watermark(self, topic: str, partition: int = 0) -> int:
        """The first offset of a partition whose rows are not visible yet."""
        return self._find(topic, partition).watermark

    def watermarks(self, topic: str) -> dict[int, int]:
        """The same for each partition of a topic; none while it is not followed yet."""
        found = (p for p in self._shown.partitions if p.source.topic == topic)
        return {partition.log.index: partition.watermark for partition in found}

    def step(self) -> int:
        """Show what is new. Returns how many requests that were.

        Bounded in time and memory: while rows wait for the disk, the log keeps what comes.
        """
        self._follow_new()
        now_ns = self._clock.monotonic_ns()
        taken = sum(self._read(partition, now_ns) for partition in self._shown.partitions)
        with self._shown.swap:
            frozen = sum(p.freeze(self._is_due) for p in self._shown.partitions) + self._relieve()
            if taken or frozen:
                self._show()
        self.memory_bytes = self._shown.unsealed_bytes
        UNSEALED.set(self.memory_bytes)
        return taken

    def _read(self, partition: HotPartition, now_ns: int) -> int:
        """A log that cannot be read is looked at again later; other partitions go on."""
        if self.is_full or self._stalled_ns.get(partition, now_ns) > now_ns:
            return 0
        try:
            return partition.read(self.config.read_bytes, now_ns)
        except (Corrupt, OSError) as error:
            self.trouble = str(error)
            STALLED.add(topic=partition.source.topic)
            logger.error("the hot tier cannot read the log", extra={"reason": str(error)})
            self._stalled_ns[partition] = now_ns + self.config.retry_ms * NS_PER_MS
            partition.is_behind = False
            return 0

    def _is_due(self, segment: OpenSegment) -> bool:
        age_ns = self._clock.monotonic_ns() - segment.opened_ns
        is_old = age_ns >= self.config.seal_age_ms * NS_PER_MS
        return is_old or segment.size_bytes >= self.config.seal_bytes

    def _relieve(self) -> int:
        """Freeze the largest open segment early when memory runs short and the sealer is idle."""
        partitions = self._shown.partitions
        limit = PRESSURE * self.config.memory_bytes_max
        if self._shown.unsealed_bytes < limit or any(p.frozen for p in partitions):
            return 0
        opened = [s.segment for p in partitions for s in p.stretches if s.segment is not None]
        largest = max(opened, key=lambda segment: segment.size_bytes)
        return sum(p.freeze(lambda segment: segment is largest) for p in partitions)

    def freeze(self) -> None:
        """Have everything that is open sealed next, whatever its size."""
        with self._shown.swap:
            for partition in self._shown.partitions:
                partition.freeze(lambda _: True)
            self._show()

    def _show(self) -> None:
        for partition in self._shown.partitions:
            partition.look()
        self._shown.publish()
        for partition in self._shown.partitions:
            partition.tell()

    def seal(self) -> int:
        """Make what is frozen durable, tell the log, tidy up. Returns how many files were made.

        What fails is logged, counted and tried again after a while; the rows stay visible.
        """
        return self._sealer.seal()

    def evict_below(self, topic: str, offset: int, partition: int = 0) -> int:
        """The lake has every row below: remove the files that hold nothing else. How many went.

        Whoever holds their pieces reads on.
        """
        return self._sealer.evict(self._find(topic, partition), offset, "lake")

    @property
    def disk_trouble(self) -> str | None:
        """Why there is more on disk than `hot.disk_bytes_max`; None when there is not."""
        return self._sealer.trouble

    def relax(self) -> None:
        """Give memory back that reading the files has taken; reading takes it again."""
        self._sealer.relax()

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is something new. False on time-out."""
        places = [(p.log, p.watermark) for p in self._shown.partitions]
        return self._log.wait_for_any(places, timeout_s)

    def reach(self, topic: str, partition: int) -> int | None:
        """As `watermark`; None for one that is not followed, or not yet."""
        for each in self._shown.partitions:
            if (each.source.topic, each.log.index) == (topic, partition):
                return each.watermark
        return None

    @property
    def disk_bytes(self) -> int:
        """What its files take."""
        return self._shown.sealed_bytes

    @property
    def lag(self) -> int:
        """Offsets that are durable and not visible yet."""
        return sum(p.log.view.durable_watermark - p.watermark for p in self._shown.partitions)

    @property
    def is_whole(self) -> bool:
        """Is every row visible that the log has, also those of files that are made anew?"""
        return all(p.is_whole for p in self._shown.partitions)

    @property
    def has_caught_up(self) -> bool:
        """Is every row visible that the log had when this was opened? Once it is, it stays so."""
        if self._old and all(p.has_shown(end) for p, end in self._old.items()):
            self._old = {}
        return not self._old

    @property
    def is_behind(self) -> bool:
        """Is there more than one step could take, and room for it?"""
        return not self.is_full and any(p.is_behind for p in self._shown.partitions)

    @property
    def is_full(self) -> bool:
        """Is there as much in memory as may be?"""
        return self._shown.unsealed_bytes >= self.config.memory_bytes_max

    @property
    def has_frozen(self) -> bool:
        """Is there something to seal?"""
        return any(partition.frozen for partition in self._shown.partitions)

    def close(self) -> None:
        """Give the log's files back. What is open comes again from the log."""
        for partition in self._shown.partitions:
            partition.close()

    def _find(self, topic: str, index: int) -> HotPartition:
        for partition in self._shown.partitions:
            if (partition.source.topic, partition.log.index) == (topic, index):
                return partition
        raise Unknown(f"the hot tier follows no partition {index} of a topic {topic}")

    def _follow_new(self) -> None:
        """Follow the topics that there are. Without room for what that takes, later."""
        for source in SOURCES:
            if source.topic in self._followed:
                continue
            try:
                self._follow(source, self._log.topic(source.topic))
            except Unknown:
                continue
            except (OSError, Overloaded) as error:
                if isinstance(error, OSError) and not is_full(error):
                    raise
                logger.warning("disk full: topic not followed", extra={"topic": source.topic})

    def _follow(self, source: TopicTable, topic: Topic) -> None:
        """Foreign files are out of the way before the log knows us, so they are never believed."""
        name = f"{FOLDER}_{source.table}"
        is_known = any(subscriber.name == name for subscriber in self._log.subscribers())
        shelves = [self._shelf(source, p, is_foreign=not is_known) for p in topic.partitions]
        subscriber = self._log.subscribe(name, topic.name, "earliest")
        self._shown.partitions += tuple(
            HotPartition(source, partition, subscriber, shelf, self._decode)
            for partition, shelf in zip(topic.partitions, shelves, strict=True)
        )
        self._followed.add(source.topic)

    def _shelf(
        self, source: TopicTable, partition: Partition, *, is_foreign: bool
    ) -> SealedSegments:
        place = SegmentFolder(
            disk=self._disk,
            folder=f"{FOLDER}/{source.table}/{partition.index}",
            topic=source.topic,
            partition=partition.index,
            schemas=self._schemas,
        )
        view = partition.view
        return open_shelf(place, view.start_offset, view.durable_watermark, is_foreign=is_foreign)

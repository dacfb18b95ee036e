"""Retention: which segments may be removed, and their removal.

A sealed segment is *released* when it is published to the lake (if the topic awaits that) and every
subscriber's saved progress is past it. Released segments are removed by age, then by size, and when
the log or the disk is short of space all of them, except in topics that keep theirs until their
time. Those with records of rows that were removed from the lake go at once, and no file is kept for
reuse then: its blocks would still have the bytes. Others stay, unless `when_full` is `drop_oldest`:
then they are dropped and counted, and subscribers skip them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from frazil.disk import Budget, is_full
from frazil.log.partition import Partition
from frazil.log.subscribers import Subscriber
from frazil.log.topic import Topic
from frazil.log.view import PartitionView
from frazil.metrics import Counter
from frazil.model import SteadyTime, TopicPartition
from frazil.settings import LogConfig, TopicConfig

EXPIRED = Counter("frazil.log.expired.bytes", "Bytes of released segments removed.")
LOST = Counter(
    "frazil.log.lost.offsets", "Offsets removed before every reader had read them, by reason."
)
DROPPED = Counter(
    "frazil.log.dropped.segments", "Segments removed before every reader had read them."
)


def released_offset(
    view: PartitionView, config: TopicConfig, published: int, read: Iterable[int]
) -> int:
    """Return the offset below which no reader needs the log. A topic that is only compacted keeps
    everything: the latest record of a key exists only there."""
    if not config.is_expired:
        return view.start_offset
    limits = [view.last_stable_offset, *read]
    if config.awaits_lake:
        limits.append(published)
    return min(limits)


def expired_offset(
    view: PartitionView,
    config: TopicConfig,
    released: int,
    now_ms: int,
    *,
    is_tight: bool,
    discarded: int = 0,
) -> int:
    """Return the new start offset; the current one if nothing may be removed. Segments that begin
    below `discarded` are removed, whatever their age."""
    start = view.start_offset
    size_bytes = view.size_bytes
    for segment in view.segments[:-1]:
        if segment.info.end_offset > released:
            break
        is_old = now_ms - segment.info.sealed_ms >= config.retention_ms
        size_max = config.retention_bytes_max
        is_large = size_max is not None and size_bytes > size_max
        is_discarded = segment.info.base_offset < discarded
        is_squeezed = is_tight and config.may_expire_early
        if not (is_old or is_large or is_squeezed or is_discarded):
            break
        start = segment.info.end_offset
        size_bytes -= segment.info.size_bytes
    return start


def oldest_sealed(views: Iterable[tuple[int, PartitionView]]) -> int | None:
    """Return the number of the view with the segment sealed longest ago."""
    sealed = [
        (view.segments[0].info.sealed_ms, number)
        for number, view in views
        if len(view.segments) > 1
    ]
    return min(sealed)[1] if sealed else None


class Retention:
    """Applies the decisions. `step` runs on the writer thread."""

    def __init__(
        self,
        config: LogConfig,
        budget: Budget,
        time: SteadyTime,
        *,
        topics: Callable[[], list[Topic]],
        subscribers: Callable[[], list[Subscriber]],
    ) -> None:
        self._config = config
        self._budget = budget
        self._time = time
        self._topics = topics
        self._subscribers = subscribers
        self._published: dict[TopicPartition, int] = {}
        self._discarded: dict[TopicPartition, int] = {}
        self._unscrubbed: set[TopicPartition] = set()
        """Partitions whose spare blocks may have bytes of removed records."""

    def publish(self, topic: str, partition: int, lake_watermark: int) -> None:
        """Record that the lake holds everything below `lake_watermark`."""
        key = TopicPartition(topic, partition)
        self._published[key] = max(self._published.get(key, 0), lake_watermark)

    def discard(self, topic: str, partition: int, end: int) -> None:
        """Remove what is below `end`, as soon as it is released: its rows were removed elsewhere.
        Forgotten at the end of the process; the lake repeats it."""
        key = TopicPartition(topic, partition)
        self._discarded[key] = max(self._discarded.get(key, 0), end)
        self._unscrubbed.add(key)

    def forget(self, topic: str) -> None:
        """Forget a topic that was deleted."""
        for known in (self._published, self._discarded):
            for key in [key for key in known if key.topic == topic]:
                del known[key]
        self._unscrubbed = {key for key in self._unscrubbed if key.topic != topic}

    def published(self, topic: str, partition: int) -> int:
        return self._published.get(TopicPartition(topic, partition), 0)

    def known(self, topic: str, partition: int) -> int | None:
        """Return the lake watermark; None if the lake has not reported one."""
        return self._published.get(TopicPartition(topic, partition))

    def step(self) -> tuple[int, int]:
        """Remove expired segments; drop the oldest if configured. Returns bytes expired, offsets
        dropped."""
        expired = 0
        for topic in self._topics():
            for partition in topic.partitions:
                if partition.is_idle:
                    continue
                discarded = self._discarded.get(TopicPartition(topic.name, partition.index), 0)
                self._roll_when_due(partition, discarded)
                released = self._released(topic, partition)
                start = expired_offset(
                    partition.view,
                    topic.config,
                    released,
                    self._time.now_ms(),
                    is_tight=self._budget.should_release,
                    discarded=discarded,
                )
                expired += partition.trim(start)
                partition.expire_digests()
                if self._budget.should_release:
                    partition.removed.drop_spares()
                self._scrub_when_due(partition, discarded)
        EXPIRED.add(expired)
        dropped = 0
        while self._config.when_full == "drop_oldest" and self._budget.is_tight:
            lost = self._drop_one()
            if lost is None:
                break
            dropped += lost
        return expired, dropped

    def _scrub_when_due(self, partition: Partition, discarded: int) -> None:
        """Once the log begins at or above what was discarded, free the blocks that had it."""
        key = TopicPartition(partition.topic, partition.index)
        if key in self._unscrubbed and partition.view.start_offset >= discarded:
            partition.scrub()
            self._unscrubbed.discard(key)

    def _roll_when_due(self, partition: Partition, discarded: int) -> None:
        """Roll the segment if due. A full disk postpones it and must not stop the removal."""
        try:
            if partition.needs_roll or partition.is_open_below(discarded):
                partition.roll()
        except OSError as error:
            if not is_full(error):
                raise
            self._budget.note_full()

    def _released(self, topic: Topic, partition: Partition) -> int:
        read = [
            subscriber.saved_watermark(partition.index)
            for subscriber in self._subscribers()
            if subscriber.topic == topic.name
        ]
        published = self.published(topic.name, partition.index)
        return released_offset(partition.view, topic.config, published, read)

    def _drop_one(self) -> int | None:
        """Drop the oldest sealed segment of all. Returns the unread offsets lost; None if none
        can be."""
        partitions = [(topic, p) for topic in self._topics() for p in topic.partitions]
        number = oldest_sealed((i, partition.view) for i, (_, partition) in enumerate(partitions))
        if number is None:
            return None
        topic, partition = partitions[number]
        oldest = partition.view.segments[0].info
        read = max(self._released(topic, partition), partition.view.start_offset)
        unread = max(0, oldest.end_offset - read)
        if not partition.trim(oldest.end_offset, dropped_count=unread):
            return None  # no space to save what must outlive it
        LOST.add(unread, reason="drop_oldest", topic=topic.name)
        DROPPED.add(unread > 0, topic=topic.name)
        return unread

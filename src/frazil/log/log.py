"""Log: opens and closes everything in a data folder.

Owns the folder (one process at a time), the writer thread, the topics with their partitions, and
the subscribers. `append`, `reader` and lookups may be used from any thread.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeVar
from uuid import UUID

from frazil.disk import Budget, Disk, DiskReserve, Lock, make_directories
from frazil.errors import Conflict, Malformed, Unknown
from frazil.log.append import Append, AppendResult, check_append
from frazil.log.compaction import compact, is_due
from frazil.log.copied_sources import CopiedSources
from frazil.log.dedup.source_positions import SourcePosition
from frazil.log.partition import Partition
from frazil.log.progress import Progress
from frazil.log.readable import ReadablePartition
from frazil.log.reader import Reader, Start, start_offset
from frazil.log.retention import Retention
from frazil.log.subscribers import (
    DEAD_LETTERS_CONFIG,
    SavedProgress,
    Subscriber,
    SubscriberConfig,
    load_progress,
    remove_progress,
    save_progress,
    subscriber_names,
)
from frazil.log.topic import (
    SUBSCRIBERS_FOLDER,
    Topic,
    buried_topics,
    check_name,
    check_partition,
    partition_folder,
    remove_buried,
)
from frazil.log.topics import DEAD_LETTERS, Floors, TopicList, full_means_overloaded
from frazil.log.writer import Writer, exit_process
from frazil.model import Clock, Rand, SteadyTime, TopicPartition
from frazil.settings import LogConfig, TopicConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOCK_NAME = "frazil.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMaintenance:
    """Result of one round of maintenance."""

    expired_bytes: int = 0
    dropped_count: int = 0
    compacted_count: int = 0


class Log:
    """An open log. Close it, or use it in `with`."""

    def __init__(
        self,
        disk: Disk,
        config: LogConfig,
        *,
        clock: Clock,
        rand: Rand,
        lock: Lock,
        fatal: Callable[[BaseException], None],
        reserve_bytes: int = 0,
    ) -> None:
        self.config = config
        self.budget = Budget(
            hard_bytes_max=config.disk_bytes_max,
            segment_bytes_max=config.segment_bytes_max,
            reserve=DiskReserve(disk, reserve_bytes),
        )
        self._disk = disk
        self._lock = lock
        self._clock = clock
        self._rand = rand
        self._time = SteadyTime(clock)
        self._retention = Retention(
            config, self.budget, self._time, topics=self.topics, subscribers=self.subscribers
        )
        self.writer = Writer(config, clock, self.budget, fatal=fatal, reclaim=self._retention.step)
        self._is_closed = False
        self._floors: Floors = {}
        self._topics = TopicList(disk, rand, self._open_partition)
        self.sources = CopiedSources(self._topics, self._on_writer)
        self._subscribers: dict[str, Subscriber] = {}

    @classmethod
    def open(
        cls,
        disk: Disk,
        config: LogConfig | None = None,
        *,
        clock: Clock,
        rand: Rand,
        holder: str = "a Frazil log",
        floors: Floors | None = None,
        fatal: Callable[[BaseException], None] = exit_process,
        threaded: bool = True,
        reserve_bytes: int = 0,
    ) -> Log:
        """Lock the folder, recover every partition, start the writer.

        Raises `Held` if another process has the folder and `Corrupt` if acknowledged data is
        missing. `fatal` is called when storage fails and must not return to service. With
        `threaded=False` the caller runs `step`, as the simulation does. Appends are refused while
        less than `reserve_bytes` of the disk are free.
        """
        lock = disk.lock(LOCK_NAME, holder)
        log = cls(
            disk,
            config or LogConfig(),
            clock=clock,
            rand=rand,
            lock=lock,
            fatal=fatal,
            reserve_bytes=reserve_bytes,
        )
        with ExitStack() as undo:
            undo.callback(lock.close)
            undo.callback(log._topics.release)
            log._open_all({key: floor for key, floor in (floors or {}).items() if floor > 0})
            undo.pop_all()
        if threaded:
            log.writer.start()
        return log

    def _open_all(self, floors: dict[TopicPartition, int]) -> None:
        """Open subscribers, then partitions: offsets a subscriber has finished must be in the
        log."""
        make_directories(self._disk, SUBSCRIBERS_FOLDER)
        self._disk.sync_directory(SUBSCRIBERS_FOLDER)
        buried = buried_topics(self._disk)
        saved = {name: load_progress(self._disk, name) for name in subscriber_names(self._disk)}
        for name, progress in list(saved.items()):
            if progress.topic_id in buried:
                remove_progress(self._disk, name)
                del saved[name]
        for folder in buried.values():
            remove_buried(self._disk, folder)
        for progress in saved.values():
            for index, partition in enumerate(progress.partitions):
                key = TopicPartition(progress.topic, index)
                floors[key] = max(floors.get(key, 0), partition.end_offset)
        self._floors = floors
        self._topics.open()
        self._floors = {}
        self._topics.check_all_there(floors)
        for name, progress in saved.items():
            self._resume(name, progress)

    def _resume(self, name: str, saved: SavedProgress) -> None:
        """Attach a subscriber with its progress. Partitions added since are new to it."""
        topic = self.topic(saved.topic)
        missing = len(topic.partitions) - len(saved.partitions)
        progress = saved.partitions + [Progress(watermark=0) for _ in range(missing)]
        if saved.topic_id is None:
            save_progress(self._disk, name, topic.name, topic.topic_id, progress)
        self._attach(name, topic, progress, SubscriberConfig())

    def _open_partition(self, topic: str, index: int) -> Partition:
        return Partition.open(
            self._disk,
            partition_folder(topic, index),
            topic,
            index,
            self.config,
            time=self._time,
            rand=self._rand,
            budget=self.budget,
            floor=self._floors.get(TopicPartition(topic, index), 0),
        )

    def create_topic(self, name: str, config: TopicConfig | None = None) -> Topic:
        """Create a topic, or return the existing one with the same settings.

        Raises `Conflict` if its settings differ, `Overloaded` if the disk is full (nothing was
        created).
        """
        check_name(name, "topic")
        config = config or TopicConfig()
        topic = self._topics.find(name)
        if topic is None:
            with full_means_overloaded(f"topic {name} was not created"):
                topic = self._on_writer(partial(self._topics.create, name, config))
        if topic.config != config:
            raise Conflict(f"topic {name} exists with other settings: {topic.config}")
        return topic

    def alter_topic(self, name: str, changes: Mapping[str, object]) -> Topic:
        """Change settings of a topic, by their names in `TopicConfig`; they apply at once.

        Raises `Unknown` if there is no such topic, `Malformed` if a setting is unknown or invalid,
        `Overloaded` if the disk is full. Then nothing has changed.
        """
        with full_means_overloaded(f"topic {name} was not changed"):
            return self._on_writer(partial(self._topics.alter, name, changes))

    def add_partitions(self, name: str, count: int) -> Topic:
        """Grow a topic to `count` partitions. Subscribers read the new ones from their start.

        Raises `Unknown`, `Malformed` or `Overloaded` like `alter_topic`.
        """
        with full_means_overloaded(f"topic {name} was not changed"):
            grow = partial(self._topics.add_partitions, name, count, self._follow)
            return self._on_writer(grow)

    def _follow(self, topic: str, partitions: Sequence[Partition]) -> None:
        for subscriber in self.subscribers():
            if subscriber.topic == topic:
                subscriber.follow(partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its subscribers. Durable on return; its readers get `Unknown`.

        A topic created later under this name has another id and begins at offset 0. What the lake
        has of the topic stays there. Raises `Unknown` if there is no such topic, `Malformed` if it
        is one of Frazil's own, `Overloaded` if the disk is full.
        """
        with full_means_overloaded(f"topic {name} was not deleted"):
            folder, size_bytes = self._on_writer(partial(self._remove_topic, name))
        # Not on the writer thread: removing large files takes time.
        try:
            remove_buried(self._disk, folder)
        except OSError as error:
            reason = str(error)
            logger.error(
                "files of a deleted topic stay until the next start", extra={"reason": reason}
            )
            return
        self._on_writer(partial(self.budget.take, -size_bytes))

    def _remove_topic(self, name: str) -> tuple[str, int]:
        """Make a topic invisible. Returns its folder, and the bytes of its files."""
        topic, folder = self._topics.remove(name)
        try:
            size_bytes = sum(partition.release_deleted() for partition in topic.partitions)
            self._retention.forget(name)
            for subscriber in self.subscribers():
                if subscriber.topic == name:
                    del self._subscribers[subscriber.name]
                    subscriber.end()
        except OSError as error:  # too late to refuse it
            raise OSError(errno.EIO, f"topic {name} is deleted, its subscribers are not") from error
        return folder, size_bytes

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records below offset `before`, durably. Returns the new start of the log.

        The start never goes back. Raises `OutOfRange` if `before` is above the last stable offset,
        `Overloaded` if the disk is full.
        """
        target = self.partition(topic, partition)

        def delete() -> int:
            target.check_exists()
            return target.delete_records(before)

        with full_means_overloaded(f"no record of {topic}/{partition} was deleted"):
            return self._on_writer(delete)

    def topics(self) -> list[Topic]:
        return self._topics.all()

    def has_topic(self, name: str) -> bool:
        return self._topics.find(name) is not None

    def topic(self, name: str) -> Topic:
        return self._topics.named(name)

    def topic_by_id(self, topic_id: UUID) -> Topic:
        """Return a topic. Raises `Unknown` if there is none with this id, or not any more."""
        return self._topics.by_id(topic_id)

    def partition(self, topic: str, index: int) -> Partition:
        return self._topics.partition(topic, index)

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]:
        """Queue a batch. The future resolves when it is durable; a refused batch is not stored.
        Raises `Unknown` if `topic_id` is not, or no longer, that topic's id."""
        return self.writer.submit(self._target(topic, append, partition, topic_id), append)

    def append_step(self, topic: str, append: Append) -> Future[AppendResult]:
        """Queue a step of a copy. Raises `Overloaded` while the log is near its limits."""
        self.budget.admit_copy()
        return self.append(topic, append)

    def append_if_idle(self, topic: str, append: Append, index: int) -> Future[AppendResult] | None:
        """Append a batch on this thread if none is queued. Call `writer.wake_readers` then."""
        return self.writer.commit_if_idle(self._target(topic, append, index), append)

    def append_durably(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> AppendResult:
        """Append a batch and wait until it is durable. Fastest for a single producer."""
        return self.writer.commit(self._target(topic, append, partition, topic_id), append)

    def _target(
        self, topic: str, append: Append, partition: int, topic_id: UUID | None = None
    ) -> Partition:
        """Return the partition for a batch. Raises if the batch cannot be appended there. A topic
        that is deleted afterwards refuses it."""
        found = self.topic(topic)
        if topic_id not in (None, found.topic_id):
            raise Unknown(f"topic {topic} was deleted, and created again")
        check_partition(topic, len(found.partitions), partition)
        check_append(append, topic, found.config, self.config.batch_bytes_max)
        return found.partitions[partition]

    def source_position(
        self, topic: str, source: str, *, partition: int = 0
    ) -> SourcePosition | None:
        """Return how far a source was copied into a partition; None if it never was."""
        positions = self.partition(topic, partition).sources.positions
        return self._on_writer(partial(positions.get, source))

    def reader(self, topic: str, start: Start, *, partition: int = 0) -> Reader:
        """Return a cursor over one partition, from `start` on."""
        return Reader.open(self.partition(topic, partition), start)

    def publish(
        self, topic: str, partition: int, lake_watermark: int, topic_id: UUID | None = None
    ) -> None:
        """Record that the lake holds everything below `lake_watermark`. It never decreases.
        Raises `Unknown` if `topic_id` is not, or no longer, that topic's id."""
        target = self.partition(topic, partition)
        if topic_id is not None and self.topic_by_id(topic_id).name != topic:
            raise Unknown(f"the id of topic {topic} is not {topic_id}")
        if lake_watermark > target.durable_watermark:
            raise Malformed(
                f"{topic}/{partition} is durable up to {target.durable_watermark}; the lake cannot "
                f"hold it up to {lake_watermark}"
            )
        self._retention.publish(topic, partition, lake_watermark)

    def discard(self, topic: str, partition: int, end: int) -> None:
        """Remove what is below `end`, once the lake and all subscribers have it: rows of it were
        removed from the lake."""
        self.partition(topic, partition)
        self._on_writer(partial(self._retention.discard, topic, partition, end))

    def lake_watermark(self, topic: str, partition: int = 0) -> int | None:
        """Return the first offset that the lake does not hold; None if unknown."""
        return self._retention.known(topic, partition)

    def subscribe(
        self, name: str, topic: str, start: Start, config: SubscriberConfig | None = None
    ) -> Subscriber:
        """Register a subscriber, or resume an existing one; then `start` is ignored."""
        check_name(name, "subscriber")
        config = config or SubscriberConfig()
        known = self._subscribers.get(name)
        if known is not None:
            if known.topic != topic:
                raise Conflict(f"subscriber {name} reads {known.topic}, not {topic}")
            known.config = config
            return known
        if self._topics.find(DEAD_LETTERS) is None:
            self.create_topic(DEAD_LETTERS, DEAD_LETTERS_CONFIG)
        with full_means_overloaded(f"subscriber {name} was not created"):
            return self._on_writer(partial(self._subscribe, name, topic, start, config))

    def _subscribe(
        self, name: str, topic_name: str, start: Start, config: SubscriberConfig
    ) -> Subscriber:
        """Register a subscriber. Runs on the writer thread: the topic does not change meanwhile."""
        if name in self._subscribers:
            return self._subscribers[name]
        topic = self.topic(topic_name)
        progress = [
            Progress(watermark=start_offset(partition, start)) for partition in topic.partitions
        ]
        save_progress(self._disk, name, topic.name, topic.topic_id, progress)
        return self._attach(name, topic, progress, config)

    def _attach(
        self, name: str, topic: Topic, progress: list[Progress], config: SubscriberConfig
    ) -> Subscriber:
        subscriber = Subscriber(
            name,
            topic,
            progress,
            config,
            disk=self._disk,
            clock=self._clock,
            rand=self._rand,
            append_dead_letter=self._append_dead_letter,
        )
        self._subscribers[name] = subscriber
        return subscriber

    def _append_dead_letter(self, letter: Append) -> Future[AppendResult]:
        return self.writer.submit(self.partition(DEAD_LETTERS, 0), letter, frees_space=True)

    def keep_progress(self, name: str, topic: str) -> Subscriber:
        """Register a subscriber from the earliest offset on, or resume an existing one."""
        return self.subscribe(name, topic, "earliest")

    def has_subscriber(self, name: str) -> bool:
        return name in self._subscribers

    def subscriber(self, name: str) -> Subscriber:
        subscriber = self._subscribers.get(name)
        if subscriber is None:
            raise Unknown(f"there is no subscriber {name}")
        return subscriber

    def subscribers(self) -> list[Subscriber]:
        return sorted(self._subscribers.values(), key=attrgetter("name"))

    def unsubscribe(self, name: str) -> None:
        """Remove a subscriber and its progress. It no longer holds back retention."""
        if self._subscribers.pop(name, None) is None:
            raise Unknown(f"there is no subscriber {name}")
        remove_progress(self._disk, name)

    def wait_for(self, topic: str, partition: int, offset: int, timeout_s: float) -> bool:
        """Wait until an offset at or above `offset` is readable. Returns False on timeout."""
        return self.writer.wait_for([(self.partition(topic, partition), offset)], timeout_s)

    def wait_for_any(
        self, offsets: Sequence[tuple[ReadablePartition, int]], timeout_s: float
    ) -> bool:
        """Wait until one of several partitions has its offset. Returns False on timeout."""
        return self.writer.wait_for(offsets, timeout_s)

    def maintain(self) -> LogMaintenance:
        """Roll old segments, expire, free space, compact. Call it about once a second."""
        self.budget.check_space()
        expired, dropped = self._on_writer(self._retention.step)
        removed = 0
        for topic in self.topics():
            if topic.config.is_compacted:
                for partition in topic.partitions:
                    limit = self._compaction_limit(topic, partition)
                    now_ms = self._time.now_ms()
                    if is_due(partition.view, topic.config, now_ms, limit):
                        done = compact(partition, topic.config, now_ms, limit, self._on_writer)
                        removed += done.removed_count
        return LogMaintenance(expired_bytes=expired, dropped_count=dropped, compacted_count=removed)

    def _compaction_limit(self, topic: Topic, partition: Partition) -> int:
        """Return the offset up to which compaction may go: the rest is undecided, or the lake needs
        it."""
        if topic.config.awaits_lake:
            published = self._retention.published(topic.name, partition.index)
            return min(published, partition.view.last_stable_offset)
        return partition.view.last_stable_offset

    def _on_writer(self, work: Callable[[], T]) -> T:
        result = self.writer.run(work)
        if not self.writer.is_threaded:
            while not result.done():
                self.writer.step()
        return result.result()

    def close(self) -> None:
        """Finish queued batches, save progress and state, release the folder. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self.writer.close()
        with ExitStack() as always:
            always.callback(self._lock.close)
            always.callback(self._topics.release)
            if not self.writer.has_failed:
                for subscriber in self.subscribers():
                    subscriber.step()
                for partition in self._topics.partitions():
                    partition.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

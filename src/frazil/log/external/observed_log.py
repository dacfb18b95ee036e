"""ObservedLog: the reading half of a log, in a process that does not own it.

Records are read from the log's files, without its lock. What only the owner may change goes to it
as a call: the progress of subscribers, what the lake holds, topics. Appends have a channel of their
own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID

from frazil.disk import Disk
from frazil.errors import Conflict, Corrupt, Unavailable, Unknown
from frazil.log.append import Append, AppendResult
from frazil.log.copied_sources import CopiedSource
from frazil.log.dedup.source_positions import SourcePosition
from frazil.log.external.append_channel import AppendChannel
from frazil.log.external.commit_signal import CommitWaiter
from frazil.log.external.observer import PartitionObserver
from frazil.log.external.owner import (
    CreateTopic,
    DeleteTopic,
    Discard,
    FindSubscriber,
    Finish,
    ForgetSource,
    ForgetSources,
    KeepProgress,
    LogOwner,
    PublishLake,
    Reopen,
    SaveProgress,
    Unsubscribe,
)
from frazil.log.readable import ReadablePartition
from frazil.log.reader import Reader, Start
from frazil.log.topic import StoredTopic, check_partition, read_topic, topic_names
from frazil.log.topic_changes import TopicChangesReader
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.view import PartitionView
from frazil.model import TopicPartition
from frazil.settings import TopicConfig


class ObservedPartition:
    """A partition of another process's log. Any thread may use it."""

    def __init__(self, disk: Disk, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.disk = disk
        self.swap: AbstractContextManager[object] = threading.Lock()
        self._observing = threading.Lock()
        self._observer = PartitionObserver(disk, topic, index)
        self._is_closed = False
        self._last = PartitionView(0, 0, (), 0, AbortedTransactions())

    @property
    def view(self) -> PartitionView:
        """What is durable; the last known view if the files cannot be read now."""
        try:
            return self.current_view()
        except (Corrupt, Conflict, Unknown, OSError):
            return self._last

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        with self._observing:
            if self._is_closed:
                raise Unknown(f"topic {self.topic} was deleted")
            if is_indexed:
                return self._observer.observe(is_stale=True)
            self._last = self._observer.follow(is_stale=is_stale)
            return self._last

    def close(self) -> None:
        with self._observing:
            self._is_closed = True
            self._observer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTopic:
    """A topic of another process's log."""

    name: str
    topic_id: UUID | None
    config: TopicConfig
    partitions: tuple[ObservedPartition, ...]


class ObservedSubscriber:
    """Progress that the log's owner keeps. Owned by one thread."""

    def __init__(self, owner: LogOwner, name: str) -> None:
        self._owner = owner
        self._name = name

    def finish(self, partition: int, begin: int, end: int) -> None:
        self._owner.call(Finish(self._name, partition, begin, end))

    def reopen(self, partition: int, begin: int, end: int) -> None:
        self._owner.call(Reopen(self._name, partition, begin, end))

    def step(self) -> int:
        return self._owner.call(SaveProgress(self._name))


class ObservedSources:
    """Sources that were copied into the log of another process. Any thread may call."""

    def __init__(self, owner: LogOwner) -> None:
        self._owner = owner

    def find(self, prefix: str) -> list[CopiedSource]:
        """Return all sources whose name begins so, of all topics."""
        return self._owner.sources(prefix)

    def forget(self, prefix: str) -> int:
        """Forget all sources whose name begins so, durably. Returns how many there were."""
        return self._owner.call(ForgetSources(prefix))

    def forget_one(self, topic: str, source: str, *, partition: int = 0) -> bool:
        """Forget a source that has ended, durably. Returns whether it was known."""
        return bool(self._owner.call(ForgetSource(topic, source, partition)))


class ObservedLog:
    """Any thread may use it."""

    def __init__(
        self,
        disk: Disk,
        owner: LogOwner,
        commits: CommitWaiter,
        appends: AppendChannel | None = None,
    ) -> None:
        """Without `appends`, the log can only be read."""
        self._disk = disk
        self._owner = owner
        self._commits = commits
        self._appends = appends
        self._lock = threading.Lock()
        self._topics: dict[str, ObservedTopic] = {}
        self._published: dict[TopicPartition, int] = {}
        self._changes = TopicChangesReader(disk)
        self.sources = ObservedSources(owner)

    def topics(self) -> list[ObservedTopic]:
        with self._lock:
            self._look_again()
            return [self._topics[name] for name in sorted(self._topics)]

    def topic(self, name: str) -> ObservedTopic:
        with self._lock:
            self._look_again()
            if name not in self._topics:
                raise Unknown(f"there is no topic {name}; create it first")
            return self._topics[name]

    def _look_again(self) -> None:
        """Follow what the owner has changed. Partitions of a topic stay the same objects."""
        if not self._changes.has_changed():
            return
        stored = {name: read_topic(self._disk, name) for name in topic_names(self._disk)}
        for name, topic in list(self._topics.items()):
            now = stored.get(name)
            if now is None or now.topic_id != topic.topic_id:
                self._drop(topic)
        for name, now in stored.items():
            if now is not None:  # else deleted meanwhile
                self._topics[name] = self._opened(name, now)

    def _opened(self, name: str, stored: StoredTopic) -> ObservedTopic:
        known = self._topics[name].partitions if name in self._topics else ()
        added = range(len(known), stored.config.partitions)
        partitions = (*known, *(ObservedPartition(self._disk, name, index) for index in added))
        return ObservedTopic(
            name=name, topic_id=stored.topic_id, config=stored.config, partitions=partitions
        )

    def _drop(self, topic: ObservedTopic) -> None:
        """Forget a deleted topic. Its readers get `Unknown`."""
        del self._topics[topic.name]
        self._published = {
            key: offset for key, offset in self._published.items() if key.topic != topic.name
        }
        for partition in topic.partitions:
            partition.close()

    def partition(self, topic: str, index: int) -> ObservedPartition:
        partitions = self.topic(topic).partitions
        check_partition(topic, len(partitions), index)
        return partitions[index]

    def reader(self, topic: str, start: Start, *, partition: int = 0) -> Reader:
        """Return a cursor over one partition, from `start` on."""
        return Reader.open(self.partition(topic, partition), start)

    def wait_for_any(
        self, offsets: Sequence[tuple[ReadablePartition, int]], timeout_s: float
    ) -> bool:
        """Wait until one of several partitions has its offset. Returns False on timeout."""

        def is_any_readable() -> bool:
            return any(p.view.last_stable_offset > offset for p, offset in offsets)

        return self._commits.wait_for(is_any_readable, timeout_s)

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]:
        """Send a batch to the owner. The future resolves when it is durable, and fails with
        `Unresolved` if the owner ends before it replies."""
        if self._appends is None:
            raise Unavailable("this process only reads the log")
        return self._appends.append(topic, append, partition=partition, topic_id=topic_id)

    def append_durably(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> AppendResult:
        """Append a batch and wait until it is durable."""
        return self.append(topic, append, partition=partition, topic_id=topic_id).result()

    def append_step(self, topic: str, append: Append) -> Future[AppendResult]:
        """Send a step of a copy to the owner. The future fails with `Overloaded` while the log is
        near its limits."""
        return self.append(topic, append)

    def source_position(
        self, topic: str, source: str, *, partition: int = 0
    ) -> SourcePosition | None:
        """Return how far a source was copied into a partition; None if it never was."""
        return self._owner.source_position(topic, source, partition)

    def create_topic(self, name: str, config: TopicConfig) -> ObservedTopic:
        """Create a topic, or return the existing one with the same settings. `Conflict` if its
        settings differ."""
        self._owner.call(CreateTopic(name, config))
        return self.topic(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records and subscribers."""
        self._owner.call(DeleteTopic(name))

    def publish(
        self, topic: str, partition: int, lake_watermark: int, topic_id: UUID | None = None
    ) -> None:
        """Record that the lake holds everything below `lake_watermark`. It never decreases.
        Raises `Unknown` if `topic_id` is not, or no longer, that topic's id."""
        self._owner.call(PublishLake(topic, partition, lake_watermark, topic_id))
        key = TopicPartition(topic, partition)
        with self._lock:
            self._published[key] = max(self._published.get(key, 0), lake_watermark)

    def discard(self, topic: str, partition: int, end: int) -> None:
        """Remove what is below `end`: rows of it were removed from the lake."""
        self._owner.call(Discard(topic, partition, end))

    def lake_watermark(self, topic: str, partition: int = 0) -> int | None:
        """Return the first offset that the lake does not hold; None if unknown."""
        return self._published.get(TopicPartition(topic, partition))

    def has_subscriber(self, name: str) -> bool:
        return bool(self._owner.call(FindSubscriber(name)))

    def keep_progress(self, name: str, topic: str) -> ObservedSubscriber:
        """Register a subscriber from the earliest offset on, or resume an existing one."""
        self._owner.call(KeepProgress(name, topic))
        return ObservedSubscriber(self._owner, name)

    def unsubscribe(self, name: str) -> None:
        """Remove a subscriber and its progress. It no longer holds back retention."""
        self._owner.call(Unsubscribe(name))

    def close(self) -> None:
        self._commits.close()
        if self._appends is not None:
            self._appends.close()
        self._owner.close()
        self._changes.close()
        for topic in self._topics.values():
            for partition in topic.partitions:
                partition.close()

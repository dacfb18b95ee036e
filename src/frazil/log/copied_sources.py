"""CopiedSources: which sources were copied into a log, and how far; forgets those that ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from frazil.log.compaction import RunOnWriter
from frazil.log.dedup.source_positions import SourcePosition
from frazil.log.topic import Topic
from frazil.log.topics import TopicList, full_means_overloaded


class CopiedSource(NamedTuple):
    """How far one source was copied into one partition."""

    topic: str
    partition: int
    source: str
    position: SourcePosition


class SourceDirectory(Protocol):
    """The sources of a log, in the process that owns it or in another. Any thread may call."""

    def find(self, prefix: str) -> Sequence[CopiedSource]:
        """Return all sources whose name begins so, of all topics. The position of one is None if
        a repair lost it."""

    def forget(self, prefix: str) -> int:
        """Forget all sources whose name begins so, durably. Returns how many there were."""

    def forget_one(self, topic: str, source: str, *, partition: int = 0) -> bool:
        """Forget a source that has ended, durably. Returns whether it was known."""


class CopiedSources:
    """Implements `SourceDirectory` over the log of this process."""

    def __init__(self, topics: TopicList, run_on_writer: RunOnWriter) -> None:
        self._topics = topics
        self._run_on_writer = run_on_writer

    def find(self, prefix: str) -> list[CopiedSource]:
        return self._run_on_writer(
            lambda: [
                CopiedSource(topic.name, index, source, position)
                for topic in self._topics.all()
                for index, partition in enumerate(topic.partitions)
                for source, position in partition.sources.positions.items()
                if source.startswith(prefix)
            ]
        )

    def forget(self, prefix: str) -> int:
        def forget(topic: Topic) -> int:
            return sum(
                partition.sources.forget_all(prefix, partition.durable_watermark)
                for partition in topic.partitions
            )

        with full_means_overloaded(f"sources {prefix}… may come back"):
            return self._run_on_writer(lambda: sum(map(forget, self._topics.all())))

    def forget_one(self, topic: str, source: str, *, partition: int = 0) -> bool:
        target = self._topics.partition(topic, partition)
        with full_means_overloaded(f"source {source} may come back"):
            return self._run_on_writer(
                lambda: target.sources.forget(source, target.durable_watermark)
            )

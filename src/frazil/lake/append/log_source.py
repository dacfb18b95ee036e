"""RecordSource: the topic partitions that the tables are filled from; LogSource: our own log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol
from uuid import UUID

from frazil.disk import Disk, RealDisk
from frazil.errors import Unknown
from frazil.lake.append.slice import RECORDS, Slice, SourcePartition
from frazil.lake.tables.record_rows import table_of
from frazil.log import (
    DEAD_LETTERS,
    SCHEMAS,
    PartitionView,
    ReadableLog,
    Record,
    SegmentRange,
    plan_ranges,
    read_range,
)
from frazil.model import Signal, TopicPartition

ALL_TOPICS = ("*",)
INTERNAL_PREFIX = "__"
"""Prefix of a broker's internal topics."""


def source_of(topic: str, partition: int, topics: Sequence[str]) -> SourcePartition | None:
    """Return the table that a partition goes to, or None if it is not stored in the lake.

    `topics` are name patterns of the topics to store besides telemetry."""
    for signal in Signal:
        if topic == signal.topic:
            return SourcePartition(
                table=signal.table, signal=signal, topic=topic, partition=partition
            )
    if topic in (DEAD_LETTERS, SCHEMAS) or topic.startswith(INTERNAL_PREFIX):
        return None
    if not any(fnmatchcase(topic, pattern) for pattern in topics):
        return None
    return SourcePartition(table=table_of(topic), signal=RECORDS, topic=topic, partition=partition)


class RecordSource(Protocol):
    """A log that the appender reads, ours or Kafka's. Owned by the lake's thread.

    Also owns the lake watermark of each partition: the appender reports it with `publish` after
    each commit and reads it back with `watermark`. The source of truth is the table itself.
    """

    def sources(self) -> list[SourcePartition]:
        """Return all current partitions."""
        ...

    @property
    def replaces_topics(self) -> bool:
        """Whether the table of a deleted topic is renamed when the topic is created again. Other
        sources stop the appender then."""
        ...

    def identities(self) -> dict[str, str]:
        """Return topic -> id, as of the last `sources`. The id differs when a topic is deleted and
        created again. Topics without an id are left out."""
        ...

    def end(self, source: SourcePartition) -> int:
        """Return the first offset that is not durable, as of the last `sources` or later."""
        ...

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        """Cut the offsets from `begin` up to `end`, or up to what is durable, into slices of about
        `bytes_max` bytes. Raises `OutOfRange` when some are gone although the topic awaits the
        lake, unless they were deleted on request; for other topics the first slice begins at the
        first offset that exists."""
        ...

    def pending_bytes(self, source: SourcePartition) -> int:
        """Estimate the bytes that are durable and not in the table."""
        ...

    def publish(self, source: SourcePartition, lake_watermark: int) -> None:
        """Record that the table holds everything below, as read back from the catalog."""
        ...

    def watermark(self, source: SourcePartition) -> int:
        """Return the lake watermark: the first offset not in the table, 0 until published."""
        ...

    def discard(self, partition: TopicPartition, end: int) -> None:
        """Drop what is below `end`, because rows of it were removed from the tables."""
        ...


class LogSource:
    """Our own log. Tasks read its files."""

    def __init__(self, log: ReadableLog, folder: Path, topics: Sequence[str] = ALL_TOPICS) -> None:
        """`folder` is the data folder."""
        self._log = log
        self._folder = str(folder.absolute())
        self._topics = topics
        self._ids: dict[str, UUID] = {}

    @property
    def replaces_topics(self) -> bool:
        return True

    def sources(self) -> list[SourcePartition]:
        topics = self._log.topics()
        sources = [
            source_of(topic.name, partition.index, self._topics)
            for topic in topics
            for partition in topic.partitions
        ]
        found = [source for source in sources if source is not None]
        records = {source.topic for source in found if source.signal == RECORDS}
        self._ids = {
            topic.name: topic.topic_id
            for topic in topics
            if topic.name in records and topic.topic_id is not None
        }
        return found

    def identities(self) -> dict[str, str]:
        """Topics of telemetry are left out: they cannot be deleted."""
        return {name: str(topic_id) for name, topic_id in self._ids.items()}

    def end(self, source: SourcePartition) -> int:
        return self._log.partition(source.topic, source.partition).view.last_stable_offset

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        view = self._log.partition(source.topic, source.partition).current_view(is_indexed=True)
        end = view.last_stable_offset if end is None else end
        awaits_lake = self._log.topic(source.topic).config.awaits_lake
        begin = max(begin, view.exempt_offset if awaits_lake else view.start_offset)
        if begin == end:
            return []
        return slices_of(view, source, self._folder, begin, end, bytes_max)

    def pending_bytes(self, source: SourcePartition) -> int:
        view = self._log.partition(source.topic, source.partition).view
        return bytes_behind(view, self.watermark(source))

    def publish(self, source: SourcePartition, lake_watermark: int) -> None:
        topic_id = self._ids.get(source.topic)
        with suppress(Unknown):  # the topic was deleted meanwhile
            self._log.publish(source.topic, source.partition, lake_watermark, topic_id)

    def watermark(self, source: SourcePartition) -> int:
        return self._log.lake_watermark(source.topic, source.partition) or 0

    def discard(self, partition: TopicPartition, end: int) -> None:
        self._log.discard(partition.topic, partition.partition, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """Records in the files of our log. A task reads them without opening the log or its lock."""

    folder: str
    segment_range: SegmentRange

    def read(self) -> Iterator[list[Record]]:
        return read_files(RealDisk(self.folder), self.segment_range)


def slices_of(
    view: PartitionView, source: SourcePartition, folder: str, begin: int, end: int, bytes_max: int
) -> list[Slice]:
    """Cut the offsets [begin, end) into slices that read the log's files in `folder`."""
    return [
        Slice(
            source=source,
            begin=segment_range.begin,
            end=segment_range.end,
            size_bytes=segment_range.size_bytes,
            origin=LogFiles(folder=folder, segment_range=segment_range),
        )
        for segment_range in plan_ranges(view, begin, end, bytes_max)
    ]


def bytes_behind(view: PartitionView, begin: int) -> int:
    """Estimate the bytes of a partition from offset `begin` on."""
    total = 0
    for segment in view.segments:
        facts = segment.info
        count = facts.end_offset - facts.base_offset
        behind = facts.end_offset - max(begin, facts.base_offset)
        if behind > 0:
            total += facts.size_bytes * behind // count
    return total


def read_files(disk: Disk, segment_range: SegmentRange) -> Iterator[list[Record]]:
    """Yield the records of each batch, without control batches."""
    for batch in read_range(disk, segment_range):
        if not batch.header.is_control:
            yield list(batch.records())

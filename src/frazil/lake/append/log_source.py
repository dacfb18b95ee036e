"""RecordSource: where the rows of the tables come from: partitions of topics, cut into slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from frazil.disk import Disk, RealDisk
from frazil.lake.append.slice import RECORDS, Slice, SourcePartition
from frazil.lake.tables.record_rows import table_of
from frazil.log import (
    DEAD_LETTERS,
    Log,
    PartitionView,
    Record,
    SegmentRange,
    plan_ranges,
    read_range,
)
from frazil.model import Signal

ALL_TOPICS = ("*",)
INTERNAL_PREFIX = "__"
"""Begins the names of topics that a broker keeps for itself."""


def source_of(topic: str, partition: int, topics: Sequence[str]) -> SourcePartition | None:
    """What becomes of a partition: rows of a table, or nothing. `topics` are patterns of those
    that are wanted besides telemetry."""
    for signal in Signal:
        if topic == signal.topic:
            return SourcePartition(
                table=signal.table, signal=signal, topic=topic, partition=partition
            )
    if topic == DEAD_LETTERS or topic.startswith(INTERNAL_PREFIX):
        return None
    if not any(fnmatchcase(topic, pattern) for pattern in topics):
        return None
    return SourcePartition(table=table_of(topic), signal=RECORDS, topic=topic, partition=partition)


class RecordSource(Protocol):
    """What an appender has to know of a log, be it ours or Kafka. Belongs to its thread."""

    def sources(self) -> list[SourcePartition]:
        """Every partition there is now."""
        ...

    def identities(self) -> dict[str, str]:
        """Topic -> what tells it from another one of the same name, made later; as `sources` has
        found them. Topics that nothing tells apart are not in it."""
        ...

    def end(self, source: SourcePartition) -> int:
        """The first offset that is not durable yet, as `sources` has found it, or a later one."""
        ...

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        """The offsets from `begin` up to `end`, or to all that is durable, each in one slice of
        about `bytes_max` bytes. `OutOfRange` when some of them are not there any more, though
        they should have been kept; where nobody promised that, slices begin with what is there."""
        ...

    def pending_bytes(self, source: SourcePartition, begin: int) -> int:
        """About how much there is from `begin` on."""
        ...

    def publish(self, source: SourcePartition, end: int) -> None:
        """The table holds everything below `end`, and was read back."""
        ...


class LogSource:
    """Our own log, by its files."""

    def __init__(self, log: Log, folder: Path, topics: Sequence[str] = ALL_TOPICS) -> None:
        """`folder` is the root of the disk that the log is on."""
        self._log = log
        self._folder = str(folder.absolute())
        self._topics = topics

    def sources(self) -> list[SourcePartition]:
        found = [
            source_of(topic.name, partition.index, self._topics)
            for topic in self._log.topics()
            for partition in topic.partitions
        ]
        return [source for source in found if source is not None]

    def identities(self) -> dict[str, str]:
        return {}  # nobody can make a topic of our log anew below the tables

    def end(self, source: SourcePartition) -> int:
        return self._log.partition(source.topic, source.partition).view.durable_watermark

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        view = self._log.partition(source.topic, source.partition).view
        end = view.durable_watermark if end is None else end
        if not self._log.topic(source.topic).config.awaits_lake:
            begin = max(begin, view.start_offset)
        if begin == end:
            return []
        return slices_of(view, source, self._folder, begin, end, bytes_max)

    def pending_bytes(self, source: SourcePartition, begin: int) -> int:
        return bytes_behind(self._log.partition(source.topic, source.partition).view, begin)

    def publish(self, source: SourcePartition, end: int) -> None:
        self._log.publish(source.topic, source.partition, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """Records in the files of our log, which a task reads without the log and without its lock."""

    folder: str
    stretch: SegmentRange

    def read(self) -> Iterator[list[Record]]:
        return read_files(RealDisk(self.folder), self.stretch)


def slices_of(
    view: PartitionView, source: SourcePartition, folder: str, begin: int, end: int, bytes_max: int
) -> list[Slice]:
    """The offsets from `begin` up to `end` as slices of the log's files, which are in `folder`."""
    return [
        Slice(
            source=source,
            begin=stretch.begin,
            end=stretch.end,
            size_bytes=stretch.size_bytes,
            origin=LogFiles(folder=folder, stretch=stretch),
        )
        for stretch in plan_ranges(view, begin, end, bytes_max)
    ]


def bytes_behind(view: PartitionView, begin: int) -> int:
    """About how much a partition has from an offset on."""
    total = 0
    for segment in view.segments:
        facts = segment.info
        count = facts.end_offset - facts.base_offset
        wanted = facts.end_offset - max(begin, facts.base_offset)
        if wanted > 0:
            total += facts.size_bytes * wanted // count
    return total


def read_files(disk: Disk, stretch: SegmentRange) -> Iterator[list[Record]]:
    """The records of each batch; markers are none."""
    for batch in read_range(disk, stretch):
        if not batch.header.is_control:
            yield list(batch.records())

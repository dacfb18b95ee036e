"""Messages of a topic, from the log's files: newest or oldest first, committed ones only.

    window    offsets of each partition: from an offset or a time on, up to the last stable offset
    read      newest: index interval by index interval, backwards; oldest: forwards
    merge     by time, each partition in the order of its offsets; cut at the limit
    cursor    where each partition continues

A request reads a bounded number of bytes. If that was not enough to find messages, it has a cursor
all the same.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from frazil.disk import Disk
from frazil.errors import OutOfRange
from frazil.log import (
    PartitionView,
    ReadablePartition,
    ReadableTopic,
    Reader,
    Record,
    StoredBatch,
    record_at_time,
)
from frazil.model import KiB, MiB, doc
from frazil.serve.topics.message import FIELD_BYTES, TopicMessage, message_of, text_bytes

READ_BYTES_MAX = 32 * MiB
"""Batches read by one request."""
ANSWER_BYTES_MAX = 8 * MiB
"""Messages in one response, about."""
PARTITIONS_MAX = 64
"""Partitions read by one request; of more, those with the newest records."""
STEP_BYTES = 64 * KiB
"""About the interval of an index."""
ATTEMPTS_MAX = 3
"""Retention may remove what is being read."""

Offsets = Mapping[int, int]
"""By partition."""
Match = Callable[[Record], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesQuery:
    """Which messages to read."""

    partitions: tuple[int, ...] = ()
    """All, if empty."""
    offset: int = 0
    """The first one."""
    since_ms: int | None = None
    until_ms: int | None = None
    order: Literal["newest", "oldest"] = "newest"
    limit: int = 100
    search: bytes = b""
    """In key or value."""
    after: Offsets | None = None
    """Where an earlier answer ended."""
    bytes_max: int = FIELD_BYTES


class MessagesPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that was read."""

    partition: int
    start_offset: Annotated[int, doc("First offset in the log.")]
    last_stable_offset: Annotated[int, doc("End of what is committed.")]


class MessagesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a topic."""

    messages: list[TopicMessage]
    cursor: Annotated[str | None, doc("Pass it as `after` for more; null if there are none.")]
    partitions: Annotated[
        list[MessagesPartition], doc("Those that were read: at most 64, the most recent ones.")
    ]
    partition_count: Annotated[int, doc("Those that were asked for.")]
    read_bytes: Annotated[int, doc("How much of the log was read to find them.")]


def read_messages(topic: ReadableTopic, query: MessagesQuery) -> MessagesAnswer:
    """Read messages. Call it in a thread."""
    chosen = [p for p in topic.partitions if not query.partitions or p.index in query.partitions]
    parts = [_read_partition(each, query, len(chosen)) for each in _most_recent(chosen)]
    taken = _merged(parts, query)
    ends = {part.index: part.reached(taken, query.order) for part in parts}
    is_over = all(part.is_over(ends[part.index], query.order) for part in parts)
    return MessagesAnswer(
        messages=taken,
        cursor=None if is_over else cursor_of(ends),
        partitions=[
            MessagesPartition(
                partition=part.index,
                start_offset=part.view.start_offset,
                last_stable_offset=part.view.last_stable_offset,
            )
            for part in parts
        ],
        partition_count=len(chosen),
        read_bytes=sum(part.read_bytes for part in parts),
    )


def cursor_of(offsets: Offsets) -> str:
    """Return offsets as text, such as `0:17,1:4`."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


class IndexedPartition:
    """A partition at one moment, with complete indexes. Owned by one thread."""

    def __init__(self, partition: ReadablePartition) -> None:
        self.topic = partition.topic
        self.index = partition.index
        self.disk: Disk = partition.disk
        self.swap: AbstractContextManager[object] = partition.swap
        self._partition = partition
        self.view = partition.current_view(is_indexed=True)

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        """Return the view, another one only if its files are gone."""
        if is_stale:
            self.view = self._partition.current_view(is_indexed=True)
        return self.view


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What was read of one partition."""

    index: int
    view: PartitionView
    begin: int
    end: int
    records: list[Record]
    scanned: int
    """How far it was read: all records from the begin up to here, or from here up to the end."""
    read_bytes: int

    def reached(self, taken: list[TopicMessage], order: str) -> int:
        """Return where the next request continues."""
        own = [message.offset for message in taken if message.partition == self.index]
        if order == "oldest":
            if len(own) == len(self.records):
                return self.scanned
            return own[-1] + 1 if own else self.begin
        if len(own) == len(self.records):
            return self.scanned
        return own[-1] if own else self.end

    def is_over(self, reached: int, order: str) -> bool:
        return reached >= self.end if order == "oldest" else reached <= self.begin


def _most_recent(partitions: list[ReadablePartition]) -> list[ReadablePartition]:
    if len(partitions) <= PARTITIONS_MAX:
        return partitions

    def newest_ms(partition: ReadablePartition) -> int:
        return max((s.info.max_timestamp_ms for s in partition.view.segments[-1:]), default=0)

    return heapq.nlargest(PARTITIONS_MAX, partitions, key=newest_ms)


def _read_partition(partition: ReadablePartition, query: MessagesQuery, count: int) -> _Part:
    for attempt in range(ATTEMPTS_MAX):
        try:
            return _read(IndexedPartition(partition), query, READ_BYTES_MAX // count)
        except OutOfRange:
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError


def _read(partition: IndexedPartition, query: MessagesQuery, bytes_max: int) -> _Part:
    begin, end = _window(partition, query)
    view = partition.view
    read = _read_newest if query.order == "newest" else _read_oldest
    records, scanned, read_bytes = read(partition, begin, end, query, bytes_max)
    return _Part(
        index=partition.index,
        view=view,
        begin=begin,
        end=end,
        records=records,
        scanned=scanned,
        read_bytes=read_bytes,
    )


def _window(partition: IndexedPartition, query: MessagesQuery) -> tuple[int, int]:
    """Return the offsets to read, which are in the log."""
    begin = max(partition.view.start_offset, query.offset)
    if query.since_ms is not None:
        begin = max(begin, _offset_at(partition, query.since_ms))
    end = partition.view.last_stable_offset
    if query.until_ms is not None:
        end = min(end, _offset_at(partition, query.until_ms))
    if query.after is not None:
        after = query.after.get(partition.index)
        if query.order == "newest":
            end = min(end, end if after is None else after)
        else:
            begin = max(begin, begin if after is None else after)
    return min(begin, end), end


def _offset_at(partition: IndexedPartition, timestamp_ms: int) -> int:
    found = record_at_time(partition, timestamp_ms)
    return partition.view.last_stable_offset if found is None else found.offset


Found = tuple[list[Record], int, int]
"""Records in the order asked for, how far was read, and how many bytes."""


def _read_newest(
    partition: IndexedPartition, begin: int, end: int, query: MessagesQuery, bytes_max: int
) -> Found:
    found: list[Record] = []
    matches = match_of(query.search)
    scanned, read_bytes = end, 0
    for first, last in backwards(partition.view, begin, end):
        batches = list(_batches(partition, first, last))
        for batch in reversed(batches):
            read_bytes += len(batch.payload)
            for record in reversed(records_of(batch, first, last)):
                if matches(record):
                    found.append(record)
                if len(found) == query.limit:
                    return found, record.offset, read_bytes
        scanned = first
        if read_bytes >= bytes_max:
            break
    return found, scanned, read_bytes


def _read_oldest(
    partition: IndexedPartition, begin: int, end: int, query: MessagesQuery, bytes_max: int
) -> Found:
    found: list[Record] = []
    matches = match_of(query.search)
    scanned, read_bytes = begin, 0
    for batch in _batches(partition, begin, end):
        read_bytes += len(batch.payload)
        for record in records_of(batch, begin, end):
            if matches(record):
                found.append(record)
            if len(found) == query.limit:
                return found, record.offset + 1, read_bytes
        scanned = min(end, batch.end_offset)
        if read_bytes >= bytes_max:
            return found, scanned, read_bytes
    return found, end, read_bytes


def backwards(view: PartitionView, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets in steps of about an index interval, the last ones first."""
    for segment in reversed(view.segments):
        base, offsets = segment.info.base_offset, segment.sparse.offsets
        if segment.info.end_offset <= begin:
            return
        for at in range(bisect_left(offsets, end) - 1, -1, -1):
            first = max(begin, base, offsets[at])
            if first < end:
                yield first, end
                end = first
        if max(begin, base) < end:
            yield max(begin, base), end
            end = max(begin, base)


def _batches(partition: IndexedPartition, begin: int, end: int) -> Iterator[StoredBatch]:
    """Yield the batches of these offsets. The first and the last may have others, too."""
    reader = Reader(partition, begin)
    try:
        while reader.offset < end and (batches := reader.read(STEP_BYTES)):
            for batch in batches:
                if batch.base_offset >= end:
                    return
                yield batch
    finally:
        reader.close()


def records_of(batch: StoredBatch, begin: int, end: int) -> list[Record]:
    """Return the records of a batch with these offsets. Markers of transactions are none."""
    if batch.header.is_control:
        return []
    return [record for record in batch.records() if begin <= record.offset < end]


def match_of(search: bytes) -> Match:
    """Return what finds a text in key or value."""
    if not search:
        return lambda _: True
    return lambda record: search in (record.key or b"") or search in (record.value or b"")


def _merged(parts: list[_Part], query: MessagesQuery) -> list[TopicMessage]:
    """Return messages of all partitions by time, up to the limits of a response."""
    merged = heapq.merge(
        *([(record, part.index) for record in part.records] for part in parts),
        key=lambda each: each[0].timestamp_ms,
        reverse=query.order == "newest",
    )
    taken: list[TopicMessage] = []
    taken_bytes = 0
    for record, partition in merged:
        taken.append(message_of(record, partition, query.bytes_max))
        taken_bytes += text_bytes(taken[-1])
        if len(taken) == query.limit or taken_bytes >= ANSWER_BYTES_MAX:
            break
    return taken

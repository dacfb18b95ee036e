"""TopicPoller: new messages of a topic, read from the log's files as they become committed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec

from frazil.disk import Disk
from frazil.log import PartitionView, ReadablePartition, Reader, Record
from frazil.model import MiB
from frazil.serve.http.events import events_of
from frazil.serve.http.handler import Handler
from frazil.serve.topics.message import message_of
from frazil.serve.topics.reading import backwards, match_of, records_of

POLL_BYTES_MAX = 4 * MiB
"""Batches read by one poll. What a fast producer writes beyond that is skipped."""


class FollowedPartition:
    """A partition up to an offset, for a reader that follows it. Owned by one thread at a time."""

    def __init__(self, partition: ReadablePartition) -> None:
        self.topic = partition.topic
        self.index = partition.index
        self.disk: Disk = partition.disk
        self.swap: AbstractContextManager[object] = partition.swap
        self.until: int | None = None
        self.is_entered = False
        """The reader has a file open, and needs no index to find its place."""
        self._partition = partition

    @property
    def view(self) -> PartitionView:
        return self.current_view()

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        """Return what is durable now, with indexes until the reader has found its place."""
        view = self._partition.current_view(
            is_stale=is_stale, is_indexed=is_indexed or not self.is_entered
        )
        if self.until is None or self.until >= view.last_stable_offset:
            return view
        return view._replace(last_stable_offset=self.until)

    def end_offset(self) -> int:
        """Return the end of what is committed, without indexes. `Unknown` if the topic is gone."""
        end = self._partition.current_view().last_stable_offset
        return end if self.until is None else min(end, self.until)


class TopicPoller:
    """Polls the new messages of partitions. One poll at a time, in any thread."""

    def __init__(
        self,
        handler: Handler,
        partitions: Sequence[ReadablePartition],
        start: dict[int, int],
        *,
        search: bytes,
        rate: int,
        bytes_max: int,
    ) -> None:
        self._handler = handler
        self._search = search
        self._rate = rate
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._is_closed = False
        self._readers = [
            Reader(FollowedPartition(partition), start[partition.index]) for partition in partitions
        ]
        self.watermarks = dict(start)

    async def poll(self, until: dict[int, int] | None) -> bytes | None:
        """Return new messages as events; None if there are none."""
        return await self._handler.run(lambda: self._poll(until))

    def close(self) -> None:
        """Close the files, now or when the running poll ends."""
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._close_readers()
            finally:
                self._lock.release()

    def _poll(self, until: dict[int, int] | None) -> bytes | None:
        with self._lock:
            try:
                return self._read(until)
            finally:
                if self._is_closed:
                    self._close_readers()

    def _read(self, until: dict[int, int] | None) -> bytes | None:
        matches = match_of(self._search)
        found: list[tuple[Record, int]] = []
        skipped = 0
        bytes_max = POLL_BYTES_MAX // len(self._readers)
        for reader in self._readers:
            records, jumped = _new_records(reader, until, bytes_max)
            skipped += jumped
            found += [(each, reader.partition.index) for each in records if matches(each)]
        self.watermarks = {reader.partition.index: reader.offset for reader in self._readers}
        skipped += max(0, len(found) - self._rate)
        if not found and not skipped:
            return None
        found.sort(key=lambda each: each[0].timestamp_ms)  # stable: offsets stay in order
        rows = [
            msgspec.json.encode(message_of(record, partition, self._bytes_max))
            for record, partition in found[-self._rate :]
        ]
        return events_of(rows, skipped, self.watermarks)

    def _close_readers(self) -> None:
        for reader in self._readers:
            reader.close()


def _new_records(
    reader: Reader, until: dict[int, int] | None, bytes_max: int
) -> tuple[list[Record], int]:
    """Return the next records of a partition, and how many offsets were skipped before them."""
    partition = reader.partition
    assert isinstance(partition, FollowedPartition)
    partition.until = None if until is None else until.get(partition.index)
    if reader.offset >= partition.end_offset():
        return [], 0
    records = _read_up_to(reader, partition, bytes_max)
    end = partition.end_offset()
    if reader.offset >= end:
        return records, 0
    # Too much for one poll: go on with the last index interval.
    reader.close()
    partition.is_entered = False
    first, _ = next(backwards(partition.current_view(), reader.offset, end))
    skipped, reader.offset = first - reader.offset, first
    return [*records, *_read_up_to(reader, partition, bytes_max)], skipped


def _read_up_to(reader: Reader, partition: FollowedPartition, bytes_max: int) -> list[Record]:
    records: list[Record] = []
    begin, taken = reader.offset, 0
    while taken < bytes_max and (batches := reader.read(bytes_max - taken)):
        partition.is_entered = True
        for batch in batches:
            taken += len(batch.payload)
            records += records_of(batch, begin, batch.end_offset)
    return records

"""LogTail: the records of a topic in the log, decoded into rows like those of its table."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pyarrow as pa

from frazil.errors import Malformed, Unknown
from frazil.lake.append.slice import RECORDS, request_of
from frazil.lake.append.task import decode_all
from frazil.lake.read.window_reader import WindowRows
from frazil.lake.tables.record_rows import columns_of, rows_of, table_of
from frazil.log import ReadableLog, Reader, Record, Start, StoredBatch
from frazil.model import NO_PROMOTIONS, Promotions, Signal, arrow

READ_BYTES = 4 * 1024 * 1024
"""Bytes of the log per read: large enough for the decoder to be efficient."""


class LogTail:
    """Rows of one topic that are still in the log. Owned by one thread."""

    def __init__(
        self,
        log: ReadableLog,
        topic: str,
        table: str,
        signal: str,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> None:
        self.topic = topic
        self.table = table
        self._log = log
        self._signal = signal
        self._promotions = promotions
        found = log.topic(topic)
        self._topic_id, self._partitions = found.topic_id, found.partitions
        self._readers: dict[int, Reader] = {}

    @classmethod
    def open(cls, log: ReadableLog, name: str, promotions: Promotions = NO_PROMOTIONS) -> LogTail:
        """Open a topic by its name or the name of its table. Raise `Unknown` if there is none, and
        `Malformed` if the name is ambiguous."""
        for signal in Signal:
            if name in (signal.topic, signal.table):
                return cls(log, signal.topic, signal.table, signal, promotions)
        known = [topic.name for topic in log.topics()]
        matches = [topic for topic in known if name in (topic, table_of(topic))] or [name]
        if len(matches) > 1:
            (other,) = (topic for topic in matches if topic != name)
            raise Malformed(
                f"{name} is both a topic and the table of {other}; use {table_of(name)} or {other}"
            )
        return cls(log, matches[0], table_of(matches[0]), RECORDS)

    @property
    def awaits_lake(self) -> bool:
        """Whether the log keeps records until the table holds them."""
        return self._log.topic(self.topic).config.awaits_lake

    @property
    def partitions(self) -> list[int]:
        return [partition.index for partition in self._partitions]

    def find_partitions(self) -> list[int]:
        """Look for partitions that were added. Returns all."""
        with suppress(Unknown):  # deleted: readers of its partitions say so
            found = self._log.topic(self.topic)
            if found.topic_id == self._topic_id:
                self._partitions = found.partitions
        return self.partitions

    def start(self, partition: int) -> int:
        """Return the first offset in the log."""
        return self._partitions[partition].view.start_offset

    def offset_of(self, partition: int, start: Start) -> int:
        """Resolve a start to an offset in the log."""
        reader = self._log.reader(self.topic, start, partition=partition)
        reader.close()
        return reader.offset

    def read(self, partition: int, offset: int) -> WindowRows | None:
        """Return the next rows from `offset` on, or None if there are none yet. Raise `OutOfRange`
        if the log no longer has the offset."""
        reader = self._readers.get(partition)
        if reader is None or reader.offset != offset:
            self._close(partition)
            reader = self._readers[partition] = Reader(self._partitions[partition], offset)
        batches = reader.read(READ_BYTES)
        if reader.offset == offset:
            return None
        rows = self._rows(_records(batches, offset), partition)
        return WindowRows(partition=partition, begin=offset, end=reader.offset, batch=rows)

    def wait(self, offsets: Mapping[int, int], timeout_s: float) -> bool:
        """Wait until the log has a record at or above one of these offsets. False on timeout."""
        positions = [(self._partitions[index], offset) for index, offset in offsets.items()]
        return self._log.wait_for_any(positions, timeout_s)

    def close(self) -> None:
        for partition in list(self._readers):
            self._close(partition)

    def _close(self, partition: int) -> None:
        reader = self._readers.pop(partition, None)
        if reader is not None:
            reader.close()

    def _rows(self, records: list[Record], partition: int) -> pa.RecordBatch:
        if self._signal == RECORDS:
            return rows_of(records, partition)
        requests = [request_of(record, partition) for record in records]
        schema = columns_of(self.table, self._promotions)
        decode = partial(arrow.decode, promotions=self._promotions)
        parts = [each.batch for each in decode_all(decode, self._signal, requests, schema)]
        whole = pa.Table.from_batches(parts, schema).combine_chunks()
        (batch,) = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
        return batch


def _records(batches: list[StoredBatch], begin: int) -> list[Record]:
    """Return the records from `begin` on, without control batches."""
    return [
        record
        for batch in batches
        if not batch.header.is_control
        for record in batch.records()
        if record.offset >= begin
    ]

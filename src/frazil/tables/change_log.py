"""ChangeLog: what a table is folded from: topics, their partitions, and committed records in order.

`LogChanges` is our own log. The appender has another one, of a foreign Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from frazil.log import ReadableLog, ReadablePartition, Reader, Record


class ChangeExtent(Protocol):
    """The offsets that a partition holds."""

    @property
    def start_offset(self) -> int: ...

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below it is committed or aborted."""
        ...


class ChangeRecords(Protocol):
    """A cursor. Owned by one thread."""

    @property
    def offset(self) -> int:
        """Every committed record below it was returned, or does not exist."""
        ...

    def read(self, bytes_max: int) -> Sequence[Record]:
        """Return the next committed records, about `bytes_max` bytes. `offset` may advance without
        any. Raises `OutOfRange` if the next ones were removed."""
        ...

    def close(self) -> None: ...


class ChangePartition(Protocol):
    """A partition of the topic that a table is folded from."""

    @property
    def topic(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def view(self) -> ChangeExtent:
        """As of now, or a moment ago."""
        ...

    def reader(self, offset: int) -> ChangeRecords: ...


class ChangeLog(Protocol):
    """The topics that tables are folded from."""

    def partition(self, topic: str, index: int) -> ChangePartition: ...


@dataclass(frozen=True, slots=True)
class LogChanges:
    """The topics of our log."""

    log: ReadableLog

    def partition(self, topic: str, index: int) -> ChangePartition:
        return _LogPartition(self.log.partition(topic, index))


@dataclass(frozen=True, slots=True)
class _LogPartition:
    source: ReadablePartition

    @property
    def topic(self) -> str:
        return self.source.topic

    @property
    def index(self) -> int:
        return self.source.index

    @property
    def view(self) -> ChangeExtent:
        return self.source.view

    def reader(self, offset: int) -> ChangeRecords:
        return _LogRecords(Reader(self.source, offset))


@dataclass(frozen=True, slots=True)
class _LogRecords:
    reader: Reader

    @property
    def offset(self) -> int:
        return self.reader.offset

    def read(self, bytes_max: int) -> list[Record]:
        return [
            record
            for batch in self.reader.read(bytes_max)
            if not batch.header.is_control
            for record in batch.records()
        ]

    def close(self) -> None:
        self.reader.close()

"""Slice: the offsets of a partition that one task reads, and where their records are stored.

The driver plans slices. A task runs in another process, reads its slice without contacting the
driver, and sees only what was durable when the slice was planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from frazil.log import Record
from frazil.model import MiB, TopicPartition
from frazil.model.arrow import ExportRequest

REQUESTS_BYTES = 4 * MiB
"""Bytes decoded per call: enough for full decoder speed at little memory."""
RECORDS = "records"
"""Used in place of a signal when records are stored as rows without decoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePartition:
    """A topic partition and the table that its records go to."""

    table: str
    signal: str
    """Signal name for the decoder, or `RECORDS`."""
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class SliceLocation(Protocol):
    """Where the records of a slice are stored. Small and picklable."""

    def read(self) -> Iterator[list[Record]]:
        """Yield all records of the slice in order, in batches; may include records around it.

        Raises `Conflict` when the files have changed since planning and `Corrupt` when they are
        damaged. Batches yielded before the error are valid.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The input of one task: all records of a partition in the offsets [begin, end)."""

    source: SourcePartition
    begin: int
    end: int
    size_bytes: int
    """Estimated by the source."""
    origin: SliceLocation


def requests_of(
    slice: Slice, batches: Iterable[list[Record]], *, bytes_max: int = REQUESTS_BYTES
) -> Iterator[list[ExportRequest]]:
    """Yield the records of a slice as requests for the decoder, in batches."""
    for records in records_of(slice, batches, bytes_max=bytes_max):
        yield [request_of(record, slice.source.partition) for record in records]


def request_of(record: Record, partition: int) -> ExportRequest:
    """Return a record as a request for the decoder."""
    return ExportRequest(
        partition=partition,
        offset=record.offset,
        ingest_time_ms=record.timestamp_ms,
        body=record.value or b"",
    )


def records_of(
    slice: Slice, batches: Iterable[list[Record]], *, bytes_max: int = REQUESTS_BYTES
) -> Iterator[list[Record]]:
    """Yield the records of a slice in lists of up to `bytes_max` bytes, or of one larger batch."""
    pending: list[Record] = []
    pending_bytes = 0
    for batch in batches:
        records = [record for record in batch if slice.begin <= record.offset < slice.end]
        size = sum(len(record.value or b"") + len(record.key or b"") for record in records)
        if pending and pending_bytes + size > bytes_max:
            yield pending
            pending, pending_bytes = [], 0
        pending_bytes += size
        pending += records
    if pending:
        yield pending

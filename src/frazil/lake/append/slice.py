"""Slices: which offsets of a partition one task takes, and where their records are.

The driver plans them. A task, which is another process, reads them without asking anybody, and
sees nothing that was not durable when they were planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from frazil.log import Record
from frazil.model import MiB
from frazil.model.arrow import ExportRequest

REQUESTS_BYTES = 4 * MiB
"""How much is decoded at once: enough for the decoder to be at its best, and little memory."""
RECORDS = "records"
"""In place of a signal: rows are the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePartition:
    """One partition of a topic, and the table that its records are rows of."""

    table: str
    signal: str
    """What the decoder calls it; `RECORDS` when there is nothing to decode."""
    topic: str
    partition: int

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition


class SliceLocation(Protocol):
    """Where the records of a slice are. Small, and may be sent to another process."""

    def read(self) -> Iterator[list[Record]]:
        """Every record of the slice in order, some at a time; others beside them do no harm.

        `Conflict` when they are not there as planned any more, `Corrupt` when they are damaged;
        what came before is right in either case.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The work of one task: all records of a partition from offset `begin` up to `end`."""

    source: SourcePartition
    begin: int
    end: int
    size_bytes: int
    """About, as the source counts them."""
    origin: SliceLocation


def requests_of(
    slice: Slice, batches: Iterable[list[Record]], *, bytes_max: int = REQUESTS_BYTES
) -> Iterator[list[ExportRequest]]:
    """The records of a slice as requests, some at a time."""
    for records in records_of(slice, batches, bytes_max=bytes_max):
        yield [request_of(record, slice.source.partition) for record in records]


def request_of(record: Record, partition: int) -> ExportRequest:
    """A record as the decoder wants it."""
    return ExportRequest(
        partition=partition,
        offset=record.offset,
        ingest_time_ms=record.timestamp_ms,
        body=record.value or b"",
    )


def records_of(
    slice: Slice, batches: Iterable[list[Record]], *, bytes_max: int = REQUESTS_BYTES
) -> Iterator[list[Record]]:
    """The records of a slice, some at a time: up to `bytes_max` bytes, or a batch."""
    waiting: list[Record] = []
    taken = 0
    for batch in batches:
        found = [record for record in batch if slice.begin <= record.offset < slice.end]
        size = sum(len(record.value or b"") + len(record.key or b"") for record in found)
        if waiting and taken + size > bytes_max:
            yield waiting
            waiting, taken = [], 0
        taken += size
        waiting += found
    if waiting:
        yield waiting

"""From a time to offsets, which changes of a table had been written by then; and back."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import OutOfRange
from frazil.log import ReadableLog, ReadablePartition, Reader, record_at_time
from frazil.model import KiB
from frazil.tables.definition import TableDefinition
from frazil.tables.writer import Token

TIMES_MAX = 10_000
"""Offsets whose times are looked up at once; of more, the last ones."""
READ_BYTES = 64 * KiB
"""About what one look-up reads: the interval of an index."""


def offsets_at(log: ReadableLog, definition: TableDefinition, time_ms: int) -> Token:
    """Return the first offset of each partition that was written after a time, or its end.

    A record has the time of the clock when it was written. Raises `OutOfRange` if that was before
    the oldest record that the log still has.
    """
    offsets: Token = {}
    for number in range(definition.partitions):
        partition = log.partition(definition.topic, number)
        view = partition.view
        later = record_at_time(partition, time_ms + 1)
        offsets[number] = view.last_stable_offset if later is None else later.offset
        if later is not None and 0 < later.offset <= view.start_offset:
            raise OutOfRange(
                f"the log of table {definition.name} begins after that time: its changes below "
                f"offset {view.start_offset} of partition {number} are in the lake only"
            )
    return offsets


def times_at(partition: ReadablePartition, offsets: Sequence[int]) -> list[int | None]:
    """Return when the changes at these offsets, in order, were written, in milliseconds. None for
    those that the log no longer has."""
    known: dict[int, int] = {}
    reader: Reader | None = None
    try:
        for offset in offsets[-TIMES_MAX:]:
            if offset in known:
                continue
            if reader is None or reader.offset != offset:
                if reader is not None:
                    reader.close()
                reader = Reader(partition, offset)
            known |= _read_times(reader)
    finally:
        if reader is not None:
            reader.close()
    return [known.get(offset) for offset in offsets]


def _read_times(reader: Reader) -> dict[int, int]:
    try:
        batches = reader.read(READ_BYTES)
    except OutOfRange:
        return {}
    # All records of one write have the same time.
    return {
        offset: batch.header.max_timestamp_ms
        for batch in batches
        for offset in range(batch.base_offset, batch.end_offset)
    }

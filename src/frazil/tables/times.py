"""From a time to offsets: the changes of a table that had been written by then. And back: when a
change was written, and by whom."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from frazil.errors import OutOfRange
from frazil.log import ReadableLog, ReadablePartition, Reader, StoredBatch, record_at_time
from frazil.model import KiB
from frazil.tables.changes import BY_HEADER
from frazil.tables.definition import TableDefinition
from frazil.tables.writer import Token

ORIGINS_MAX = 10_000
"""Offsets that are looked up at once; of more, the last ones."""
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


class ChangeOrigin(NamedTuple):
    """Where a change comes from."""

    time_ms: int
    """When it was written."""
    by: str | None
    """Who wrote it, such as `http:token 1a2b3c4d`; None if nobody said."""


def origins_at(
    partition: ReadablePartition, definition: TableDefinition, offsets: Sequence[int]
) -> list[ChangeOrigin | None]:
    """Return when and by whom the changes at these offsets, in order, were written. None for those
    that the log no longer has."""
    known: dict[int, ChangeOrigin] = {}
    wanted = frozenset(offsets)
    reader: Reader | None = None
    try:
        for offset in offsets[-ORIGINS_MAX:]:
            if offset in known:
                continue
            if reader is None or reader.offset != offset:
                if reader is not None:
                    reader.close()
                reader = Reader(partition, offset)
            known |= _read_origins(reader, definition, wanted)
    finally:
        if reader is not None:
            reader.close()
    return [known.get(offset) for offset in offsets]


def _read_origins(
    reader: Reader, definition: TableDefinition, wanted: Collection[int]
) -> dict[int, ChangeOrigin]:
    try:
        batches = reader.read(READ_BYTES)
    except OutOfRange:
        return {}
    origins: dict[int, ChangeOrigin] = {}
    for batch in batches:
        mine = [each for each in range(batch.base_offset, batch.end_offset) if each in wanted]
        if mine:
            # All records of one write have the same time and sender.
            time_ms = batch.header.max_timestamp_ms
            origins |= dict.fromkeys(mine, ChangeOrigin(time_ms, _sender(batch, definition)))
    return origins


def _sender(batch: StoredBatch, definition: TableDefinition) -> str | None:
    if definition.feed is not None:
        return f"topic:{definition.feed.topic}"
    for name, value in batch.records()[0].headers:
        if name == BY_HEADER and value is not None:
            return value.decode(errors="replace")
    return None

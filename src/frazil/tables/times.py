"""From a time to offsets: which changes of a table had been written by then."""

from __future__ import annotations

from frazil.errors import OutOfRange
from frazil.log import ReadableLog, record_at_time
from frazil.tables.definition import TableDefinition
from frazil.tables.writer import Token


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

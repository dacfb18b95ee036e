"""The offset at which a new reader starts."""

from __future__ import annotations

from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.table_reader import TableReader
from frazil.log import AtTime, Start


def start_of(partition: int, start: Start, tail: LogTail, history: TableReader | None) -> int:
    """Resolve a start to an offset, over table and log together."""
    end = 0 if history is None else history.ends().get(partition, 0)
    if start == "earliest" and end:
        return 0
    if isinstance(start, AtTime) and history is not None:
        offset = history.offset_at_time(partition, start.timestamp_ms)
        if offset is not None:
            return offset
    if isinstance(start, int) and 0 <= start < end:
        return start
    return tail.offset_of(partition, start)

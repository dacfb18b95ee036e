"""LogqlTail: new lines of a selection, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frazil.languages.logql.labels import LABEL_COLUMNS
from frazil.languages.logql.lowering import lowered
from frazil.languages.logql.pipeline import LogLine, compile_stages, passes
from frazil.languages.logql.records import line_of
from frazil.languages.logql.syntax import LogSelection
from frazil.query import EPOCH, MICROSECOND, Ask, Tail

_COLUMNS = ", ".join(("time", "time_unix_nano", "body", *LABEL_COLUMNS))


@dataclass(frozen=True, slots=True)
class TailedLines:
    lines: Sequence[LogLine]
    skipped_count: int
    """Earlier records that exceeded the limit."""


class LogqlTail:
    """New lines above the watermarks `start`. Owned by one thread."""

    def __init__(self, selection: LogSelection, *, start: Mapping[int, int], limit: int) -> None:
        lowering = lowered(selection)
        self._steps = [] if lowering.is_exact else compile_stages(selection.stages)
        self._tail = Tail("logs", lowering.conditions, start=start, columns=_COLUMNS, limit=limit)

    @property
    def watermarks(self) -> dict[int, int]:
        """First offset of each partition that was not returned yet."""
        return self._tail.watermarks

    def has_news(self, watermarks: Mapping[int, int]) -> bool:
        return self._tail.next_sql(watermarks) is not None

    def poll(self, ask: Ask, watermarks: Mapping[int, int]) -> TailedLines:
        """Return the lines below these watermarks that were not returned yet."""
        polled = self._tail.poll(ask, watermarks)
        if polled is None:
            return TailedLines((), 0)
        lines = []
        for row in polled.rows.to_pylist():
            micros = (row["time"] - EPOCH) // MICROSECOND
            row["time_ns"] = row["time_unix_nano"] or micros * 1000
            line = line_of(row)
            if passes(line, self._steps):
                lines.append(line)
        return TailedLines(lines, polled.skipped_count)


def before(watermarks: Mapping[int, int]) -> str:
    """SQL of the records that a tail from these watermarks does not return."""
    ranges = [
        f"(_log_partition = {int(partition)} AND _offset < {int(end)})"
        for partition, end in sorted(watermarks.items())
    ]
    return f"({' OR '.join(ranges)})" if ranges else "false"

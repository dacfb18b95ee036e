"""Reads the lines of a selection: by SQL, in batches, within the limits of a query.

A page of lines is read newest or oldest first, until there are enough that pass the pipeline. The
next page continues behind the last line of the one before, and is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import TooLarge
from frazil.languages.logql.labels import LABEL_COLUMNS, TIME_NS, column_list, labels_of
from frazil.languages.logql.lowering import lowered
from frazil.languages.logql.pipeline import LogLine, compile_stages, passes
from frazil.languages.logql.syntax import LogSelection
from frazil.query import Cursor
from frazil.query import sql_where as where
from frazil.results import Result

ReadRows = Callable[[str], Result]
"""Starts a query, whose rows are read one batch at a time."""

NS_PER_US = 1000
PAGE_ROWS = 1000
PAGE_ROWS_MAX = 64_000
PAGE_GROWTH = 4
ROWS_AT_ONCE = 1024
"""Rows that are Python values at the same time."""
LINES_READ_MAX = 1_000_000
"""FoundLines that one query of lines looks at, beyond those that SQL excludes."""
PLACE = ("_log_partition", "_offset", "_row")


@dataclass(frozen=True, slots=True)
class LineSpan:
    """From `begin_ns` to before `end_ns`."""

    begin_ns: int
    end_ns: int

    def conditions(self) -> list[str]:
        """SQL of the records, cut by microseconds."""
        begin, end = -(-self.begin_ns // NS_PER_US), -(-self.end_ns // NS_PER_US)
        return [f"time >= to_timestamp_micros({begin})", f"time < to_timestamp_micros({end})"]


@dataclass(frozen=True, slots=True)
class FoundLines:
    """What a query of lines returns."""

    lines: list[LogLine]
    read_count: int


def batches_of(read: ReadRows, sql: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query. `TooLarge` if there are more than a query may return."""
    with read(sql) as result:
        yield from result
        if result.is_cut:
            raise TooLarge(
                f"the query reads more than {result.returned_count} lines, the limit "
                "query.rows_max; narrow the time or the selector, filter lines before parsing "
                "them, or sum without parsers"
            )


def find_lines(
    read: ReadRows,
    selection: LogSelection,
    span: LineSpan,
    *,
    limit: int,
    is_newest: bool,
    extra: Sequence[str] = (),
) -> FoundLines:
    """Return the newest or oldest lines that pass the pipeline."""
    lowering = lowered(selection)
    conditions = [*span.conditions(), *lowering.conditions, *extra]
    steps = [] if lowering.is_exact else compile_stages(selection.stages)
    found: list[LogLine] = []
    size = limit if lowering.is_exact else max(limit, PAGE_ROWS)
    read_count = 0
    after: list[str] = []
    while True:
        page_count, last = 0, None
        for row in _page(read, [*conditions, *after], size, is_newest=is_newest):
            page_count, last = page_count + 1, row
            line = line_of(row)
            if passes(line, steps):
                found.append(line)
                if len(found) == limit:
                    return FoundLines(found, read_count + page_count)
        read_count += page_count
        if page_count < size:
            return FoundLines(found, read_count)
        if read_count >= LINES_READ_MAX:
            raise TooLarge(
                f"{read_count} lines were read, and only {len(found)} pass the pipeline; narrow "
                "the time or the selector, or add a line filter"
            )
        assert last is not None, "a full page has a last row"
        after = Cursor.of(last).after(is_descending=is_newest)
        size = min(PAGE_ROWS_MAX, size * PAGE_GROWTH)


LINE_SQL = f"time, {column_list(PLACE)}, {TIME_NS} AS time_ns, body, {column_list(LABEL_COLUMNS)}"


def _page(
    read: ReadRows, conditions: Sequence[str], size: int, *, is_newest: bool
) -> Iterator[dict[str, Any]]:
    sql = (
        f"SELECT {LINE_SQL} FROM logs {where(conditions)} "
        f"ORDER BY {Cursor.order(is_descending=is_newest)} LIMIT {size}"
    )
    for batch in batches_of(read, sql):
        for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield from batch.slice(begin, ROWS_AT_ONCE).to_pylist()


def line_of(row: dict[str, Any]) -> LogLine:
    stream, metadata = labels_of(row)
    return LogLine(row["time_ns"], row["body"] or "", stream, metadata)

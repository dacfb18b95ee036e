"""Tail: the new rows of a table, each once.

    watermarks of the hot tier ─> next_sql ─> rows ─> advance ─> TailRows
                                  count_sql, if there are more rows than the limit

A tail runs nothing itself: it returns SQL and keeps its position. It reads only below the
watermarks, where rows do not change, so neither the time of the query nor a move of the rows to
the lake matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import Unknown
from frazil.model.arrow import TABLES
from frazil.query.search.filters import Ask, bounded, where

LIMIT_MAX = 10_000
"""Rows per poll, all in memory."""
TABLES_WITH_TAIL = ("logs", "spans", "metrics")

_ORDER = ("ingest_time", "_log_partition", "_offset", "_row")


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRows:
    """The newest rows since the last poll, in order of arrival."""

    rows: pa.Table
    skipped_count: int  # earlier matching rows that exceeded the limit


class Tail:
    """The new rows of one table that match some conditions. Owned by one thread.

    `start` has the watermarks to begin at. New partitions begin with their first row.
    """

    def __init__(
        self,
        table: str,
        conditions: Sequence[str] = (),
        *,
        start: Mapping[int, int],
        columns: str = "*",
        limit: int = 200,
    ) -> None:
        if table not in TABLES_WITH_TAIL:
            raise Unknown(f"{table} has no live tail; use one of {', '.join(TABLES_WITH_TAIL)}")
        self._table = table
        self._conditions = list(conditions)
        self._columns = _selected(table, columns)
        self._limit = bounded(limit, "limit", LIMIT_MAX)
        self._begin = dict(start)
        self._end = dict(start)

    @property
    def watermarks(self) -> dict[int, int]:
        """First offset of each partition that was not returned yet."""
        return dict(self._begin)

    def next_sql(self, watermarks: Mapping[int, int]) -> str | None:
        """SQL for new rows below these watermarks; None if there are none. Pass the rows to
        `advance`; until then the start stays the same."""
        for partition, watermark in watermarks.items():
            self._end[partition] = max(watermark, self._begin.get(partition, 0))
        if not self._ranges():
            return None
        order = ", ".join(f"{column} DESC" for column in _ORDER)
        return (
            f"SELECT {self._columns} FROM {self._table} {self._where()} ORDER BY {order} "
            f"LIMIT {self._limit + 1}"
        )

    def count_sql(self) -> str:
        """SQL for the number of rows in the range of the last `next_sql`."""
        return f"SELECT count(*) AS count FROM {self._table} {self._where()}"

    def is_cut(self, rows: pa.Table) -> bool:
        """Return whether there are more rows than the limit, so that `count_sql` is needed."""
        return bool(rows.num_rows > self._limit)

    def advance(self, rows: pa.Table, count: int | None = None) -> TailRows:
        """Convert the rows of `next_sql` and move past them. If `is_cut`, `count` is the result of
        `count_sql`."""
        is_cut = self.is_cut(rows)
        assert is_cut == (count is not None), "pass count if, and only if, rows were cut"
        newest = rows.slice(0, self._limit)
        self._begin = {**self._begin, **self._end}
        return TailRows(
            rows=newest.take(pa.array(range(newest.num_rows - 1, -1, -1), pa.int64())),
            skipped_count=0 if count is None else count - newest.num_rows,
        )

    def poll(self, ask: Ask, watermarks: Mapping[int, int]) -> TailRows | None:
        """Run one poll; None if there are no new rows. After an error, poll again."""
        sql = self.next_sql(watermarks)
        if sql is None:
            return None
        rows = ask(sql)
        count = ask(self.count_sql())["count"][0].as_py() if self.is_cut(rows) else None
        return self.advance(rows, count)

    def _ranges(self) -> list[tuple[int, int, int]]:
        """Partition, first offset and end offset of new rows."""
        ranges = [(p, self._begin.get(p, 0), end) for p, end in sorted(self._end.items())]
        return [(p, begin, end) for p, begin, end in ranges if begin < end]

    def _where(self) -> str:
        ranges = [
            f"(_log_partition = {int(partition)} AND _offset >= {int(begin)} "
            f"AND _offset < {int(end)})"
            for partition, begin, end in self._ranges()
        ]
        joined = " OR ".join(ranges)
        return where([f"({joined})", *self._conditions])


def _selected(table: str, columns: str) -> str:
    """Add the columns that define the order."""
    if columns == "*":
        return "*"
    names = [name.strip() for name in columns.split(",")]
    unknown = [name for name in names if name not in TABLES[table].names]
    if unknown:
        raise Unknown(f"no column {unknown[0]} in {table}")
    return ", ".join(f'"{name}"' for name in dict.fromkeys([*names, *_ORDER]))

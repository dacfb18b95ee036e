"""Tail: the rows of a table as they come, each once.

    watermarks of the hot tier ─> next_sql ─> rows ─> advance ─> what to show
                                  count_sql, when there were more rows than can be shown

A tail does nothing itself: it says what to ask, and remembers how far it has come. What it asks
for lies below the watermarks, where nothing changes any more; so it does not matter when the
answer comes, nor whether the rows have moved to the lake meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import Unknown
from frazil.model.arrow import TABLES
from frazil.query.search.filters import Ask, where, whole

LIMIT_MAX = 10_000
"""Rows of one catch. Nobody reads more of them at once, and all are in memory."""
TAILED = ("logs", "spans", "metrics")

_ORDER = ("ingest_time", "_log_partition", "_offset", "_row")


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRows:
    """What has come since the last time: the newest rows, in the order they came in."""

    rows: pa.Table
    skipped_count: int
    """How many that fit came before these, and are not shown: there were too many at once."""


class Tail:
    """The new rows of one table that fit some conditions. One thread drives it.

    `start` are the watermarks where it begins; rows below them are not shown. A partition that is
    not there yet begins with its first row.
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
        if table not in TAILED:
            raise Unknown(f"{table} cannot be followed by a tail; use one of {', '.join(TAILED)}")
        self._table = table
        self._conditions = list(conditions)
        self._columns = _selected(table, columns)
        self._limit = whole(limit, "limit", LIMIT_MAX)
        self._begin = dict(start)
        self._end = dict(start)

    @property
    def watermarks(self) -> dict[int, int]:
        """The first offset of each partition that this tail has not shown yet."""
        return dict(self._begin)

    def next_sql(self, watermarks: Mapping[int, int]) -> str | None:
        """What to ask for the rows that became visible below these watermarks; None when there is
        nothing new. The rows are for `advance`; until then it is the same stretch that is asked
        for, up to the watermarks given last."""
        for partition, watermark in watermarks.items():
            self._end[partition] = max(watermark, self._begin.get(partition, 0))
        if not self._stretches():
            return None
        order = ", ".join(f"{column} DESC" for column in _ORDER)
        return (
            f"SELECT {self._columns} FROM {self._table} {self._where()} ORDER BY {order} "
            f"LIMIT {self._limit + 1}"
        )

    def count_sql(self) -> str:
        """What to ask for how many rows there are in the stretch that was asked for last."""
        return f"SELECT count(*) AS count FROM {self._table} {self._where()}"

    def is_cut(self, rows: pa.Table) -> bool:
        """Must they be counted, as there are more than can be shown?"""
        return bool(rows.num_rows > self._limit)

    def advance(self, rows: pa.Table, count: int | None = None) -> TailRows:
        """What the last `next_sql` gave, as something to show; those rows never come again. Where
        `is_cut` says so, `count` is what `count_sql` gave."""
        is_cut = self.is_cut(rows)
        assert is_cut == (count is not None), "rows are counted when they are cut"
        shown = rows.slice(0, self._limit)
        self._begin = {**self._begin, **self._end}
        return TailRows(
            rows=shown.take(pa.array(range(shown.num_rows - 1, -1, -1), pa.int64())),
            skipped_count=0 if count is None else count - shown.num_rows,
        )

    def poll(self, ask: Ask, watermarks: Mapping[int, int]) -> TailRows | None:
        """All of it at once; None when there is nothing new. After an error it is as if nobody had
        asked."""
        sql = self.next_sql(watermarks)
        if sql is None:
            return None
        rows = ask(sql)
        count = ask(self.count_sql())["count"][0].as_py() if self.is_cut(rows) else None
        return self.advance(rows, count)

    def _stretches(self) -> list[tuple[int, int, int]]:
        """Partition, first offset and end of what is new, where there is something."""
        stretches = [(p, self._begin.get(p, 0), end) for p, end in sorted(self._end.items())]
        return [stretch for stretch in stretches if stretch[1] < stretch[2]]

    def _where(self) -> str:
        stretches = [
            f"(_log_partition = {int(partition)} AND _offset >= {int(begin)} "
            f"AND _offset < {int(end)})"
            for partition, begin, end in self._stretches()
        ]
        joined = " OR ".join(stretches)
        return where([f"({joined})", *self._conditions])


def _selected(table: str, columns: str) -> str:
    """The columns, with those that tell the order."""
    if columns == "*":
        return "*"
    names = [name.strip() for name in columns.split(",")]
    unknown = [name for name in names if name not in TABLES[table].names]
    if unknown:
        raise Unknown(f"no column {unknown[0]} in {table}")
    return ", ".join(f'"{name}"' for name in dict.fromkeys([*names, *_ORDER]))

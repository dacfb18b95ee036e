"""Pages: cursors for jumping in a long list of log records."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.model import doc
from frazil.query.search.cursor import Cursor
from frazil.query.search.filters import MICROSECOND, Ask, TimeRange, bounded, where
from frazil.query.telemetry.logs import LogFilter, Order, conditions_of

ROWS_MAX = 1_000_000
"""Records whose keys are read at once, the default of `query.rows_max`."""
EVERY_MAX = 1000
PARTS = 1000
"""Time ranges that are counted to find the first `ROWS_MAX` records."""

_KEYS = ("time", "_log_partition", "_offset", "_row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Page boundaries in a list of log records."""

    count: Annotated[int, doc("Total number of records.")]
    every: int
    cursors: Annotated[
        tuple[str, ...],
        doc("Element n is the `after` of the page that follows (n + 1) * every records."),
    ]
    is_cut: Annotated[bool, doc("True above 1,000,000 records; no cursors beyond.")]


def log_pages(
    ask: Ask, *, every: int = EVERY_MAX, order: Order = "newest", **which: Unpack[LogFilter]
) -> Pages:
    """Return a cursor after every `every` matching records. Takes one scan of four columns and
    one count."""
    bounded(every, "every", EVERY_MAX)
    is_newest = order == "newest"
    conditions = conditions_of(**which)
    totals = ask(
        f"SELECT count(*) AS count, min(time) AS since, max(time) AS until "
        f"FROM logs {where(conditions)}"
    ).to_pylist()[0]
    is_cut = totals["count"] > ROWS_MAX
    if is_cut:
        time_range = (totals["since"], totals["until"] + MICROSECOND)
        conditions += _first(ask, conditions, time_range, is_newest=is_newest).conditions()
    keys = ask(f"SELECT {', '.join(_KEYS)} FROM logs {where(conditions)}")
    end = keys.num_rows - (0 if is_cut else 1)  # no page follows the last record
    cursors = _every(keys, every, end, is_newest=is_newest)
    return Pages(
        count=totals["count"] if is_cut else keys.num_rows,
        every=every,
        cursors=tuple(map(str, cursors)),
        is_cut=is_cut,
    )


def _every(keys: pa.Table, every: int, end: int, *, is_newest: bool) -> list[Cursor]:
    """Cursor of the last record of each page before `end`."""
    columns = [_numbers(keys, name) for name in _KEYS]
    order = np.lexsort(columns[::-1])
    chosen = (order[::-1] if is_newest else order)[every - 1 : max(end, 0) : every]
    picked = [column[chosen].tolist() for column in columns]
    return [
        Cursor(time_us=time_us, partition=partition, offset=offset, row=row)
        for time_us, partition, offset, row in zip(*picked, strict=True)
    ]


def _numbers(keys: pa.Table, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = keys[name].cast(pa.int64()).to_numpy()
    return numbers


def _first(
    ask: Ask,
    conditions: Sequence[str],
    time_range: tuple[datetime.datetime, datetime.datetime],
    *,
    is_newest: bool,
) -> TimeRange:
    """Return the newest, or oldest, time range with at most `ROWS_MAX` records.

    The range is split into parts, which are counted; a part that is too large is split again, down
    to single microseconds.
    """
    since, until = time_range
    left = ROWS_MAX
    edge = until if is_newest else since
    while True:
        step = max(MICROSECOND, (until - since) // PARTS)
        parts = _parts(ask, [*conditions, *TimeRange(since=since, until=until).conditions()], step)
        for begin, count in sorted(parts, reverse=is_newest):
            if count > left:
                since, until = max(since, begin), min(until, begin + step)
                break
            left -= count
            edge = max(since, begin) if is_newest else min(until, begin + step)
        else:
            break
        if step == MICROSECOND:
            break
    return TimeRange(since=edge) if is_newest else TimeRange(until=edge)


def _parts(
    ask: Ask, conditions: Sequence[str], step: datetime.timedelta
) -> list[tuple[datetime.datetime, int]]:
    """Count the records of each step."""
    rows = ask(
        f"SELECT date_bin(INTERVAL '{step // MICROSECOND} microseconds', time) AS begin, "
        f"count(*) AS count FROM logs {where(conditions)} GROUP BY 1"
    ).to_pylist()
    return [(row["begin"], row["count"]) for row in rows]

"""Pages: places in a long list of log records, so that one can jump anywhere in it."""

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
from frazil.query.search.filters import MICROSECOND, Ask, TimeRange, where, whole
from frazil.query.telemetry.logs import LogFilter, Order, conditions_of

ROWS_MAX = 1_000_000
"""Records whose places are read at once: what `query.rows_max` allows."""
EVERY_MAX = 1000
PARTS = 1000
"""Into so many the time of more records is cut, to find where the first of them end."""

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
    """Every so many places among the log records that fit, in this order. One scan of four
    columns, and one more to count."""
    whole(every, "every", EVERY_MAX)
    is_newest = order == "newest"
    conditions = conditions_of(**which)
    known = ask(
        f"SELECT count(*) AS count, min(time) AS since, max(time) AS until "
        f"FROM logs {where(conditions)}"
    ).to_pylist()[0]
    is_cut = known["count"] > ROWS_MAX
    if is_cut:
        stretch = (known["since"], known["until"] + MICROSECOND)
        conditions += _first(ask, conditions, stretch, is_newest=is_newest).conditions()
    keys = ask(f"SELECT {', '.join(_KEYS)} FROM logs {where(conditions)}")
    end = keys.num_rows - (0 if is_cut else 1)  # behind the very last record there is no page
    places = _every(keys, every, end, is_newest=is_newest)
    return Pages(
        count=known["count"] if is_cut else keys.num_rows,
        every=every,
        cursors=tuple(map(str, places)),
        is_cut=is_cut,
    )


def _every(keys: pa.Table, every: int, end: int, *, is_newest: bool) -> list[Cursor]:
    """The last record of each page, of those before `end`."""
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
    stretch: tuple[datetime.datetime, datetime.datetime],
    *,
    is_newest: bool,
) -> TimeRange:
    """From which time on, or up to which, there are as many records as can be read at once.

    The time is cut into parts, which are counted; if the first one alone has too many, it is cut
    again, down to single microseconds.
    """
    since, until = stretch
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
    """How many records there are from each of these times on."""
    rows = ask(
        f"SELECT date_bin(INTERVAL '{step // MICROSECOND} microseconds', time) AS begin, "
        f"count(*) AS count FROM logs {where(conditions)} GROUP BY 1"
    ).to_pylist()
    return [(row["begin"], row["count"]) for row in rows]

"""Questions about volume: how much each service sends."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Literal

from frazil.errors import TooLarge
from frazil.model import doc
from frazil.query.search.filters import ALWAYS, Ask, TimeRange, micros_of, where

Signal = Literal["logs", "spans", "metrics"]
SIGNALS: tuple[Signal, ...] = ("logs", "spans", "metrics")
ROWS_MAX = 100_000
"""Of one signal: a hundred services in a thousand steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Rows of one signal that a service sent, in total or in one time step."""

    service: str
    signal: Signal
    row_count: int
    time: Annotated[datetime.datetime | None, doc("Start of the step.")] = None


def volumes(
    ask: Ask, *, within: TimeRange = ALWAYS, step: datetime.timedelta | None = None
) -> list[Volume]:
    """Rows by service and signal, the most first; with a `step` also by time, oldest first. Steps
    begin at whole multiples since 1970, and those without rows are left out."""
    found = [volume for signal in SIGNALS for volume in _of(ask, signal, within, step)]
    if step is None:
        return sorted(found, key=lambda one: (-one.row_count, one.service, one.signal))
    return sorted(found, key=lambda one: (one.time, one.service, one.signal))


def _of(
    ask: Ask, signal: Signal, within: TimeRange, step: datetime.timedelta | None
) -> list[Volume]:
    time = ""
    if step is not None:
        time = f"date_bin(INTERVAL '{micros_of(step)} microseconds', time) AS time, "
    rows = ask(
        f"SELECT {time}service_name AS service, count(*) AS row_count FROM {signal} "
        f"{where(within.conditions())} GROUP BY {'1, 2' if time else '1'} LIMIT {ROWS_MAX + 1}"
    )
    if rows.num_rows > ROWS_MAX:
        raise TooLarge(
            f"{signal} have more than {ROWS_MAX} services and steps; take a longer step, or a "
            "shorter time"
        )
    return [Volume(signal=signal, **row) for row in rows.to_pylist()]

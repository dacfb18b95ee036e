"""Volume: rows sent by each service."""

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
"""Rows per signal: 100 services in 1000 steps."""


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
    """Count rows by service and signal, largest first; with `step` also by time, oldest first.
    Steps are aligned to 1970; empty ones are omitted."""
    counts = [volume for signal in SIGNALS for volume in _of(ask, signal, within, step)]
    if step is None:
        return sorted(counts, key=lambda v: (-v.row_count, v.service, v.signal))
    return sorted(counts, key=lambda v: (v.time, v.service, v.signal))


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
            f"{signal} have more than {ROWS_MAX} services and steps; use a longer step or a "
            "shorter range"
        )
    return [Volume(signal=signal, **row) for row in rows.to_pylist()]

"""Increments: increases of counters from one point to the next.

A stream has all points with the same attributes, resource, scope and start time: one counter of one
sender since one start. Its points are running totals (cumulative) or increases (delta).

    delta           the value of the point
    cumulative      the difference to the previous point
    total decreased the counter was reset: the value of the point
    first point     its value if the stream started within the time read; otherwise nothing,
                    because it may count older events

"Started within the time read": the start time is not before the first time that was read, and is
before the time of the point. A start equal to the time of the point means an unknown start; such a
point is only a base for the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
NS_PER_US = 1_000
NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points of many streams, unordered."""

    stream: Integers  # index of the stream
    time_us: Integers
    offset: Integers
    row: Integers
    """Position in the log, which orders points with the same time."""
    total: Floats
    """A decrease means that the counter was reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Increments:
    """Indexes of points and of the points they are compared with, or `NONE`."""

    later: Integers
    earlier: Integers

    def of(self, values: NDArray[np.generic]) -> Floats:
        """Return the increases of a value. NaN in either point gives NaN."""
        numbers = values.astype(np.float64)
        before = np.where(self.earlier == NONE, 0.0, numbers[self.earlier])
        return numbers[self.later] - before


def increments_of(
    points: Points, *, start_ns: Integers, is_delta: NDArray[np.bool_], read_us: int
) -> Increments:
    """Compute the increments. `start_ns` and `is_delta` are by stream; `read_us` is the first time
    that was read."""
    order = np.lexsort((points.row, points.offset, points.time_us, points.stream))
    stream, total, time_us = points.stream[order], points.total[order], points.time_us[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = stream[1:] != stream[:-1]
    fell = np.zeros(len(order), np.bool_)
    fell[1:] = total[1:] < total[:-1]
    start = start_ns[stream]
    began = (start >= read_us * NS_PER_US) & (start < time_us * NS_PER_US)
    is_whole = is_delta[stream] | fell | is_first
    counts = is_delta[stream] | ~is_first | began
    before = np.roll(order, 1)
    return Increments(
        later=order[counts], earlier=np.where(is_whole, NONE, before)[counts].astype(np.int64)
    )

"""Increments: how much counters grew from one point to the next.

A stream is what one sender counts from one start on: all points with the same attributes, resource,
scope and start time. Its points say a running total (cumulative) or what is new in each (delta).

    delta          every point counts as it is
    cumulative     a point counts as much as it is more than the one before it
    its total fell it began anew in between: the point counts as it is
    its first one  counts as it is if the stream began while we were looking, and counts nothing
                   if not: nobody knows how much of it is older

"Began while we were looking": the start time is not before the first time that was read, and is
before the time of the point. A point whose start is its own time says by that that its start is
not known, so it only is what the next one is compared with.
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
    """Points of many streams, in no order."""

    stream: Integers
    """The number of the stream that a point belongs to."""
    time_us: Integers
    offset: Integers
    row: Integers
    """Where in the log it is: of points with the same time, the later one counts as later."""
    total: Floats
    """What tells whether a stream began anew: a total falls then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Increments:
    """Which points count, and what each is compared with: places among the points, or `NONE`."""

    later: Integers
    earlier: Integers

    def of(self, values: NDArray[np.generic]) -> Floats:
        """How much some value of the points grew. A NaN in either of them stays one."""
        numbers = values.astype(np.float64)
        before = np.where(self.earlier == NONE, 0.0, numbers[self.earlier])
        return numbers[self.later] - before


def increments_of(
    points: Points, *, start_ns: Integers, is_delta: NDArray[np.bool_], read_us: int
) -> Increments:
    """What counts of some points. `start_ns` and `is_delta` are of streams; points were read from
    `read_us` on."""
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

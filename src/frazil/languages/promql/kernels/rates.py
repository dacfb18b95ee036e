"""rate, increase, delta, irate and idelta over the points that each step sees."""

from __future__ import annotations

import numpy as np

from frazil.languages.promql.kernels.arrays import Floats, Grid, Longs
from frazil.model.protobuf import compiled

EXTRAPOLATED_INTERVALS = 1.1
"""A window is extended to its edge if that is at most so many intervals from the points."""


@compiled
def stretched(
    first_ms: int, last_ms: int, points: int, start_ms: int, end_ms: int, gain: float, low: float
) -> float:
    """By which factor the gain between the points grows to that of the whole window. Below a
    `low` that is not negative the counter cannot have been."""
    to_start = (first_ms - start_ms) / 1000.0
    to_end = (end_ms - last_ms) / 1000.0
    sampled = (last_ms - first_ms) / 1000.0
    interval = sampled / (points - 1)
    threshold = interval * EXTRAPOLATED_INTERVALS
    if to_start >= threshold:
        to_start = interval / 2
    if gain > 0 and low >= 0:
        to_start = min(to_start, sampled * (low / gain))
    if to_end >= threshold:
        to_end = interval / 2
    return (sampled + to_start + to_end) / sampled


@compiled
def next_resets(begins: Longs, stops: Longs, values: Floats) -> Longs:
    """By point, the next one of its series that is less than the point before it."""
    found = np.empty(len(values), np.int64)
    for row in range(len(begins)):
        after = stops[row]
        for at in range(stops[row] - 1, begins[row] - 1, -1):
            if at > begins[row] and values[at] < values[at - 1]:
                after = at
            found[at] = after
    return found


@compiled
def extrapolated(
    first: Longs,
    last: Longs,
    times: Longs,
    values: Floats,
    resets: Longs,
    ends: Longs,
    range_ms: int,
    is_counter: bool,
    is_rate: bool,
) -> Grid:
    """The gain in each window, extended to its edges."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    present = np.zeros((rows, steps), np.bool_)
    for row in range(rows):
        for step in range(steps):
            low, high = first[row, step], last[row, step]
            if high - low < 2:
                continue
            gain = values[high - 1] - values[low]
            if is_counter:
                reset = resets[low + 1]
                while reset < high:
                    gain += values[reset - 1]
                    reset = resets[reset + 1] if reset + 1 < high else high
            factor = stretched(
                times[low],
                times[high - 1],
                high - low,
                ends[step] - range_ms,
                ends[step],
                gain,
                values[low] if is_counter else -1.0,
            )
            if is_rate:
                factor /= range_ms / 1000.0
            found[row, step] = gain * factor
            present[row, step] = True
    return found, present


@compiled
def between_last_two(
    first: Longs, last: Longs, times: Longs, values: Floats, is_counter: bool
) -> Grid:
    """The difference of the last two points, or per second for a counter."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    present = np.zeros((rows, steps), np.bool_)
    for row in range(rows):
        for step in range(steps):
            at = last[row, step] - 1
            if at - first[row, step] < 1:
                continue
            gain = values[at] - values[at - 1]
            if is_counter and values[at] < values[at - 1]:
                gain = values[at]
            if is_counter:
                gain /= (times[at] - times[at - 1]) / 1000.0
            found[row, step] = gain
            present[row, step] = True
    return found, present

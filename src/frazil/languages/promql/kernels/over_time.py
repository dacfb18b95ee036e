"""What the functions named ..._over_time say of the points that each step sees."""

from __future__ import annotations

import math

import numpy as np

from frazil.languages.promql.kernels.arrays import Floats, Longs
from frazil.languages.promql.kernels.sums import add_exactly, quantile_of
from frazil.model.protobuf import compiled


@compiled
def sums(first: Longs, last: Longs, values: Floats) -> Floats:
    """The sum of the points."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            total = rest = 0.0
            for at in range(first[row, step], last[row, step]):
                total, rest = add_exactly(values[at], total, rest)
            found[row, step] = total if math.isinf(total) else total + rest
    return found


@compiled
def means(first: Longs, last: Longs, values: Floats) -> Floats:
    """The mean of the points, also where their sum is too large for a number."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            low, high = first[row, step], last[row, step]
            if high == low:
                continue
            total, rest = values[low], 0.0
            is_running = False
            for at in range(low + 1, high):
                count = at - low + 1.0
                if not is_running:
                    sum_, left = add_exactly(values[at], total, rest)
                    if not math.isinf(sum_):
                        total, rest = sum_, left
                        continue
                    is_running = True
                    total, rest = total / (count - 1), rest / (count - 1)
                share = (count - 1) / count
                total, rest = add_exactly(values[at] / count, share * total, share * rest)
            points = 1.0 if is_running else float(high - low)
            found[row, step] = total / points + rest / points
    return found


@compiled
def extremes(first: Longs, last: Longs, values: Floats, sign: float, is_later: bool) -> Longs:
    """The place of the greatest value times `sign`, of the later of two equal ones if wanted; a
    NaN only if there is nothing else."""
    rows, steps = first.shape
    found = np.zeros((rows, steps), np.int64)
    for row in range(rows):
        for step in range(steps):
            best = first[row, step]
            for at in range(first[row, step], last[row, step]):
                new, old = sign * values[at], sign * values[best]
                if math.isnan(old) or new > old or (is_later and new == old):
                    best = at
            found[row, step] = best
    return found


@compiled
def variances(first: Longs, last: Longs, values: Floats) -> Floats:
    """The variance of the points."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            count = 0.0
            mean = mean_rest = squares = squares_rest = 0.0
            for at in range(first[row, step], last[row, step]):
                count += 1
                delta = values[at] - (mean + mean_rest)
                mean, mean_rest = add_exactly(delta / count, mean, mean_rest)
                square = delta * (values[at] - (mean + mean_rest))
                squares, squares_rest = add_exactly(square, squares, squares_rest)
            if count > 0:
                found[row, step] = (squares + squares_rest) / count
    return found


@compiled
def quantiles(first: Longs, last: Longs, values: Floats, q: Floats) -> Floats:
    """A quantile of the points, by step."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            found[row, step] = quantile_of(q[step], values[first[row, step] : last[row, step]])
    return found


@compiled
def median_deviations(first: Longs, last: Longs, values: Floats) -> Floats:
    """The median distance from the median."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            window = values[first[row, step] : last[row, step]]
            if np.isnan(window).any():
                found[row, step] = math.nan
            elif len(window) > 0:
                found[row, step] = quantile_of(0.5, np.abs(window - quantile_of(0.5, window)))
    return found


@compiled
def change_counts(first: Longs, last: Longs, values: Floats, only_falls: bool) -> Floats:
    """How often the value changes, or falls."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            count = 0
            for at in range(first[row, step] + 1, last[row, step]):
                new, old = values[at], values[at - 1]
                if only_falls:
                    count += new < old
                else:
                    count += new != old and not (math.isnan(new) and math.isnan(old))
            found[row, step] = count
    return found


@compiled
def regressions(
    first: Longs, last: Longs, times: Longs, values: Floats, zero_ms: Longs
) -> tuple[Floats, Floats]:
    """The slope per second of the line through the points, and its value at `zero_ms`, or at the
    first point if that is negative."""
    rows, steps = first.shape
    slopes = np.zeros((rows, steps))
    values_at_zero = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            low, high = first[row, step], last[row, step]
            if high - low < 2:
                continue
            zero = zero_ms[step] if len(zero_ms) > 0 else times[low]
            x = x_rest = y = y_rest = xy = xy_rest = xx = xx_rest = 0.0
            is_flat = True
            for at in range(low, high):
                is_flat = is_flat and values[at] == values[low]
                second = (times[at] - zero) / 1000.0
                x, x_rest = add_exactly(second, x, x_rest)
                y, y_rest = add_exactly(values[at], y, y_rest)
                xy, xy_rest = add_exactly(second * values[at], xy, xy_rest)
                xx, xx_rest = add_exactly(second * second, xx, xx_rest)
            if is_flat:
                is_endless = math.isinf(values[low])
                slopes[row, step] = math.nan if is_endless else 0.0
                values_at_zero[row, step] = math.nan if is_endless else values[low]
                continue
            count = float(high - low)
            x, y, xy, xx = x + x_rest, y + y_rest, xy + xy_rest, xx + xx_rest
            covariance = xy - x * y / count
            variance = xx - x * x / count
            slope = covariance / variance if variance != 0 else math.nan
            slopes[row, step] = slope
            values_at_zero[row, step] = y / count - slope * x / count
    return slopes, values_at_zero


@compiled
def smoothed(first: Longs, last: Longs, values: Floats, smoothing: Floats, trend: Floats) -> Floats:
    """The last value, smoothed twice exponentially."""
    rows, steps = first.shape
    found = np.zeros((rows, steps))
    for row in range(rows):
        for step in range(steps):
            low, high = first[row, step], last[row, step]
            if high - low < 2:
                continue
            before, level = 0.0, values[low]
            slope = values[low + 1] - values[low]
            for at in range(low + 1, high):
                if at > low + 1:
                    slope = trend[step] * (level - before) + (1 - trend[step]) * slope
                rest = (1 - smoothing[step]) * (level + slope)
                before, level = level, smoothing[step] * values[at] + rest
            found[row, step] = level
    return found

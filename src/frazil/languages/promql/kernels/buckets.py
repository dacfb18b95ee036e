"""Quantiles and fractions of classic histograms: series of counts up to a bound."""

from __future__ import annotations

import math

import numpy as np

from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs
from frazil.model.protobuf import compiled, part

TOLERANCE = 1e-12
"""Counts that differ by less, relatively, are the same count."""
_TINY = 2.2250738585072014e-308


@part
def _gathered(
    low: int,
    high: int,
    bounds: Floats,
    values: Floats,
    present: Flags,
    step: int,
    tops: Floats,
    counts: Floats,
) -> int:
    """The buckets of a histogram that a step has; those of one bound become one."""
    size = 0
    for row in range(low, high):
        if not present[row, step]:
            continue
        if size > 0 and tops[size - 1] == bounds[row]:
            counts[size - 1] += values[row, step]
        else:
            tops[size] = bounds[row]
            counts[size] = values[row, step]
            size += 1
    return size


@part
def _is_same(one: float, other: float) -> bool:
    if one == other:
        return True
    total = abs(one) + abs(other)
    apart = abs(one - other)
    if one == 0 or other == 0 or total < _TINY:
        return apart < TOLERANCE * _TINY
    return apart / min(total, 1.7976931348623157e308) < TOLERANCE


@part
def _made_rising(size: int, tops: Floats, counts: Floats, fix: Floats) -> None:
    """Raise counts below the one before. `fix`: from which bound, to which, and by how much."""
    fix[0], fix[1], fix[2] = math.inf, -math.inf, 0.0
    before = counts[0]
    for at in range(1, size):
        count = counts[at]
        if _is_same(before, count):
            counts[at] = before
        elif count < before:
            counts[at] = before
            fix[0] = min(fix[0], tops[at])
            fix[1] = max(fix[1], tops[at])
            fix[2] = max(fix[2], before - count)
        else:
            before = count


@part
def _quantile(q: float, size: int, tops: Floats, counts: Floats) -> float:
    total = counts[size - 1]
    if size < 2 or total == 0 or math.isnan(total):
        return math.nan
    rank = q * total
    at = 0
    while at < size - 1 and not counts[at] >= rank:
        at += 1
    if at == size - 1:
        return float(tops[size - 2])
    if at == 0 and tops[0] <= 0:
        return float(tops[0])
    bottom, count = 0.0, counts[at]
    if at > 0:
        bottom = tops[at - 1]
        count -= counts[at - 1]
        rank -= counts[at - 1]
    if count == 0:
        return math.nan
    return float(bottom + (tops[at] - bottom) * (rank / count))


@compiled
def bucket_quantiles(
    starts: Longs, bounds: Floats, values: Floats, present: Flags, q: Floats
) -> tuple[Floats, Flags, Floats]:
    """A quantile of each histogram, by step. NativeHistogram `i` has the rows `starts[i]` to
    `starts[i + 1]`, by bound. Also how falling counts were raised: NaN where they were not."""
    histograms, steps = len(starts) - 1, values.shape[1]
    found = np.zeros((histograms, steps))
    exists = np.zeros((histograms, steps), np.bool_)
    fixes = np.full((histograms, steps, 3), math.nan)
    tops, counts, fix = np.empty(len(bounds)), np.empty(len(bounds)), np.empty(3)
    for row in range(histograms):
        for step in range(steps):
            size = _gathered(
                starts[row], starts[row + 1], bounds, values, present, step, tops, counts
            )
            if size == 0:
                continue
            exists[row, step] = True
            if math.isnan(q[step]):
                found[row, step] = math.nan
            elif q[step] < 0 or q[step] > 1:
                found[row, step] = math.copysign(math.inf, q[step] - 0.5)
            elif tops[size - 1] != math.inf:
                found[row, step] = math.nan
            else:
                _made_rising(size, tops, counts, fix)
                if fix[2] > 0:
                    fixes[row, step] = fix
                found[row, step] = _quantile(q[step], size, tops, counts)
    return found, exists, fixes


@part
def _rank(value: float, size: int, tops: Floats, counts: Floats) -> float:
    """How many observations are below a value, within a bucket in proportion."""
    bottom = -math.inf if tops[0] <= 0 else 0.0
    below = 0.0
    for at in range(size):
        if at > 0:
            bottom = tops[at - 1]
        if bottom >= value:
            return float(min(below, counts[size - 1]))
        if tops[at] > value:
            if bottom == -math.inf:
                return float(min(counts[at], counts[size - 1]))
            share = (value - bottom) / (tops[at] - bottom)
            return float(min(below + (counts[at] - below) * share, counts[size - 1]))
        below = counts[at]
    return float(counts[size - 1])


@compiled
def bucket_fractions(
    starts: Longs, bounds: Floats, values: Floats, present: Flags, lower: Floats, upper: Floats
) -> tuple[Floats, Flags]:
    """Which part of the observations of each histogram lies between two values."""
    histograms, steps = len(starts) - 1, values.shape[1]
    found = np.zeros((histograms, steps))
    exists = np.zeros((histograms, steps), np.bool_)
    tops, counts = np.empty(len(bounds)), np.empty(len(bounds))
    for row in range(histograms):
        for step in range(steps):
            size = _gathered(
                starts[row], starts[row + 1], bounds, values, present, step, tops, counts
            )
            if size == 0:
                continue
            exists[row, step] = True
            total = counts[size - 1]
            is_known = not (math.isnan(lower[step]) or math.isnan(upper[step]))
            if tops[size - 1] != math.inf or total == 0 or not is_known:
                found[row, step] = math.nan
            elif lower[step] < upper[step]:
                most = _rank(upper[step], size, tops, counts)
                least = _rank(lower[step], size, tops, counts)
                found[row, step] = (most - least) / total
    return found, exists

"""Sums that lose no digits, and quantiles of a few values."""

from __future__ import annotations

import math

import numpy as np

from frazil.languages.promql.kernels.arrays import Floats
from frazil.model.protobuf import part


@part
def add_exactly(value: float, total: float, rest: float) -> tuple[float, float]:
    """Neumaier's sum: `rest` is what the digits of `total` cannot hold."""
    sum_ = total + value
    if math.isinf(sum_):
        return sum_, 0.0
    if abs(total) >= abs(value):
        return sum_, rest + ((total - sum_) + value)
    return sum_, rest + ((value - sum_) + total)


@part
def quantile_of(q: float, values: Floats) -> float:
    """The quantile between neighbours of values, which are sorted here; NaN is the least."""
    count = len(values)
    if count == 0 or math.isnan(q):
        return math.nan
    if q < 0:
        return -math.inf
    if q > 1:
        return math.inf
    ordered = np.sort(values)
    missing = 0
    while missing < count and math.isnan(ordered[count - 1 - missing]):
        missing += 1
    rank = q * (count - 1)
    low = max(0, math.floor(rank))
    high = min(count - 1, low + 1)
    weight = rank - math.floor(rank)
    first = math.nan if low < missing else ordered[low - missing]
    second = math.nan if high < missing else ordered[high - missing]
    return first * (1 - weight) + second * weight

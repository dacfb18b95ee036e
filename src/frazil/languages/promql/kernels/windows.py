"""Which points a step sees."""

from __future__ import annotations

import numpy as np

from frazil.languages.promql.kernels.arrays import Longs
from frazil.model.protobuf import compiled


@compiled
def window_bounds(
    begins: Longs, stops: Longs, times: Longs, ends: Longs, range_ms: int
) -> tuple[Longs, Longs]:
    """By series and step, the first point after `end - range_ms` and the first after `end`. The
    ends do not fall; series `i` has the points `begins[i]` to `stops[i]`."""
    series, steps = len(begins), len(ends)
    first = np.empty((series, steps), np.int64)
    last = np.empty((series, steps), np.int64)
    for row in range(series):
        low = high = begins[row]
        stop = stops[row]
        for step in range(steps):
            end = ends[step]
            while high < stop and times[high] <= end:
                high += 1
            while low < high and times[low] <= end - range_ms:
                low += 1
            first[row, step] = low
            last[row, step] = high
    return first, last

"""Range aggregations over samples: what is in the window (t - range, t] of each step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from frazil.languages.logql.series import Flags, Floats, LogSteps
from frazil.languages.logql.syntax import LogRange
from frazil.languages.logql.units import NS_PER_S

Times = NDArray[np.int64]
Ends = NDArray[np.intp]


def over_windows(
    aggregation: LogRange, grid: LogSteps, times_ns: Times, values: Floats
) -> tuple[Floats, Flags]:
    """Return a value for each step, and whether there is one. Samples are sorted by time."""
    ends_ns = grid.times_ns() - aggregation.offset_ns
    begins = np.searchsorted(times_ns, ends_ns - aggregation.range_ns, side="right")
    ends = np.searchsorted(times_ns, ends_ns, side="right")
    is_present = ends > begins
    seconds = aggregation.range_ns / NS_PER_S
    operation = aggregation.operation
    if operation == "rate_counter":
        return _rate_counter(aggregation, ends_ns, begins, ends, times_ns, values)
    if operation == "quantile_over_time":
        assert aggregation.parameter is not None, "the parser requires it"
        level = aggregation.parameter
        return _each(begins, ends, values, lambda window: quantile(window, level)), is_present
    if operation in _EACH:
        return _each(begins, ends, values, _EACH[operation]), is_present
    result = _WINDOWS[operation](begins, ends, values)
    if operation in ("rate", "bytes_rate"):
        result /= seconds
    return result, is_present


def _counts(begins: Ends, ends: Ends, _: Floats) -> Floats:
    return (ends - begins).astype(np.float64)


def _sums(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return _reduced(np.add, begins, ends, values)


def _means(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return np.asarray(_sums(begins, ends, values) / np.maximum(ends - begins, 1))


def _least(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return _reduced(np.minimum, begins, ends, values)


def _most(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return _reduced(np.maximum, begins, ends, values)


def _first(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return np.where(ends > begins, values[np.minimum(begins, len(values) - 1)], 0.0)


def _last(begins: Ends, ends: Ends, values: Floats) -> Floats:
    return np.where(ends > begins, values[np.maximum(ends - 1, 0)], 0.0)


_WINDOWS: dict[str, Callable[[Ends, Ends, Floats], Floats]] = {
    "count_over_time": _counts,
    "rate": _sums,
    "bytes_over_time": _sums,
    "bytes_rate": _sums,
    "sum_over_time": _sums,
    "avg_over_time": _means,
    "min_over_time": _least,
    "max_over_time": _most,
    "first_over_time": _first,
    "last_over_time": _last,
    "absent_over_time": _counts,
}
_EACH: dict[str, Callable[[Floats], float]] = {
    "stddev_over_time": lambda window: float(np.std(window)),
    "stdvar_over_time": lambda window: float(np.var(window)),
}


def _reduced(operation: np.ufunc, begins: Ends, ends: Ends, values: Floats) -> Floats:
    """Reduce each window by itself: no sums of sums, which lose digits."""
    padded = np.append(values, 0.0)  # an index behind the last sample is allowed
    pairs = np.empty(2 * len(begins), dtype=np.intp)
    pairs[0::2], pairs[1::2] = begins, ends
    reduced = operation.reduceat(padded, pairs)[0::2]
    return np.where(ends > begins, reduced, 0.0)


def _each(begins: Ends, ends: Ends, values: Floats, reduce: Callable[[Floats], float]) -> Floats:
    result = np.zeros(len(begins))
    for step in np.flatnonzero(ends > begins):
        result[step] = reduce(values[begins[step] : ends[step]])
    return result


def quantile(window: Floats, level: float) -> float:
    """As Prometheus: between the two nearest values."""
    if math.isnan(level):
        return math.nan
    if not 0 <= level <= 1:
        return math.copysign(math.inf, level)
    return float(np.quantile(window, level))


def _rate_counter(
    aggregation: LogRange,
    ends_ns: Times,
    begins: Ends,
    ends: Ends,
    times_ns: Times,
    values: Floats,
) -> tuple[Floats, Flags]:
    """The increase per second of a counter, extrapolated to the window as Prometheus does."""
    result, is_present = np.zeros(len(begins)), ends - begins >= 2
    for step in np.flatnonzero(is_present):
        window = slice(begins[step], ends[step])
        result[step] = _counter_rate(
            times_ns[window] / NS_PER_S,
            values[window],
            (ends_ns[step] - aggregation.range_ns) / NS_PER_S,
            ends_ns[step] / NS_PER_S,
        )
    return result, is_present


def _counter_rate(times_s: Floats, values: Floats, begin_s: float, end_s: float) -> float:
    drops = values[:-1][values[1:] < values[:-1]]
    increase = float(values[-1] - values[0] + drops.sum())
    sampled_s = float(times_s[-1] - times_s[0])
    if sampled_s <= 0:
        return math.nan
    before_s, after_s = float(times_s[0] - begin_s), float(end_s - times_s[-1])
    mean_s = sampled_s / (len(times_s) - 1)
    if increase > 0 and values[0] >= 0:
        before_s = min(before_s, sampled_s * float(values[0]) / increase)
    near_s = mean_s * 1.1
    extended_s = sampled_s
    extended_s += before_s if before_s < near_s else mean_s / 2
    extended_s += after_s if after_s < near_s else mean_s / 2
    return increase * extended_s / sampled_s / (end_s - begin_s)

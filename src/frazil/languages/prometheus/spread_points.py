"""SpreadPoints: rows that are several points, such as a histogram with its buckets.

histogram   a bucket for each bound and one for all, with the number of values up to it
summary     a point for each quantile
resource    points of `target_info`, from its first to its last time in a request
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.languages.prometheus.kernels import Floats, Longs
from frazil.model.protobuf import compiled

LE, QUANTILE = "le", "quantile"
TARGET_STEP_MS = 150_000
"""Interval of the points of `target_info`: half of what a selector looks back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadPoints:
    """Points by the row they come from."""

    rows: Longs
    bounds: Floats
    """What tells the points of a row apart."""
    label: str | None
    values: Floats | None = None
    times_ms: Longs | None = None


def bound_text(bound: float) -> str:
    """Return a bound as a label: the fewest digits, never an exponent."""
    if np.isinf(bound):
        return "+Inf" if bound > 0 else "-Inf"
    return "NaN" if np.isnan(bound) else np.format_float_positional(bound, trim="-")


def spread_buckets(counts: pa.ListArray, bounds: pa.ListArray, totals: Floats) -> SpreadPoints:
    """Return the buckets of histograms. A total that is NaN is the end of a series."""
    bound_lengths, bound_values = _lists(bounds)
    count_lengths, count_values = _lists(counts)
    lengths = np.minimum(bound_lengths, count_lengths) + 1
    size = int(lengths.sum())
    edges, values = np.empty(size, np.float64), np.empty(size, np.float64)
    _fill_buckets(
        bound_lengths,
        bound_values.astype(np.float64),
        count_lengths,
        count_values.astype(np.int64),
        totals,
        edges,
        values,
    )
    rows = np.repeat(np.arange(len(totals)), lengths)
    return SpreadPoints(rows=rows, bounds=edges, label=LE, values=values)


@compiled
def _fill_buckets(
    bound_lengths: Longs,
    bounds: Floats,
    count_lengths: Longs,
    counts: Longs,
    totals: Floats,
    edges: Floats,
    values: Floats,
) -> None:
    at = bound = count = 0
    for row in range(len(totals)):
        total = 0
        is_end = np.isnan(totals[row])
        for bucket in range(min(bound_lengths[row], count_lengths[row])):
            total += counts[count + bucket]
            edges[at] = bounds[bound + bucket]
            values[at] = totals[row] if is_end else float(total)
            at += 1
        edges[at] = np.inf
        values[at] = totals[row]
        at += 1
        bound += bound_lengths[row]
        count += count_lengths[row]


def spread_quantiles(quantiles: pa.ListArray, ends: Floats) -> SpreadPoints:
    """Return the quantiles of summaries. `ends` is NaN where a series ends."""
    lengths = _lengths(quantiles)
    pairs = quantiles.flatten()
    rows = np.repeat(np.arange(len(quantiles)), lengths)
    values = np.array(pairs.field(1), np.float64)
    is_end = np.isnan(ends[rows])
    values[is_end] = ends[rows][is_end]
    bounds = np.array(pairs.field(0), np.float64)
    return SpreadPoints(rows=rows, bounds=bounds, label=QUANTILE, values=values)


def spread_times(oldest: Longs, newest: Longs) -> SpreadPoints:
    """Return points from the oldest time of a row to its newest, in even steps."""
    lengths = -(-(newest - oldest) // TARGET_STEP_MS) + 1
    rows = np.repeat(np.arange(len(oldest)), lengths)
    steps = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    times = np.minimum(oldest[rows] + steps * TARGET_STEP_MS, newest[rows])
    return SpreadPoints(rows=rows, bounds=np.zeros(len(rows)), label=None, times_ms=times)


def _lists(column: pa.ListArray) -> tuple[Longs, np.ndarray]:
    """Return the lengths of lists, and their values."""
    return _lengths(column), column.flatten().to_numpy(zero_copy_only=False)


def _lengths(column: pa.ListArray) -> Longs:
    lengths = column.value_lengths().fill_null(0)
    return np.array(lengths, np.int64)

"""Quantiles of histograms.

Values are assumed to be spread evenly within a bucket, so a quantile is off by at most the width of
its bucket.

    explicit       bounds as sent, upper bound inclusive. Values above the last bound count as that
                   bound; values below the first as between 0 and it, or as it if it is not
                   positive.
    exponential    (b^i, b^(i+1)] with b = 2^(2^-scale), mirrored below 0, and the zero bucket.
                   Different scales are merged to the coarsest, so a quantile of positive values is
                   off by at most a factor of b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from frazil.query.telemetry.counter_resets import NONE, Floats, Increments, Integers

EXPONENT_MAX = 1100.0
"""Larger powers of 2, positive or negative, are not doubles."""

DENSE_MAX = 1 << 23
"""Largest key for summing in a dense array; larger keys are sorted."""
EDGES_PER_CHUNK = 256
"""Each edge is compared with every bucket; chunks bound the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Counts of values between bounds, by cell of the result."""

    cell: Integers
    low: Floats
    high: Floats
    count: Floats


def quantile_of(low: Floats, high: Floats, count: Floats, share: float) -> float | None:
    """Return the quantile `share` of all values; None without values."""
    if not count.sum() > 0:
        return None
    order = np.lexsort((high, low))
    low, high, count = low[order], high[order], count[order]
    if (low[1:] >= high[:-1]).all():
        values, ranks = _disjoint(low, high, count)
    else:
        values, ranks = _overlapping(low, high, count)
    rank = min(share * ranks[-1], ranks[-1])
    at = int(np.searchsorted(ranks, rank))
    if at == 0:  # the lowest possible value
        return float(values[int(np.searchsorted(ranks, 0.0, side="right")) - 1])
    part = (rank - ranks[at - 1]) / (ranks[at] - ranks[at - 1])
    return float(values[at - 1] + part * (values[at] - values[at - 1]))


def _disjoint(low: Floats, high: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Edges, and the number of values at or below each. An edge may occur twice, first with the
    number of values below it."""
    after = np.cumsum(count)
    ranks = np.column_stack([after - count, after]).ravel()
    return np.column_stack([low, high]).ravel(), np.maximum.accumulate(ranks)


def _overlapping(low: Floats, high: Floats, count: Floats) -> tuple[Floats, Floats]:
    """The same for histograms with different bounds."""
    edges = np.unique(np.concatenate([low, high]))
    width = np.where(high > low, high - low, 1.0)
    # A bucket without width has all its values at one point.
    is_point = high <= low
    ranks = []
    for chunk in np.array_split(edges, len(edges) // EDGES_PER_CHUNK + 1):
        with np.errstate(over="ignore"):  # very narrow buckets
            inside = np.clip((chunk[:, None] - low) / width, 0.0, 1.0)
        below = np.where(is_point, chunk[:, None] > low, inside) @ count
        upto = np.where(is_point, chunk[:, None] >= low, inside) @ count
        ranks.append(np.column_stack([below, upto]).ravel())
    return np.repeat(edges, 2), np.maximum.accumulate(np.concatenate(ranks))


def explicit_buckets(
    counts: pa.Array,
    bounds: list[list[float]],
    stream: Integers,
    increments: Increments,
    cell: Integers,
    *,
    is_open: bool = False,
) -> Buckets:
    """Increases of the buckets of explicit histograms. `bounds` is by stream, `cell` by
    increment. `is_open` leaves the outer buckets infinite."""
    if is_open:
        lows = [np.array([-np.inf, *edges]) for edges in bounds]
        highs = [np.array([*edges, np.inf]) for edges in bounds]
        return _explicit(counts, lows, highs, stream, increments, cell)
    lows = [np.array([_lowest(edges), *edges]) for edges in bounds]
    highs = [np.array([*edges, _highest(edges)]) for edges in bounds]
    buckets = _explicit(counts, lows, highs, stream, increments, cell)
    low, high = buckets.low, buckets.high
    low, high = np.where(np.isinf(low), high, low), np.where(np.isinf(high), low, high)
    kept = np.isfinite(low) & np.isfinite(high)
    return Buckets(
        cell=buckets.cell[kept], low=low[kept], high=high[kept], count=buckets.count[kept]
    )


def _explicit(
    counts: pa.Array,
    lows: list[Floats],
    highs: list[Floats],
    stream: Integers,
    increments: Increments,
    cell: Integers,
) -> Buckets:
    begins = np.cumsum([0, *map(len, lows)])
    point, bucket, number, owner = _spread(counts, increments)
    is_valid = bucket < np.diff(begins)[stream[point]]
    key = (begins[stream[point]] + bucket)[is_valid]
    low, high = np.concatenate(lows), np.concatenate(highs)
    return _summed(cell[owner[is_valid]], key, number[is_valid], low, high)


def _lowest(bounds: list[float]) -> float:
    if not bounds:
        return np.nan
    return 0.0 if bounds[0] > 0 else bounds[0]


def _highest(bounds: list[float]) -> float:
    return bounds[-1] if bounds else np.nan


def _spread(
    counts: pa.Array, increments: Increments
) -> tuple[Integers, Integers, Floats, Integers]:
    """Buckets of all increments, those of earlier points negated: point, index in the list,
    number, increment."""
    is_compared = increments.earlier != NONE
    owner = np.concatenate([np.arange(len(increments.later)), np.flatnonzero(is_compared)])
    point = np.concatenate([increments.later, increments.earlier[is_compared]])
    sign = np.repeat([1.0, -1.0], [len(increments.later), int(is_compared.sum())])
    lists = counts.take(pa.array(point))
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    index = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    number = lists.flatten().to_numpy(zero_copy_only=False) * np.repeat(sign, lengths)
    return np.repeat(point, lengths), index, number, np.repeat(owner, lengths)


def _summed(cell: Integers, key: Integers, number: Floats, low: Floats, high: Floats) -> Buckets:
    """Merge buckets with the same bounds and cell. `low` and `high` are by key."""
    size = max(len(low), 1)
    both, count = _sum_by_key(cell * size + key, number)
    cells, keys = both // size, both % size
    # A faulty sender may decrease a bucket but not the total; drop negative counts.
    kept = (count > 0) & ~np.isnan(low[keys]) & ~np.isnan(high[keys])
    return Buckets(cell=cells[kept], low=low[keys][kept], high=high[keys][kept], count=count[kept])


def _sum_by_key(key: Integers, number: Floats) -> tuple[Integers, Floats]:
    """Return the distinct keys and the sum of each."""
    if len(key) and int(key.max()) < DENSE_MAX:
        sums = np.bincount(key, weights=number).astype(np.float64)
        keys = np.flatnonzero(sums).astype(np.int64)
        return keys, sums[keys]
    keys, inverse = np.unique(key, return_inverse=True)
    return keys, np.bincount(inverse, weights=number, minlength=len(keys)).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialHistograms:
    """Points of exponential histograms in columns. Missing values are empty or 0."""

    scale: Integers
    zero_count: Floats
    zero_threshold: Floats
    positive_offset: Integers
    positive_counts: pa.Array
    negative_offset: Integers
    negative_counts: pa.Array


def exponential_buckets(
    points: ExponentialHistograms, increments: Increments, cell: Integers
) -> Buckets:
    """Increases of the buckets of exponential histograms."""
    used = np.concatenate([increments.later, increments.earlier[increments.earlier != NONE]])
    scale = int(points.scale[used].min()) if len(used) else 0
    one_side = partial(_one_side, points.scale, scale, increments, cell)
    parts = [
        one_side(points.positive_offset, points.positive_counts),
        _negated(one_side(points.negative_offset, points.negative_counts)),
        _zeros(points, increments, cell),
    ]
    return Buckets(
        cell=np.concatenate([part.cell for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
        count=np.concatenate([part.count for part in parts]),
    )


def _one_side(
    scales: Integers,
    scale: int,
    increments: Increments,
    cell: Integers,
    offsets: Integers,
    counts: pa.Array,
) -> Buckets:
    point, position, number, owner = _spread(counts, increments)
    # Each coarser scale merges two buckets, the lower with an even index.
    index = (offsets[point] + position) >> np.minimum(scales[point] - scale, 62)
    indexes, key = _numbered(index)
    exponents = np.ldexp(indexes.astype(np.float64), -scale)
    above = np.ldexp(indexes.astype(np.float64) + 1, -scale)
    return _summed(cell[owner], key, number, _power(exponents), _power(above))


def _numbered(index: Integers) -> tuple[Integers, Integers]:
    """Return the candidate indexes, and the position of each index among them."""
    least, most = (int(index.min()), int(index.max())) if len(index) else (0, 0)
    if most - least < DENSE_MAX // 1024:
        return np.arange(least, most + 1), index - least
    indexes, key = np.unique(index, return_inverse=True)
    return indexes, key


def _power(exponents: Floats) -> Floats:
    limited = np.clip(exponents, -EXPONENT_MAX, EXPONENT_MAX)
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(np.exp2(limited), np.finfo(np.float64).max)


def _negated(b: Buckets) -> Buckets:
    return Buckets(cell=b.cell, low=-b.high, high=-b.low, count=b.count)


def _zeros(points: ExponentialHistograms, increments: Increments, cell: Integers) -> Buckets:
    """Zero buckets: around 0, or only above it without negative values."""
    increase = increments.of(points.zero_count)
    width = points.zero_threshold[increments.later]
    has_below = points.negative_counts.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    low = np.where(has_below[increments.later] > 0, -width, 0.0)
    kept = increase > 0
    return Buckets(cell=cell[kept], low=low[kept], high=width[kept], count=increase[kept])

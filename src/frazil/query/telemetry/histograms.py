"""Buckets: quantiles of histograms.

A bucket says how many values lie between two bounds, and nothing of where. They are taken to be
spread evenly, so a quantile is off by at most the width of the bucket it lies in.

    explicit       bounds as sent, the upper one inclusive. What lies above the last bound is taken
                   to lie on it; what lies below the first one between 0 and it, or on it if it is
                   not above 0.
    exponential    (b^i, b^(i+1)] with b = 2^(2^-scale), the same below 0, and the zero bucket.
                   Of different scales the coarsest counts, so a quantile q of values above 0 is
                   off by at most a factor of b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.query.telemetry.counter_resets import NONE, Floats, Increments, Integers

EXPONENT_MAX = 1100.0
"""Beyond it a power of 2 is no double any more, in either direction."""

DENSE_MAX = 1 << 23
"""Keys below this are added up in an array that has a place for each; others are sorted."""
EDGES_AT_ONCE = 256
"""Each is compared with every bucket, which takes memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """How many values lie between bounds, in which cell of an answer."""

    cell: Integers
    low: Floats
    high: Floats
    count: Floats


def quantile_of(low: Floats, high: Floats, count: Floats, share: float) -> float | None:
    """The value that so much of all values is not above. None when there are no values."""
    if not count.sum() > 0:
        return None
    order = np.lexsort((high, low))
    low, high, count = low[order], high[order], count[order]
    if (low[1:] >= high[:-1]).all():
        places, known = _side_by_side(low, high, count)
    else:
        places, known = _overlapping(low, high, count)
    wanted = min(share * known[-1], known[-1])
    at = int(np.searchsorted(known, wanted))
    if at == 0:  # the lowest value that there may be
        return float(places[int(np.searchsorted(known, 0.0, side="right")) - 1])
    part = (wanted - known[at - 1]) / (known[at] - known[at - 1])
    return float(places[at - 1] + part * (places[at] - places[at - 1]))


def _side_by_side(low: Floats, high: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Places, and how many values are not above each. A place may be there twice, with the number
    of those below it first."""
    after = np.cumsum(count)
    known = np.column_stack([after - count, after]).ravel()
    return np.column_stack([low, high]).ravel(), np.maximum.accumulate(known)


def _overlapping(low: Floats, high: Floats, count: Floats) -> tuple[Floats, Floats]:
    """The same for buckets of histograms with different bounds."""
    edges = np.unique(np.concatenate([low, high]))
    width = np.where(high > low, high - low, 1.0)
    # A bucket without width holds all its values at one place: they are below it, or not.
    is_point = high <= low
    known = []
    for some in np.array_split(edges, len(edges) // EDGES_AT_ONCE + 1):
        with np.errstate(over="ignore"):  # very narrow buckets
            inside = np.clip((some[:, None] - low) / width, 0.0, 1.0)
        below = np.where(is_point, some[:, None] > low, inside) @ count
        upto = np.where(is_point, some[:, None] >= low, inside) @ count
        known.append(np.column_stack([below, upto]).ravel())
    return np.repeat(edges, 2), np.maximum.accumulate(np.concatenate(known))


def explicit_buckets(
    counts: pa.Array, bounds: list[list[float]], stream: Integers, found: Increments, cell: Integers
) -> Buckets:
    """How much the buckets of explicit histograms grew. `bounds` are those of each stream, `cell`
    is where each increment belongs."""
    lows = [np.array([_lowest(some), *some]) for some in bounds]
    highs = [np.array([*some, _highest(some)]) for some in bounds]
    begins = np.cumsum([0, *map(len, lows)])
    point, bucket, number, owner = _spread(counts, found)
    place = begins[stream[point]] + bucket
    known = bucket < np.diff(begins)[stream[point]]
    key = place[known]
    low, high = np.concatenate(lows), np.concatenate(highs)
    return _summed(
        cell[owner[known]],
        key,
        number[known],
        np.where(np.isinf(low), high, low),
        np.where(np.isinf(high), low, high),
    )


def _lowest(bounds: list[float]) -> float:
    if not bounds:
        return np.nan
    return 0.0 if bounds[0] > 0 else bounds[0]


def _highest(bounds: list[float]) -> float:
    return bounds[-1] if bounds else np.nan


def _spread(counts: pa.Array, found: Increments) -> tuple[Integers, Integers, Floats, Integers]:
    """All buckets of the points that count, and of those they are compared with as less: point,
    place in the list, number, and which increment it is of."""
    is_compared = found.earlier != NONE
    owner = np.concatenate([np.arange(len(found.later)), np.flatnonzero(is_compared)])
    point = np.concatenate([found.later, found.earlier[is_compared]])
    sign = np.repeat([1.0, -1.0], [len(found.later), int(is_compared.sum())])
    lists = counts.take(pa.array(point))
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.cumsum(lengths) - lengths
    place = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    number = lists.flatten().to_numpy(zero_copy_only=False) * np.repeat(sign, lengths)
    return np.repeat(point, lengths), place, number, np.repeat(owner, lengths)


def _summed(cell: Integers, key: Integers, number: Floats, low: Floats, high: Floats) -> Buckets:
    """Buckets with the same bounds in the same cell as one. `low` and `high` are by key."""
    size = max(len(low), 1)
    both, count = _added_up(cell * size + key, number)
    cells, keys = both // size, both % size
    # A bucket can fall while the count of all does not, if a sender is wrong; never below nothing.
    kept = (count > 0) & np.isfinite(low[keys]) & np.isfinite(high[keys])
    return Buckets(cell=cells[kept], low=low[keys][kept], high=high[keys][kept], count=count[kept])


def _added_up(key: Integers, number: Floats) -> tuple[Integers, Floats]:
    """The different keys, and the sum of the numbers of each."""
    if len(key) and int(key.max()) < DENSE_MAX:
        sums = np.bincount(key, weights=number).astype(np.float64)
        places = np.flatnonzero(sums).astype(np.int64)
        return places, sums[places]
    found, inverse = np.unique(key, return_inverse=True)
    return found, np.bincount(inverse, weights=number, minlength=len(found)).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialHistograms:
    """Points of exponential histograms, column by column. What was not sent is empty, or 0."""

    scale: Integers
    zero_count: Floats
    zero_threshold: Floats
    positive_offset: Integers
    positive_counts: pa.Array
    negative_offset: Integers
    negative_counts: pa.Array


def exponential_buckets(
    points: ExponentialHistograms, found: Increments, cell: Integers
) -> Buckets:
    """How much the buckets of exponential histograms grew."""
    used = np.concatenate([found.later, found.earlier[found.earlier != NONE]])
    scale = int(points.scale[used].min()) if len(used) else 0
    parts = [
        _one_side(points.scale, points.positive_offset, points.positive_counts, scale, found, cell),
        _negated(
            _one_side(
                points.scale, points.negative_offset, points.negative_counts, scale, found, cell
            )
        ),
        _zeros(points, found, cell),
    ]
    return Buckets(
        cell=np.concatenate([part.cell for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
        count=np.concatenate([part.count for part in parts]),
    )


def _one_side(
    scales: Integers,
    offsets: Integers,
    counts: pa.Array,
    scale: int,
    found: Increments,
    cell: Integers,
) -> Buckets:
    point, place, number, owner = _spread(counts, found)
    # One step to a coarser scale joins two buckets, of which the lower index is even.
    index = (offsets[point] + place) >> np.minimum(scales[point] - scale, 62)
    indexes, key = _numbered(index)
    exponents = np.ldexp(indexes.astype(np.float64), -scale)
    above = np.ldexp(indexes.astype(np.float64) + 1, -scale)
    return _summed(cell[owner], key, number, _power(exponents), _power(above))


def _numbered(index: Integers) -> tuple[Integers, Integers]:
    """Indexes that may occur, and the place of each one that does among them."""
    least, most = (int(index.min()), int(index.max())) if len(index) else (0, 0)
    if most - least < DENSE_MAX // 1024:
        return np.arange(least, most + 1), index - least
    indexes, key = np.unique(index, return_inverse=True)
    return indexes, key


def _power(exponents: Floats) -> Floats:
    limited = np.clip(exponents, -EXPONENT_MAX, EXPONENT_MAX)
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(np.exp2(limited), np.finfo(np.float64).max)


def _negated(some: Buckets) -> Buckets:
    return Buckets(cell=some.cell, low=-some.high, high=-some.low, count=some.count)


def _zeros(points: ExponentialHistograms, found: Increments, cell: Integers) -> Buckets:
    """The zero buckets: around 0, above it where there are no values below."""
    grown = found.of(points.zero_count)
    width = points.zero_threshold[found.later]
    has_below = points.negative_counts.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    low = np.where(has_below[found.later] > 0, -width, 0.0)
    kept = grown > 0
    return Buckets(cell=cell[kept], low=low[kept], high=width[kept], count=grown[kept])

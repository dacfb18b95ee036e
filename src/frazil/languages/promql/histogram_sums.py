"""Sums and differences of native histograms, brought to common buckets; counter resets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from frazil.languages.promql.histogram import (
    BucketCounts,
    Counts,
    NativeHistogram,
    ResetHint,
    buckets_of,
    upper_bound,
    with_numbers,
)
from frazil.languages.promql.kernels.arrays import Flags, Longs

Combination = Callable[[Counts], Counts]
"""One row of numbers from several."""


class Combined(NamedTuple):
    """A histogram made of others."""

    histogram: NativeHistogram
    is_reconciled: bool
    """Bounds that not all of them have were left out."""
    is_collision: bool
    """Some began after a reset of their counter, and some did not."""


def added(one: NativeHistogram, other: NativeHistogram) -> Combined | None:
    """Return the sum; None if only one has bounds of its own."""
    return _combined([one, other], _total)


def subtracted(one: NativeHistogram, other: NativeHistogram) -> Combined | None:
    """Return the difference; None if only one has bounds of its own."""
    return _combined([one, other], lambda rows: rows[0] - rows[1])


def summed(histograms: Sequence[NativeHistogram]) -> Combined | None:
    """Return the sum of some; None if some but not all have bounds of their own."""
    return _combined(histograms, _total)


def averaged(histograms: Sequence[NativeHistogram]) -> Combined | None:
    """Return the mean of some; None if some but not all have bounds of their own."""
    return _combined(histograms, _mean)


def _total(rows: Counts) -> Counts:
    total, rest = rows[0], np.zeros(rows.shape[1])
    for row in rows[1:]:
        sum_ = total + row
        lost = np.where(np.abs(total) >= np.abs(row), (total - sum_) + row, (row - sum_) + total)
        rest = np.where(np.isinf(sum_), 0.0, rest + lost)
        total = sum_
    found: Counts = total + rest
    return found


def _mean(rows: Counts) -> Counts:
    total = _total(rows)
    if np.isinf(total).any():
        return _total(rows / len(rows))
    return total / len(rows)


def _combined(histograms: Sequence[NativeHistogram], sum_up: Combination) -> Combined | None:
    first = histograms[0]
    if any(each.is_custom != first.is_custom for each in histograms):
        return None
    with np.errstate(all="ignore"):
        hint, is_collision = _common_hint([each.hint for each in histograms])
        if first.is_custom:
            bounds = _common_bounds(histograms)
            is_reconciled = any(each.bounds != bounds for each in histograms)
            if is_reconciled:
                histograms = [_with_bounds(each, bounds) for each in histograms]
        else:
            is_reconciled = False
            histograms = _at_common_threshold(histograms)
            schema = min(each.schema for each in histograms)
            histograms = [at_schema(each, schema) for each in histograms]
        return Combined(_stacked(histograms, sum_up, hint), is_reconciled, is_collision)


def _stacked(
    histograms: Sequence[NativeHistogram], sum_up: Combination, hint: ResetHint
) -> NativeHistogram:
    positive_first, positive = _grid([each.positive for each in histograms])
    negative_first, negative = _grid([each.negative for each in histograms])
    whole = np.array([(each.count, each.sum, each.zero_count) for each in histograms])
    total = sum_up(np.hstack((whole, positive, negative)))
    middle = 3 + positive.shape[1]
    return with_numbers(
        histograms[0],
        total,
        buckets_of(positive_first, total[3:middle]),
        buckets_of(negative_first, total[middle:]),
        hint,
    )


def _grid(rows: Sequence[BucketCounts]) -> tuple[int, Counts]:
    """Rows of counts that begin with the same bucket, and which that is."""
    filled = [row for row in rows if len(row.counts)]
    if not filled:
        return 0, np.zeros((len(rows), 0))
    if (
        all(row.first == filled[0].first for row in rows)
        and len({len(row.counts) for row in rows}) == 1
    ):
        return filled[0].first, np.array([row.counts for row in rows])
    first = min(row.first for row in filled)
    end = max(row.first + len(row.counts) for row in filled)
    grid = np.zeros((len(rows), end - first))
    for at, row in enumerate(rows):
        begin = row.first - first if len(row.counts) else 0
        grid[at, begin : begin + len(row.counts)] = row.counts
    return first, grid


def _common_hint(hints: Sequence[ResetHint]) -> tuple[ResetHint, bool]:
    hint, is_collision = hints[0], False
    for other in hints[1:]:
        if other is hint or hint is ResetHint.GAUGE:
            continue
        if ResetHint.GAUGE is other:
            hint = other
        elif hint is not ResetHint.UNKNOWN:
            is_collision = is_collision or other is not ResetHint.UNKNOWN
            hint = ResetHint.UNKNOWN
    return hint, is_collision


def _common_bounds(histograms: Sequence[NativeHistogram]) -> tuple[float, ...]:
    common = set(histograms[0].bounds).intersection(*(each.bounds for each in histograms[1:]))
    return tuple(bound for bound in histograms[0].bounds if bound in common)


def _with_bounds(histogram: NativeHistogram, bounds: tuple[float, ...]) -> NativeHistogram:
    counts = np.zeros(len(bounds) + 1)
    for at, count in enumerate(histogram.positive.counts):
        top = upper_bound(histogram, histogram.positive.first + at)
        counts[np.searchsorted(bounds, top) if math.isfinite(top) else -1] += count
    return replace(histogram, bounds=bounds, positive=buckets_of(0, counts))


def _reduced(buckets: BucketCounts, levels: int) -> BucketCounts:
    if not levels or not len(buckets.counts):
        return buckets
    index = np.arange(buckets.first, buckets.first + len(buckets.counts))
    index = ((index - 1) >> levels) + 1
    counts = np.zeros(int(index[-1] - index[0]) + 1)
    np.add.at(counts, index - index[0], buckets.counts)
    return buckets_of(int(index[0]), counts)


def at_schema(histogram: NativeHistogram, schema: int) -> NativeHistogram:
    """Return a histogram with the wider buckets of a lower schema."""
    levels = histogram.schema - schema
    if not levels:
        return histogram
    return replace(
        histogram,
        schema=schema,
        positive=_reduced(histogram.positive, levels),
        negative=_reduced(histogram.negative, levels),
        hint=ResetHint.UNKNOWN,
    )


def _at_common_threshold(histograms: Sequence[NativeHistogram]) -> list[NativeHistogram]:
    threshold = max(each.zero_threshold for each in histograms)
    while True:
        widened = [at_threshold(each, threshold) for each in histograms]
        widest = max(each.zero_threshold for each in widened)
        if widest == threshold:
            return widened
        threshold = widest


def at_threshold(histogram: NativeHistogram, threshold: float) -> NativeHistogram:
    """Return a histogram whose zero bucket takes in all buckets that begin below a threshold. It
    ends where the widest of them ends."""
    if threshold == histogram.zero_threshold:
        return histogram
    while True:
        inside = [
            _begin_below(histogram, buckets, threshold)
            for buckets in (histogram.positive, histogram.negative)
        ]
        widest = threshold
        for buckets, count in zip((histogram.positive, histogram.negative), inside, strict=True):
            if count and buckets.counts[count - 1] != 0:
                widest = max(widest, upper_bound(histogram, buckets.first + count - 1))
        if widest == threshold:
            break
        threshold = widest
    taken = (
        histogram.positive.counts[: inside[0]].sum() + histogram.negative.counts[: inside[1]].sum()
    )
    return replace(
        histogram,
        zero_threshold=threshold,
        zero_count=histogram.zero_count + float(taken),
        positive=_without_first(histogram.positive, inside[0]),
        negative=_without_first(histogram.negative, inside[1]),
    )


def _without_first(buckets: BucketCounts, count: int) -> BucketCounts:
    return buckets_of(buckets.first + count, buckets.counts[count:]) if count else buckets


def _begin_below(histogram: NativeHistogram, buckets: BucketCounts, threshold: float) -> int:
    """How many buckets begin below a threshold."""
    count = 0
    while count < len(buckets.counts) and (
        upper_bound(histogram, buckets.first + count - 1) < threshold
    ):
        count += 1
    return count


def find_resets(begins: Longs, stops: Longs, histograms: Sequence[NativeHistogram]) -> Flags:
    """Return which points begin their counter anew, but for the first of each series."""
    found = np.zeros(len(histograms), np.bool_)
    for begin, stop in zip(begins, stops, strict=True):
        for at in range(begin + 1, stop):
            found[at] = is_reset(histograms[at], histograms[at - 1])
    return found


def is_reset(current: NativeHistogram, previous: NativeHistogram) -> bool:
    """Whether the counter began anew between two histograms."""
    if current.hint in (ResetHint.RESET, ResetHint.NOT_RESET):
        return current.hint is ResetHint.RESET
    if current.count < previous.count:
        return True
    if current.is_custom:
        return not previous.is_custom or _is_custom_reset(current, previous)
    if previous.is_custom or current.schema > previous.schema:
        return True
    if current.zero_threshold < previous.zero_threshold:
        return True
    widened = at_threshold(previous, current.zero_threshold)
    if widened.zero_threshold != current.zero_threshold:
        return True
    if current.zero_count < widened.zero_count:
        return True
    before = at_schema(widened, current.schema)
    return _is_less(current.positive, before.positive) or _is_less(
        current.negative, before.negative
    )


def _is_custom_reset(current: NativeHistogram, previous: NativeHistogram) -> bool:
    if current.bounds != previous.bounds:
        bounds = _common_bounds([current, previous])
        current, previous = _with_bounds(current, bounds), _with_bounds(previous, bounds)
    return _is_less(current.positive, previous.positive)


def _is_less(current: BucketCounts, previous: BucketCounts) -> bool:
    if not len(previous.counts):
        return False
    _, rows = _grid([current, previous])
    return bool((rows[0] < rows[1]).any())

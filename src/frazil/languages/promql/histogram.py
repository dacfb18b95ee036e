"""NativeHistogram: one point of a native histogram, and what its buckets are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CUSTOM_SCHEMA = -53
"""The schema of a histogram whose buckets have bounds of their own."""

Counts = NDArray[np.float64]


class ResetHint(Enum):
    """What is known about a reset of the counter between a histogram and the one before."""

    UNKNOWN = "unknown"
    RESET = "reset"
    NOT_RESET = "not_reset"
    GAUGE = "gauge"


class BucketCounts(NamedTuple):
    """Counts of neighbouring buckets. Neither the first nor the last is zero."""

    first: int
    counts: Counts


NO_BUCKETS = BucketCounts(0, np.empty(0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NativeHistogram:
    """Bucket `i` is (base^(i-1), base^i] with base = 2^(2^-schema), as in Prometheus; OTLP's
    bucket `i` is our `i + 1`. With CUSTOM_SCHEMA it is (bounds[i-1], bounds[i]]."""

    schema: int
    count: float
    sum: float
    zero_threshold: float = 0.0
    zero_count: float = 0.0
    positive: BucketCounts = NO_BUCKETS
    negative: BucketCounts = NO_BUCKETS
    bounds: tuple[float, ...] = ()
    hint: ResetHint = ResetHint.UNKNOWN

    @property
    def is_custom(self) -> bool:
        """Whether its buckets have bounds of their own."""
        return self.schema == CUSTOM_SCHEMA


def buckets_of(first: int, counts: Counts) -> BucketCounts:
    """Return buckets without the zeros at either end."""
    if not len(counts):
        return NO_BUCKETS
    if counts[0] != 0 and counts[-1] != 0:
        return BucketCounts(first, counts)
    filled = np.flatnonzero(counts)
    if not len(filled):
        return NO_BUCKETS
    return BucketCounts(first + int(filled[0]), counts[filled[0] : filled[-1] + 1])


def upper_bound(histogram: NativeHistogram, index: int) -> float:
    """Return the upper bound of a bucket; of a negative one, without its sign, the lower one."""
    if histogram.is_custom:
        if index < 0:
            return -math.inf
        return histogram.bounds[index] if index < len(histogram.bounds) else math.inf
    exponent = index * 2.0**-histogram.schema
    if exponent >= 1025:
        return math.inf
    # The bucket of the greatest numbers ends with the last of them.
    return 1.7976931348623157e308 if exponent >= 1024 else 2.0**exponent


class Slices(NamedTuple):
    """All buckets of a histogram, from the least to the greatest."""

    lower: Counts
    upper: Counts
    counts: Counts


BOUNDS_CACHED = 4_096
"""Layouts of buckets whose bounds are remembered: histograms of a series share one."""


@lru_cache(BOUNDS_CACHED)
def _bounds(schema: int, bounds: tuple[float, ...], first: int, count: int) -> Counts:
    """The bounds of neighbouring buckets: one more than there are buckets."""
    layout = NativeHistogram(schema=schema, count=0.0, sum=0.0, bounds=bounds)
    found = np.array([upper_bound(layout, first + at) for at in range(-1, count)])
    found.flags.writeable = False
    return found


def slices_of(histogram: NativeHistogram) -> Slices:
    """Return all buckets but empty ones."""
    lower, upper, counts = [], [], []
    for buckets, is_negative in ((histogram.negative, True), (histogram.positive, False)):
        if not len(buckets.counts):
            continue
        bounds = _bounds(histogram.schema, histogram.bounds, buckets.first, len(buckets.counts))
        if is_negative:
            bounds = -bounds[::-1]
        lower.append(bounds[:-1])
        upper.append(bounds[1:])
        counts.append(buckets.counts[::-1] if is_negative else buckets.counts)
    if histogram.zero_count != 0 and not histogram.is_custom:
        place = 1 if len(histogram.negative.counts) else 0
        threshold = histogram.zero_threshold
        lower.insert(place, np.array((-threshold,)))
        upper.insert(place, np.array((threshold,)))
        counts.insert(place, np.array((histogram.zero_count,)))
    if not counts:
        return Slices(np.empty(0), np.empty(0), np.empty(0))
    amounts = np.concatenate(counts)
    filled = amounts != 0
    return Slices(np.concatenate(lower)[filled], np.concatenate(upper)[filled], amounts[filled])


def scaled(histogram: NativeHistogram, factor: float) -> NativeHistogram:
    """Return a histogram with all numbers multiplied."""
    whole = np.array((histogram.count, histogram.sum, histogram.zero_count)) * factor
    return with_numbers(
        histogram,
        whole,
        buckets_of(histogram.positive.first, histogram.positive.counts * factor),
        buckets_of(histogram.negative.first, histogram.negative.counts * factor),
        ResetHint.GAUGE if factor < 0 else histogram.hint,
    )


def divided(histogram: NativeHistogram, divisor: float) -> NativeHistogram:
    """Return a histogram with all numbers divided; by zero, it has no buckets."""
    with np.errstate(all="ignore"):
        whole = np.array((histogram.count, histogram.sum, histogram.zero_count)) / divisor
        positive, negative = NO_BUCKETS, NO_BUCKETS
        if divisor != 0:
            positive = buckets_of(histogram.positive.first, histogram.positive.counts / divisor)
            negative = buckets_of(histogram.negative.first, histogram.negative.counts / divisor)
    hint = ResetHint.GAUGE if divisor < 0 else histogram.hint
    return with_numbers(histogram, whole, positive, negative, hint)


def with_numbers(
    histogram: NativeHistogram,
    whole: Counts,
    positive: BucketCounts,
    negative: BucketCounts,
    hint: ResetHint,
) -> NativeHistogram:
    """Return a histogram of the same layout with other numbers: count, sum, zero count, buckets."""
    # `replace` would take five times as long, for each point of a query.
    return NativeHistogram(
        schema=histogram.schema,
        count=float(whole[0]),
        sum=float(whole[1]),
        zero_threshold=histogram.zero_threshold,
        zero_count=float(whole[2]),
        positive=positive,
        negative=negative,
        bounds=histogram.bounds,
        hint=hint,
    )


def with_hint(histogram: NativeHistogram, hint: ResetHint) -> NativeHistogram:
    """Return a histogram with another hint."""
    if histogram.hint is hint:
        return histogram
    whole = np.array((histogram.count, histogram.sum, histogram.zero_count))
    return with_numbers(histogram, whole, histogram.positive, histogram.negative, hint)


def is_equal(one: NativeHistogram, other: NativeHistogram) -> bool:
    """Whether two histograms have the same buckets with the same counts, bit by bit."""
    return (
        one.schema == other.schema
        and one.bounds == other.bounds
        and one.zero_threshold == other.zero_threshold
        and _has_same_bits(_whole(one), _whole(other))
        and _has_same_buckets(one.positive, other.positive)
        and _has_same_buckets(one.negative, other.negative)
    )


def _whole(histogram: NativeHistogram) -> Counts:
    return np.array((histogram.count, histogram.sum, histogram.zero_count))


def _has_same_bits(one: Counts, other: Counts) -> bool:
    return np.array_equal(
        np.ascontiguousarray(one).view(np.int64), np.ascontiguousarray(other).view(np.int64)
    )


def _has_same_buckets(one: BucketCounts, other: BucketCounts) -> bool:
    if not len(one.counts) or not len(other.counts):
        return len(one.counts) == len(other.counts)
    return one.first == other.first and _has_same_bits(one.counts, other.counts)

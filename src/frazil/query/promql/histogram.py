"""NativeHistogram: one point of a native histogram, and what its buckets are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
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


Histogram = NativeHistogram
Buckets = BucketCounts


def buckets_of(first: int, counts: Counts) -> BucketCounts:
    """Return buckets without the zeros at either end."""
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


def slices_of(histogram: NativeHistogram) -> Slices:
    """Return all buckets but empty ones."""
    rows = []
    negative, positive = histogram.negative, histogram.positive
    for at in range(len(negative.counts) - 1, -1, -1):
        index = negative.first + at
        bounds = -upper_bound(histogram, index), -upper_bound(histogram, index - 1)
        rows.append((*bounds, negative.counts[at]))
    if histogram.zero_count != 0 and not histogram.is_custom:
        rows.append((-histogram.zero_threshold, histogram.zero_threshold, histogram.zero_count))
    for at, count in enumerate(positive.counts):
        index = positive.first + at
        rows.append((upper_bound(histogram, index - 1), upper_bound(histogram, index), count))
    filled = np.array([row for row in rows if row[2] != 0], np.float64).reshape(-1, 3)
    return Slices(filled[:, 0], filled[:, 1], filled[:, 2])


def scaled(histogram: NativeHistogram, factor: float) -> NativeHistogram:
    """Return a histogram with all numbers multiplied."""
    return replace(
        histogram,
        count=histogram.count * factor,
        sum=histogram.sum * factor,
        zero_count=histogram.zero_count * factor,
        positive=buckets_of(histogram.positive.first, histogram.positive.counts * factor),
        negative=buckets_of(histogram.negative.first, histogram.negative.counts * factor),
        hint=ResetHint.GAUGE if factor < 0 else histogram.hint,
    )


def divided(histogram: NativeHistogram, divisor: float) -> NativeHistogram:
    """Return a histogram with all numbers divided; by zero, it has no buckets."""
    with np.errstate(all="ignore"):
        whole = np.array((histogram.count, histogram.sum, histogram.zero_count)) / divisor
        positive, negative = NO_BUCKETS, NO_BUCKETS
        if divisor != 0:
            positive = buckets_of(histogram.positive.first, histogram.positive.counts / divisor)
            negative = buckets_of(histogram.negative.first, histogram.negative.counts / divisor)
    return replace(
        histogram,
        count=float(whole[0]),
        sum=float(whole[1]),
        zero_count=float(whole[2]),
        positive=positive,
        negative=negative,
        hint=ResetHint.GAUGE if divisor < 0 else histogram.hint,
    )


def with_hint(histogram: NativeHistogram, hint: ResetHint) -> NativeHistogram:
    """Return a histogram with another hint."""
    return histogram if histogram.hint is hint else replace(histogram, hint=hint)


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

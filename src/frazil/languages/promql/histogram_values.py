"""Numbers from one native histogram: quantiles, fractions, the variance; trimming."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from frazil.languages.promql.histogram import (
    BucketCounts,
    NativeHistogram,
    Slices,
    buckets_of,
    slices_of,
    upper_bound,
)

Problem = Literal["", "no result", "skewed", "excluded"]
"""What observations of NaN did to a result."""


def _is_linear(histogram: NativeHistogram, lower: float, upper: float) -> bool:
    return histogram.is_custom or (lower <= 0 <= upper)


def _shrunk_zero(histogram: NativeHistogram, lower: float, upper: float) -> tuple[float, float]:
    """The bounds of a bucket; the zero bucket has only the half where observations are."""
    if not lower <= 0 <= upper:
        return lower, upper
    has_negative, has_positive = len(histogram.negative.counts), len(histogram.positive.counts)
    if has_positive and not has_negative:
        return 0.0, upper
    return (lower, 0.0) if has_negative and not has_positive else (lower, upper)


def quantile(q: float, histogram: NativeHistogram) -> tuple[float, Problem]:
    """Return the value that the part `q` of all observations does not exceed."""
    if q < 0 or q > 1:
        return math.copysign(math.inf, q - 0.5), ""
    if histogram.count == 0 or math.isnan(q):
        return math.nan, ""
    slices = slices_of(histogram)
    has_nan = math.isnan(histogram.sum)
    is_upward = has_nan or q < 0.5
    rank = (q if is_upward else 1 - q) * histogram.count
    counts = slices.counts if is_upward else slices.counts[::-1]
    running = np.cumsum(counts)
    place = int(np.searchsorted(running, rank)) if len(running) else 0
    is_past = place >= len(running)
    place = min(place, len(running) - 1)
    if place < 0:
        return (math.nan, "no result") if has_nan else (0.0, "")
    at = place if is_upward else len(running) - 1 - place
    return _within(histogram, slices, at, float(running[place]), rank, is_upward, is_past)


def _within(
    histogram: NativeHistogram,
    slices: Slices,
    at: int,
    below: float,
    rank: float,
    is_upward: bool,
    is_past: bool,
) -> tuple[float, Problem]:
    """The value at a rank in a bucket, up to whose end there are `below` observations."""
    lower, upper = float(slices.lower[at]), float(slices.upper[at])
    if histogram.is_custom:
        if lower == -math.inf:
            if upper <= 0:
                return upper, ""
            lower = 0.0
        elif upper == math.inf:
            return lower, ""
    elif lower < 0 < upper:
        lower, upper = _shrunk_zero(histogram, lower, upper)
    has_nan = math.isnan(histogram.sum)
    below = min(below, histogram.count)
    if is_past and below < rank:
        return (math.nan, "no result") if has_nan else (upper, "")
    count = float(slices.counts[at])
    rank = rank - (below - count) if is_upward else below - rank
    is_skewed = has_nan and float(slices.counts.sum()) < histogram.count
    return _at_share(histogram, lower, upper, rank / count), "skewed" if is_skewed else ""


def _at_share(histogram: NativeHistogram, lower: float, upper: float, share: float) -> float:
    if _is_linear(histogram, lower, upper):
        return lower + (upper - lower) * share
    low, high = math.log2(abs(lower)), math.log2(abs(upper))
    if lower > 0:
        return float(np.exp2(low + (high - low) * share))
    return -float(np.exp2(high + (low - high) * (1 - share)))


def share_below(histogram: NativeHistogram, lower: float, upper: float, value: float) -> float:
    """Return which part of a bucket is below a value inside it."""
    if _is_linear(histogram, lower, upper):
        return (value - lower) / (upper - lower)
    low, high = math.log2(abs(lower)), math.log2(abs(upper))
    share = (math.log2(abs(value)) - low) / (high - low)
    return share


def fraction(lower: float, upper: float, histogram: NativeHistogram) -> tuple[float, Problem]:
    """Return which part of all observations lies between two values."""
    if histogram.count == 0 or math.isnan(lower) or math.isnan(upper):
        return math.nan, ""
    if lower >= upper:
        return 0.0, ""
    slices = slices_of(histogram)
    total, problem = histogram.count, ""
    if math.isnan(histogram.sum):
        total = float(slices.counts.sum())
        problem = "excluded" if total < histogram.count else ""
    least = min(_rank(histogram, slices, lower), total)
    most = min(_rank(histogram, slices, upper), total)
    return (most - least) / histogram.count, "excluded" if problem else ""


def _rank(histogram: NativeHistogram, slices: Slices, value: float) -> float:
    """How many observations are below a value."""
    rank = 0.0
    for low, high, count in zip(*slices, strict=True):
        bottom, top = _shrunk_zero(histogram, low, high)
        if bottom >= value:
            return rank
        if top > value:
            if bottom == -math.inf:
                return float(count)
            return rank + float(count) * share_below(histogram, bottom, top, value)
        rank += float(count)
    return math.inf


def variance(histogram: NativeHistogram) -> float:
    """Return the variance, with all observations in the middle of their buckets."""
    if histogram.count == 0:
        return math.nan
    slices = slices_of(histogram)
    with np.errstate(all="ignore"):
        if histogram.is_custom:
            middles = (slices.lower + slices.upper) / 2
        else:
            middles = np.sign(slices.upper) * np.sqrt(slices.lower * slices.upper)
            middles[(slices.lower <= 0) & (slices.upper >= 0)] = 0.0
        apart = middles - histogram.sum / histogram.count
        return float((slices.counts * apart * apart).sum() / histogram.count)


class Kept(NamedTuple):
    """What is left of a bucket, and where its observations are taken to be."""

    amount: float
    middle: float


def trimmed(histogram: NativeHistogram, limit: float, is_upper: bool) -> NativeHistogram:
    """Return a histogram without the observations above (or below) a limit."""
    positive = _kept(histogram, histogram.positive, limit, is_upper, is_positive=True)
    negative = _kept(histogram, histogram.negative, limit, is_upper, is_positive=False)
    zero = Kept(0.0, 0.0)
    if histogram.zero_count > 0:
        zero = _kept_zero(histogram, limit, is_upper)
    counts = [np.array([each.amount for each in side]) for side in (positive, negative)]
    if (
        zero.amount == histogram.zero_count
        and np.array_equal(counts[0], histogram.positive.counts)
        and np.array_equal(counts[1], histogram.negative.counts)
    ):
        return histogram
    every = [*positive, *negative, zero]
    return replace(
        histogram,
        count=math.fsum(each.amount for each in every),
        sum=math.fsum(each.amount * each.middle for each in every),
        zero_count=zero.amount,
        positive=buckets_of(histogram.positive.first, counts[0]),
        negative=buckets_of(histogram.negative.first, counts[1]),
    )


def _kept(
    histogram: NativeHistogram,
    buckets: BucketCounts,
    limit: float,
    is_upper: bool,
    is_positive: bool,
) -> list[Kept]:
    found = []
    for at, count in enumerate(buckets.counts):
        near = upper_bound(histogram, buckets.first + at - 1)
        far = upper_bound(histogram, buckets.first + at)
        lower, upper = (near, far) if is_positive else (-far, -near)
        found.append(_kept_of(histogram, lower, upper, float(count), limit, is_upper))
    return found


def _kept_of(
    histogram: NativeHistogram,
    lower: float,
    upper: float,
    count: float,
    limit: float,
    is_upper: bool,
) -> Kept:
    if count == 0:
        return Kept(0.0, 0.0)
    if upper <= limit if is_upper else lower >= limit:
        return Kept(count, _middle(histogram, lower, upper))
    if not (lower < limit if is_upper else upper > limit):
        return Kept(0.0, 0.0)
    if lower == -math.inf or upper == math.inf:
        return _kept_of_endless(lower, upper, count, limit, is_upper)
    below = count * share_below(histogram, lower, upper, limit)
    if is_upper:
        return Kept(below, _middle(histogram, lower, limit))
    return Kept(count - below, _middle(histogram, limit, upper))


def _kept_of_endless(
    lower: float, upper: float, count: float, limit: float, is_upper: bool
) -> Kept:
    """The limit is inside a bucket without an end on one side."""
    if lower != -math.inf:
        return Kept(0.0, 0.0) if is_upper else Kept(count, limit)
    if not math.isfinite(upper):
        return Kept(0.0, 0.0)
    if is_upper:
        if limit > 0 and upper > 0:
            return Kept(count * limit / upper, limit / 2)
        return Kept(count, limit) if upper <= 0 else Kept(0.0, 0.0)
    if limit >= 0:
        return Kept(count * (1 - limit / upper), (limit + upper) / 2)
    return Kept(0.0, 0.0)


def _kept_zero(histogram: NativeHistogram, limit: float, is_upper: bool) -> Kept:
    lower, upper = _shrunk_zero(histogram, -histogram.zero_threshold, histogram.zero_threshold)
    count = histogram.zero_count
    if limit <= lower:
        return Kept(0.0, 0.0) if is_upper else Kept(count, (lower + upper) / 2)
    if limit >= upper:
        return Kept(count, (lower + upper) / 2) if is_upper else Kept(0.0, 0.0)
    if is_upper:
        return Kept(count * (limit - lower) / (upper - lower), (lower + limit) / 2)
    return Kept(count * (upper - limit) / (upper - lower), (limit + upper) / 2)


def _middle(histogram: NativeHistogram, lower: float, upper: float) -> float:
    if math.isinf(lower):
        if math.isinf(upper):
            return 0.0
        return upper / 2 if upper > 0 else upper
    if math.isinf(upper):
        return lower
    if histogram.is_custom:
        return (lower + upper) / 2
    middle = math.sqrt(abs(lower * upper))
    return middle if lower >= 0 else -middle

"""Exponential histograms as native histograms of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.languages.promql.histogram import NO_BUCKETS, BucketCounts, NativeHistogram, buckets_of

HISTOGRAM_COLUMNS = (
    "sum",
    "scale",
    "zero_count",
    "zero_threshold",
    "positive_offset",
    "positive_bucket_counts",
    "negative_offset",
    "negative_bucket_counts",
)
SCALE_MIN, SCALE_MAX = -4, 8
"""Native histograms have no coarser scale; finer ones are merged to the finest."""
ZERO_THRESHOLD = 1e-128
"""What Prometheus takes for a histogram that has none of its own."""


def histograms_of(table: pa.Table) -> list[NativeHistogram | None]:
    """Return a histogram per row; None for the end of a series."""
    return [_histogram(row) for row in table.select([*HISTOGRAM_COLUMNS, "value"]).to_pylist()]


def _histogram(row: Mapping[str, Any]) -> NativeHistogram | None:
    scale = row["scale"] or 0
    if row["value"] is None:
        return None
    merged = max(0, scale - SCALE_MAX)
    return NativeHistogram(
        schema=scale - merged,
        count=row["value"],
        sum=row["sum"] or 0.0,
        zero_threshold=row["zero_threshold"] or ZERO_THRESHOLD,
        zero_count=float(row["zero_count"] or 0),
        positive=_buckets(row["positive_offset"], row["positive_bucket_counts"], merged),
        negative=_buckets(row["negative_offset"], row["negative_bucket_counts"], merged),
    )


def _buckets(offset: int | None, counts: list[int] | None, merged: int) -> BucketCounts:
    """Return buckets; 2^merged of them become one. Ours end where OTLP's begin."""
    if not counts:
        return NO_BUCKETS
    begin = offset or 0
    places = (np.arange(len(counts)) + begin) >> merged
    sums = np.bincount(places - places[0], weights=counts)
    return buckets_of(int(places[0]) + 1, np.asarray(sums, np.float64))

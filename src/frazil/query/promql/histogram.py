"""Histogram: one point of a native histogram."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CUSTOM_SCHEMA = -53
"""The schema of a histogram whose buckets have bounds of their own."""


class ResetHint(Enum):
    """What is known about a reset of the counter between a histogram and the one before."""

    UNKNOWN = "unknown"
    RESET = "reset"
    NOT_RESET = "not_reset"
    GAUGE = "gauge"


class Buckets(NamedTuple):
    """Counts of neighbouring buckets. Neither the first nor the last is zero."""

    first: int
    counts: NDArray[np.float64]


NO_BUCKETS = Buckets(0, np.empty(0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """Bucket `i` is (base^(i-1), base^i] with base = 2^(2^-schema), as in Prometheus; OTLP's
    bucket `i` is our `i + 1`. With CUSTOM_SCHEMA it is (bounds[i-1], bounds[i]]."""

    schema: int
    count: float
    sum: float
    zero_threshold: float = 0.0
    zero_count: float = 0.0
    positive: Buckets = field(default=NO_BUCKETS)
    negative: Buckets = field(default=NO_BUCKETS)
    bounds: tuple[float, ...] = ()
    hint: ResetHint = ResetHint.UNKNOWN

    @property
    def is_custom(self) -> bool:
        """Whether its buckets have bounds of their own."""
        return self.schema == CUSTOM_SCHEMA


def buckets_of(first: int, counts: NDArray[np.float64]) -> Buckets:
    """Return buckets without the zeros at either end."""
    filled = np.flatnonzero(counts)
    if not len(filled):
        return NO_BUCKETS
    return Buckets(first + int(filled[0]), counts[filled[0] : filled[-1] + 1])

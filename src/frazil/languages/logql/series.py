"""LineSeries: numbers over time with labels; LogSteps: the times of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frazil.errors import Malformed
from frazil.languages.logql.units import NS_PER_S

STEPS_MAX = 11_000
"""As in Prometheus and Loki."""
SERIES_MAX = 2_000
"""Series of a result."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
LabelKey = tuple[tuple[str, str], ...]
"""Labels by name. None is empty."""


@dataclass(frozen=True, slots=True)
class LogSteps:
    """An evaluation at `start_ns`, and every `step_ns` up to `end_ns`; a step of 0 is one time."""

    start_ns: int
    end_ns: int
    step_ns: int

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise Malformed("end is before start; set end to a later time")
        if self.step_ns <= 0 and self.end_ns > self.start_ns:
            raise Malformed("step is 0 or less; set step=30s, or leave it out")
        if self.count > STEPS_MAX:
            raise Malformed(
                f"exceeded maximum resolution of {STEPS_MAX} points per time series. Try "
                "increasing the value of the step parameter"
            )

    @property
    def count(self) -> int:
        return 1 + ((self.end_ns - self.start_ns) // self.step_ns if self.step_ns else 0)

    def times_ns(self) -> NDArray[np.int64]:
        return self.start_ns + np.arange(self.count, dtype=np.int64) * self.step_ns


@dataclass(frozen=True, slots=True)
class LineSeries:
    """A value for each step that has one."""

    labels: LabelKey
    values: Floats
    is_present: Flags


@dataclass(frozen=True, slots=True)
class LogScalar:
    """The same number at each step."""

    value: float


def label_key(labels: Mapping[str, str]) -> LabelKey:
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def key_of_pairs(pairs: Iterable[tuple[str, str]]) -> LabelKey:
    return tuple(sorted((name, value) for name, value in pairs if value))


def shown_labels(key: LabelKey) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in key) + "}"


def sample_text(value: float) -> str:
    """A sample as Prometheus and Loki write it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def seconds_of_ns(nanoseconds: int) -> float:
    return nanoseconds / NS_PER_S

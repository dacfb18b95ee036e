"""Functions of each value: mathematics, dates, native histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.histogram_values import variance
from frazil.languages.promql.kernels.arrays import Flags, Floats
from frazil.languages.promql.vectors import Vector, floats

FloatFunction = Callable[[Floats], Floats]


def _sign(values: Floats) -> Floats:
    return np.where(np.isnan(values) | (values == 0), values, np.sign(values))


MATHEMATICS: Mapping[str, FloatFunction] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "deg": np.degrees,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "rad": np.radians,
    "sgn": _sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


def mapped(vector: Vector, function: FloatFunction) -> Vector:
    """Apply a function to each float; histograms are left out."""
    with np.errstate(all="ignore"):
        return floats(vector.labels, function(vector.values), vector.are_floats(), True)


def rounded(vector: Vector, nearest: Floats) -> Vector:
    """Round to the nearest multiple, halves up."""

    def function(values: Floats) -> Floats:
        inverse = 1.0 / nearest
        return np.floor(values * inverse + 0.5) / inverse

    return mapped(vector, function)


def clamped(vector: Vector, least: Floats, most: Floats) -> Vector:
    """Bring each value between two limits; without a value where these cross."""
    values = np.maximum(least, np.minimum(most, vector.values))
    return floats(vector.labels, values, vector.are_floats() & ~(most < least), True)


def _days(seconds: NDArray[Any]) -> NDArray[Any]:
    return seconds.astype("datetime64[s]").astype("datetime64[D]")


def _months(seconds: NDArray[Any]) -> NDArray[Any]:
    return _days(seconds).astype("datetime64[M]")


def _years(seconds: NDArray[Any]) -> NDArray[Any]:
    return _days(seconds).astype("datetime64[Y]")


def _days_between(later: NDArray[Any], earlier: NDArray[Any]) -> NDArray[Any]:
    return later.astype("datetime64[D]").astype(np.int64) - earlier.astype("datetime64[D]").astype(
        np.int64
    )


_DATES: Mapping[str, Callable[[NDArray[np.int64]], NDArray[Any]]] = {
    "day_of_month": lambda at: _days_between(_days(at), _months(at)) + 1,
    "day_of_week": lambda at: (at // 86_400 + 4) % 7,
    "day_of_year": lambda at: _days_between(_days(at), _years(at)) + 1,
    "days_in_month": lambda at: _days_between(_months(at) + 1, _months(at)),
    "hour": lambda at: at // 3_600 % 24,
    "minute": lambda at: at // 60 % 60,
    "month": lambda at: _months(at).astype(np.int64) % 12 + 1,
    "year": lambda at: _years(at).astype(np.int64) + 1970,
}
DATES = frozenset(_DATES)
_SECONDS_MAX = 1e14
"""Later dates have no calendar."""


def dated(name: str, seconds: Floats) -> Floats:
    """Return a part of the date of each time."""
    known = np.nan_to_num(seconds, nan=0.0, posinf=_SECONDS_MAX, neginf=-_SECONDS_MAX)
    whole = np.trunc(np.clip(known, -_SECONDS_MAX, _SECONDS_MAX)).astype(np.int64)
    return np.asarray(_DATES[name](whole), np.float64)


def _average(histogram: NativeHistogram) -> float:
    return float(np.float64(histogram.sum) / np.float64(histogram.count))


HISTOGRAM_NUMBERS: Mapping[str, Callable[[NativeHistogram], float]] = {
    "histogram_avg": _average,
    "histogram_count": lambda histogram: histogram.count,
    "histogram_stddev": lambda histogram: float(np.sqrt(variance(histogram))),
    "histogram_stdvar": variance,
    "histogram_sum": lambda histogram: histogram.sum,
}


def histogram_numbers(vector: Vector, function: Callable[[NativeHistogram], float]) -> Vector:
    """Apply a function to each histogram; floats are left out."""
    chosen: Flags = vector.are_histograms()
    values = np.zeros(chosen.shape)
    if vector.histograms is not None:
        with np.errstate(all="ignore"):
            values[chosen] = [function(each) for each in vector.histograms[chosen]]
    return floats(vector.labels, values, chosen, True)


def scalar(vector: Vector) -> Floats:
    """Return the only float of each step; NaN if there is none, or more than one."""
    present = vector.are_floats()
    total = np.where(present, vector.values, 0.0).sum(axis=0)
    return np.where(present.sum(axis=0) == 1, total, np.nan)

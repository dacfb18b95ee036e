"""histogram_quantile and histogram_fraction, of classic and of native histograms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from frazil.languages.promql import histogram_values
from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.histogram_values import Problem
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, any_along, given
from frazil.languages.promql.kernels.buckets import bucket_fractions, bucket_quantiles
from frazil.languages.promql.labels import BUCKET, drop, label, metric_name, quoted, with_labels
from frazil.languages.promql.notes import Notes, bad_quantile
from frazil.languages.promql.numbers import short
from frazil.languages.promql.points import LabelSet
from frazil.languages.promql.vectors import Vector, floats, stacked

_PROBLEMS: dict[Problem, str] = {
    "no result": "input to histogram_quantile has NaN observations, result is NaN",
    "skewed": "input to histogram_quantile has NaN observations, result is skewed higher",
    "excluded": (
        "input to histogram_fraction has NaN observations, which are excluded from all fractions"
    ),
}


@dataclass(slots=True)
class _Classic:
    """Rows of buckets, by histogram and bound."""

    labels: list[LabelSet]
    unnamed: Flags
    starts: Longs
    bounds: Floats
    values: Floats
    present: Flags


@dataclass(slots=True)
class Distributions:
    """The classic and native histograms of a vector."""

    classic: _Classic
    native: Vector
    native_present: Flags
    evaluation: Evaluation
    begin: int

    @property
    def notes(self) -> Notes:
        """Where trouble with them is told."""
        return self.evaluation.notes


def _bound(text: str) -> float | None:
    try:
        return float(text) if text.strip() == text and "_" not in text else None
    except ValueError:
        return None


def distributions_of(vector: Vector, evaluation: Evaluation, begin: int) -> Distributions:
    """Find the histograms of a vector; a series without a bound is not part of one."""
    notes = evaluation.notes
    are_floats, native_present = vector.are_floats(), vector.are_histograms()
    buckets: dict[LabelSet, list[tuple[float, int]]] = defaultdict(list)
    for row in np.flatnonzero(any_along(are_floats, 1)):
        labels = vector.labels[row]
        bound = _bound(label(labels, BUCKET))
        if bound is None:
            text = quoted(label(labels, BUCKET))
            message = f'bucket label "{BUCKET}" is missing or has a malformed value of {text}'
            notes.of_metric(message, metric_name(labels), begin)
        else:
            buckets[drop(labels, (BUCKET,))].append((bound, int(row)))
    are_floats = are_floats.copy()
    native_present = native_present.copy()
    for row in np.flatnonzero(any_along(native_present, 1)):
        rows = [other for _, other in buckets.get(vector.labels[row], [])]
        both = native_present[row] & are_floats[rows].any(axis=0)
        if both.any():
            message = "vector contains a mix of classic and native histograms"
            notes.of_metric(message, metric_name(vector.labels[row]), begin)
            native_present[row] &= ~both
            for other in rows:
                are_floats[other] &= ~both
    classic = _classic(vector, buckets, are_floats)
    return Distributions(classic, vector, native_present, evaluation, begin)


def _classic(
    vector: Vector, buckets: dict[LabelSet, list[tuple[float, int]]], present: Flags
) -> _Classic:
    rows: list[int] = []
    bounds: list[float] = []
    starts = [0]
    for members in buckets.values():
        members.sort()
        bounds.extend(bound for bound, _ in members)
        rows.extend(row for _, row in members)
        starts.append(len(rows))
    chosen = np.array(rows, np.int64)
    unnamed = [any(vector.unnamed[row] for _, row in members) for members in buckets.values()]
    return _Classic(
        list(buckets),
        np.array(unnamed, np.bool_),
        given(np.array(starts, np.int64)),
        given(np.array(bounds, np.float64)),
        given(vector.values[chosen]),
        given(present[chosen]),
    )


def quantiles(distributions: Distributions, q: Floats, begin: int) -> Vector:
    """Return the value that the part `q` of the observations does not exceed."""
    for value in np.unique(q[~((q >= 0) & (q <= 1))]):
        bad_quantile(distributions.notes, float(value), begin)
    classic = distributions.classic
    values, present, fixes = bucket_quantiles(
        classic.starts, classic.bounds, classic.values, classic.present, given(q)
    )
    _note_fixes(distributions, fixes)
    return stacked(
        [
            floats(classic.labels, values, present, True),
            _of_native(distributions, lambda at, step: histogram_values.quantile(q[step], at)),
        ]
    )


def _note_fixes(distributions: Distributions, fixes: Floats) -> None:
    for row, step in zip(*np.nonzero(~np.isnan(fixes[:, :, 2])), strict=True):
        least, greatest, most = fixes[row, step]
        distributions.notes.fixed(
            metric_name(distributions.classic.labels[row]),
            distributions.begin,
            int(distributions.evaluation.times[step]),
            float(least),
            float(greatest),
            float(most),
        )


def fractions(distributions: Distributions, lower: Floats, upper: Floats) -> Vector:
    """Return which part of the observations lies between two values."""
    classic = distributions.classic
    values, present = bucket_fractions(
        classic.starts,
        classic.bounds,
        classic.values,
        classic.present,
        given(lower),
        given(upper),
    )

    def of_native(histogram: NativeHistogram, step: int) -> tuple[float, Problem]:
        return histogram_values.fraction(lower[step], upper[step], histogram)

    return stacked(
        [floats(classic.labels, values, present, True), _of_native(distributions, of_native)]
    )


def _of_native(
    distributions: Distributions, function: Callable[[NativeHistogram, int], tuple[float, Problem]]
) -> Vector:
    native, present = distributions.native, distributions.native_present
    values = np.zeros(present.shape)
    if native.histograms is not None:
        for row, step in zip(*np.nonzero(present), strict=True):
            distributions.evaluation.cancel.check()
            value, problem = function(native.histograms[row, step], int(step))
            values[row, step] = value
            if problem:
                name = metric_name(native.labels[row])
                distributions.notes.of_metric(
                    _PROBLEMS[problem], name, distributions.begin, is_warning=False
                )
    return floats(native.labels, values, present, True)


def many_quantiles(
    distributions: Distributions, name: str, qs: Sequence[Floats], begins: Sequence[int]
) -> Vector:
    """Return several quantiles, each with its number as a label."""
    found = []
    for q, begin in zip(qs, begins, strict=True):
        for value in np.unique(q):
            distributions.evaluation.count(distributions.native.present.size)
            steps = np.isnan(q) if math.isnan(value) else q == value
            vector = quantiles(distributions, np.where(steps, q, 0.5), begin)
            vector.labels = [
                with_labels(labels, {name: _with_point(float(value))}) for labels in vector.labels
            ]
            found.append(vector.where(np.broadcast_to(steps, vector.present.shape)))
    return stacked(found)


def _with_point(value: float) -> str:
    """A number as OpenMetrics writes it."""
    text = short(value)
    return text if set(text) & set(".eNI") else f"{text}.0"

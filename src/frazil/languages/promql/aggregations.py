"""Aggregations: operators over the series of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.failures import FailedQuery
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.histogram_sums import averaged, summed
from frazil.languages.promql.histogram_text import histogram_text
from frazil.languages.promql.kernels import groups
from frazil.languages.promql.kernels.arrays import Flags, Floats, Longs, any_along, exist, given
from frazil.languages.promql.labels import (
    NAME,
    drop,
    group_numbers,
    is_text,
    keep,
    metric_name,
    with_labels,
)
from frazil.languages.promql.notes import (
    Notes,
    bad_quantile,
    ignored_in_aggregation,
    mixed_schemas,
    note_total,
)
from frazil.languages.promql.numbers import positional
from frazil.languages.promql.points import LabelSet
from frazil.languages.promql.syntax import Aggregation, TextLiteral
from frazil.languages.promql.vectors import Objects, Vector, empty, floats, no_histograms
from frazil.results import CancelToken

_LONG_MAX = 2.0**63
CHOICES = frozenset(("topk", "bottomk", "limitk"))
"""Operators that return some of their series as they are."""


@dataclass(slots=True)
class _Grouped:
    """Series with the numbers of their groups."""

    operator: str
    vector: Vector
    rows: Longs
    labels: list[LabelSet]
    notes: Notes
    cancel: CancelToken
    begin: int

    @property
    def count(self) -> int:
        return len(self.labels)

    def unnamed(self, present: Flags) -> Flags:
        """Groups of which a member's name is to be dropped."""
        flags = np.zeros(self.count, np.bool_)
        flags[self.rows[self.vector.unnamed & any_along(present, 1)]] = True
        return flags

    def members(self, present: Flags) -> Flags:
        """Where a group has any of some values."""
        return groups.group_counts(self.rows, self.count, given(present)) > 0


def _key(labels: LabelSet, aggregation: Aggregation) -> LabelSet:
    if aggregation.is_without:
        return drop(labels, {*aggregation.labels, NAME})
    return keep(labels, aggregation.labels)


def aggregate(
    aggregation: Aggregation,
    vector: Vector,
    parameter: Floats | str | None,
    evaluation: Evaluation,
) -> Vector:
    """Evaluate an aggregation of a vector."""
    if isinstance(parameter, str):
        return _value_counts(aggregation, vector, parameter, evaluation)
    if aggregation.operator in CHOICES and parameter is not None:
        _check_choice(aggregation, parameter)
        if not len(parameter) or parameter.max() < 1:
            return empty(vector.steps)
    numbers, keys = group_numbers(_key(labels, aggregation) for labels in vector.labels)
    begin = aggregation.expression.begin
    grouped = _Grouped(
        aggregation.operator,
        vector,
        given(np.array(numbers, np.int64)),
        keys,
        evaluation.notes,
        evaluation.cancel,
        begin,
    )
    if parameter is None:
        return _PLAIN[aggregation.operator](grouped)
    if aggregation.operator == "quantile":
        at = begin if aggregation.parameter is None else aggregation.parameter.begin
        return _quantile(grouped, parameter, at)
    grouped.begin = aggregation.begin
    return _chosen(grouped, parameter, evaluation.is_instant)


def _sum(grouped: _Grouped) -> Vector:
    """The sum or mean, of floats or of histograms, but not of both."""
    vector = grouped.vector
    is_mean = grouped.operator == "avg"
    are_floats = vector.are_floats()
    kernel = groups.group_means if is_mean else groups.group_sums
    values = kernel(grouped.rows, grouped.count, given(vector.values), given(are_floats))
    present = grouped.members(are_floats)
    unnamed = grouped.unnamed(vector.present)
    if vector.histograms is None:
        return floats(grouped.labels, values, present, unnamed)
    have_histograms = grouped.members(vector.are_histograms())
    if (present & have_histograms).any():
        grouped.notes.warn(
            "encountered a mix of histograms and floats for aggregation", grouped.begin
        )
    only_histograms = have_histograms & ~present
    histograms = _histogram_sums(grouped, only_histograms, is_mean)
    has_result = exist(histograms)
    present = (present & ~have_histograms) | has_result
    found = Vector(grouped.labels, values, present, unnamed, histograms)
    return found.rows(any_along(present, 1))


def _histogram_sums(grouped: _Grouped, chosen: Flags, is_mean: bool) -> Objects:
    found = no_histograms(chosen.shape)
    all_histograms = grouped.vector.histograms
    if all_histograms is None:
        return found
    are_histograms = grouped.vector.are_histograms()
    for group, step in zip(*np.nonzero(chosen), strict=True):
        grouped.cancel.check()
        members = np.flatnonzero((grouped.rows == group) & are_histograms[:, step])
        total = _histogram_sum(grouped, members, list(all_histograms[members, step]), is_mean)
        found[group, step] = total
    return found


def _histogram_sum(
    grouped: _Grouped, members: Longs, points: list[NativeHistogram], is_mean: bool
) -> NativeHistogram | None:
    total = averaged(points) if is_mean else summed(points)
    if total is None:
        other = next(
            row
            for row, point in zip(members, points, strict=True)
            if point.is_custom != points[0].is_custom
        )
        mixed_schemas(grouped.notes, metric_name(grouped.vector.labels[other]), grouped.begin)
        return None
    note_total(grouped.notes, points, total, grouped.begin)
    return total.histogram


def _only_floats(grouped: _Grouped) -> Flags:
    are_floats = grouped.vector.are_floats()
    if grouped.vector.are_histograms().any():
        ignored_in_aggregation(grouped.notes, grouped.operator, grouped.begin)
    return are_floats


def _of_floats(
    kernel: Callable[[Longs, int, Floats, Flags], Floats],
) -> Callable[[_Grouped], Vector]:
    def of_group(grouped: _Grouped) -> Vector:
        chosen = _only_floats(grouped)
        values = kernel(grouped.rows, grouped.count, given(grouped.vector.values), given(chosen))
        return floats(grouped.labels, values, grouped.members(chosen), grouped.unnamed(chosen))

    return of_group


def _deviation(rows: Longs, count: int, values: Floats, present: Flags) -> Floats:
    return np.sqrt(groups.group_variances(rows, count, values, present))


def _count(grouped: _Grouped) -> Vector:
    present = grouped.vector.present
    counts = groups.group_counts(grouped.rows, grouped.count, given(present))
    values = np.ones(counts.shape) if grouped.operator == "group" else counts.astype(np.float64)
    return floats(grouped.labels, values, counts > 0, grouped.unnamed(present))


_PLAIN: dict[str, Callable[[_Grouped], Vector]] = {
    "avg": _sum,
    "count": _count,
    "group": _count,
    "max": _of_floats(partial(groups.group_extremes, sign=1.0)),
    "min": _of_floats(partial(groups.group_extremes, sign=-1.0)),
    "stddev": _of_floats(_deviation),
    "stdvar": _of_floats(groups.group_variances),
    "sum": _sum,
}


def _quantile(grouped: _Grouped, q: Floats, begin: int) -> Vector:
    for value in np.unique(q[~((q >= 0) & (q <= 1))]):
        bad_quantile(grouped.notes, float(value), begin)
    return _of_floats(partial(groups.group_quantiles, q=given(q)))(grouped)


def _check_choice(aggregation: Aggregation, parameter: Floats) -> None:
    if np.isnan(parameter).any():
        raise FailedQuery("Parameter value is NaN")
    for value in parameter[np.abs(parameter) >= _LONG_MAX]:
        change = "overflows" if value > 0 else "underflows"
        raise FailedQuery(f"Scalar value {positional(float(value))} {change} int64")


def _chosen(grouped: _Grouped, parameter: Floats, is_instant: bool) -> Vector:
    """Keep some of the series of each group at each step."""
    vector = grouped.vector
    most = np.minimum(parameter, len(vector.labels)).astype(np.int64)
    ranks = np.full(vector.present.shape, len(vector.labels), np.int64)
    available = vector.present if grouped.operator == "limitk" else _only_floats(grouped)
    for _, members in _each_group(grouped):
        ranks[members] = _ranks(grouped.operator, vector.values[members], available[members])
    kept = available & (ranks < most)
    if not is_instant:
        return vector.where(kept)
    rows = np.flatnonzero(any_along(kept, 1))
    order = np.lexsort((ranks[rows, 0], grouped.rows[rows]))
    return vector.where(kept) if grouped.operator == "limitk" else vector.rows(rows[order])


def _each_group(grouped: _Grouped) -> Iterator[tuple[int, Longs]]:
    order = np.argsort(grouped.rows, kind="stable")
    ends = np.flatnonzero(np.diff(grouped.rows[order])) + 1
    for members in np.split(order, ends):
        if len(members):
            yield int(grouped.rows[members[0]]), members


def _ranks(operator: str, values: Floats, available: Flags) -> Longs:
    """By step, the place of each series in the order wanted: NaN last, missing ones after it."""
    if operator == "limitk":
        return np.cumsum(available, axis=0) - 1
    keys = -values if operator == "topk" else values
    first = np.argsort(~available, axis=0, kind="stable")
    keys = np.where(available, keys, np.nan)
    second = np.argsort(np.take_along_axis(keys, first, axis=0), axis=0, kind="stable")
    order = np.take_along_axis(first, second, axis=0)
    ranks = np.empty_like(order)
    places = np.broadcast_to(np.arange(len(values))[:, None], order.shape)
    np.put_along_axis(ranks, order, places, axis=0)
    return ranks


def _value_counts(
    aggregation: Aggregation, vector: Vector, name: str, evaluation: Evaluation
) -> Vector:
    """How many series have each value, which becomes a label."""
    if not name or not is_text(name):
        literal = aggregation.parameter
        written = literal.written if isinstance(literal, TextLiteral) else name
        raise FailedQuery(f"invalid label name {written}")
    counts: dict[LabelSet, Floats] = {}
    for row, labels in enumerate(vector.labels):
        for text, steps in _texts(vector, row):
            key = _key(with_labels(labels, {name: text}), aggregation)
            if not aggregation.is_without:
                key = with_labels(key, {name: text})
            if key not in counts:
                evaluation.count(vector.steps)
                counts[key] = np.zeros(vector.steps)
            counts[key][steps] += 1
    if not counts:
        return empty(vector.steps)
    values = np.array(list(counts.values()))
    return floats(list(counts), values, values > 0, False)


def _texts(vector: Vector, row: int) -> Iterator[tuple[str, Sequence[int]]]:
    """The texts of the values of a series, and where each is."""
    found: dict[str, list[int]] = {}
    for step in np.flatnonzero(vector.present[row]):
        histogram = None if vector.histograms is None else vector.histograms[row, step]
        value = float(vector.values[row, step])
        text = positional(value) if histogram is None else histogram_text(histogram)
        found.setdefault(text, []).append(int(step))
    yield from found.items()

"""Vector aggregations: sum, topk and others, over the series of each step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from frazil.languages.logql.series import Flags, Floats, LabelKey, LineSeries
from frazil.languages.logql.syntax import LabelGrouping, LogqlAggregation


def aggregate(aggregation: LogqlAggregation, series: Sequence[LineSeries]) -> list[LineSeries]:
    operation = aggregation.operation
    if operation.startswith("sort"):
        return _sorted(series, is_descending=operation == "sort_desc")
    groups: dict[LabelKey, list[LineSeries]] = defaultdict(list)
    for each in series:
        groups[group_key(each.labels, aggregation.grouping)].append(each)
    if operation in ("topk", "bottomk"):
        assert aggregation.parameter is not None, "the parser requires it"
        count, is_top = aggregation.parameter, operation == "topk"
        ranked = [_ranked(group, count, is_top=is_top) for group in groups.values()]
        return [one for group in ranked for one in group]
    return [_combined(operation, key, group) for key, group in groups.items()]


def group_key(labels: LabelKey, grouping: LabelGrouping | None) -> LabelKey:
    """The labels that stay; none without a grouping."""
    if grouping is None:
        return ()
    names = frozenset(grouping.labels)
    return tuple(pair for pair in labels if (pair[0] in names) != grouping.is_without)


def _combined(operation: str, key: LabelKey, group: Sequence[LineSeries]) -> LineSeries:
    values = np.stack([one.values for one in group])
    is_present = np.stack([one.is_present for one in group])
    with np.errstate(all="ignore"):
        combined = _COMBINE[operation](values, is_present)
    return LineSeries(key, combined, np.asarray(is_present.any(axis=0)))


def _sum(values: Floats, is_present: Flags) -> Floats:
    return np.asarray(np.where(is_present, values, 0.0).sum(axis=0))


def _mean(values: Floats, is_present: Flags) -> Floats:
    return np.asarray(_sum(values, is_present) / np.maximum(is_present.sum(axis=0), 1))


def _variance(values: Floats, is_present: Flags) -> Floats:
    return _mean((values - _mean(values, is_present)) ** 2, is_present)


def _least(values: Floats, is_present: Flags) -> Floats:
    return np.asarray(np.fmin.reduce(np.where(is_present, values, np.nan), axis=0))


def _most(values: Floats, is_present: Flags) -> Floats:
    return np.asarray(np.fmax.reduce(np.where(is_present, values, np.nan), axis=0))


_COMBINE: dict[str, Callable[[Floats, Flags], Floats]] = {
    "sum": _sum,
    "avg": _mean,
    "count": lambda _, is_present: is_present.sum(axis=0).astype(np.float64),
    "min": _least,
    "max": _most,
    "stddev": lambda values, is_present: np.sqrt(_variance(values, is_present)),
    "stdvar": _variance,
}


def _ranked(group: Sequence[LineSeries], count: int, *, is_top: bool) -> list[LineSeries]:
    """The largest or smallest values of each step keep their labels; of equal ones the first."""
    by_label = sorted(group, key=lambda one: one.labels)
    values = np.stack([np.where(one.is_present, one.values, np.nan) for one in by_label])
    order = np.argsort(-values if is_top else values, axis=0, kind="stable")  # NaN is last
    ranks = np.argsort(order, axis=0, kind="stable")
    kept = [
        LineSeries(one.labels, one.values, one.is_present & (ranks[index] < count))
        for index, one in enumerate(by_label)
    ]
    return _sorted([one for one in kept if one.is_present.any()], is_descending=is_top)


def _sorted(series: Sequence[LineSeries], *, is_descending: bool) -> list[LineSeries]:
    """Order by the value of the last step; of a range, clients order themselves."""
    sign = -1.0 if is_descending else 1.0

    def rank(one: LineSeries) -> tuple[bool, float, LabelKey]:
        value = float(one.values[-1]) if one.is_present[-1] else np.nan
        return bool(np.isnan(value)), 0.0 if np.isnan(value) else sign * value, one.labels

    return sorted(series, key=rank)

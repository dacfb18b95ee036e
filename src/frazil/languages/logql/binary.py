"""Binary operators between numbers and series, with matching by labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from frazil.errors import Malformed
from frazil.languages.logql.regex import anchored_regex, expand_groups
from frazil.languages.logql.series import (
    Flags,
    Floats,
    LabelKey,
    LineSeries,
    LogScalar,
    label_key,
    shown_labels,
)
from frazil.languages.logql.syntax import LogqlBinary, LogqlMatching, LogqlReplacement

Value = LogScalar | list[LineSeries]

_ARITHMETIC: dict[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
}
_COMPARISON: dict[str, Callable[[Floats, Floats], Floats]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}
_NO_MATCHING = LogqlMatching((), is_on=False)


def binary(expression: LogqlBinary, left: Value, right: Value) -> Value:
    with np.errstate(all="ignore"):
        if isinstance(left, LogScalar) and isinstance(right, LogScalar):
            values, _ = _applied(expression, np.array([left.value]), np.array([right.value]), True)
            return LogScalar(float(values[0]))
        if isinstance(left, LogScalar):
            assert not isinstance(right, LogScalar)
            return [_with_number(expression, one, left.value, is_left=True) for one in right]
        if isinstance(right, LogScalar):
            return [_with_number(expression, one, right.value, is_left=False) for one in left]
        if expression.operator in ("and", "or", "unless"):
            return _of_sets(expression, left, right)
        return _between(expression, left, right)


def _applied(
    expression: LogqlBinary, left: Floats, right: Floats, is_number: bool
) -> tuple[Floats, Floats | None]:
    """The values, and which of them a comparison keeps."""
    operator = expression.operator
    if operator in _ARITHMETIC:
        return _ARITHMETIC[operator](left, right), None
    is_true = _COMPARISON[operator](left, right)
    if expression.is_bool or is_number:
        return is_true.astype(np.float64), None
    return left, is_true


def _with_number(
    expression: LogqlBinary, series: LineSeries, number: float, *, is_left: bool
) -> LineSeries:
    other = np.full(len(series.values), number)
    first, second = (other, series.values) if is_left else (series.values, other)
    values, is_kept = _applied(expression, first, second, False)
    if is_kept is None:
        return LineSeries(series.labels, values, series.is_present)
    return LineSeries(series.labels, series.values, series.is_present & is_kept.astype(np.bool_))


def _matched_key(labels: LabelKey, matching: LogqlMatching) -> LabelKey:
    names = frozenset(matching.labels)
    return tuple(pair for pair in labels if (pair[0] in names) == matching.is_on)


def _between(
    expression: LogqlBinary, left: Sequence[LineSeries], right: Sequence[LineSeries]
) -> list[LineSeries]:
    """One to one, or with `group_left` and `group_right`, many to one."""
    matching = expression.matching or _NO_MATCHING
    is_swapped = matching.group == "right"
    many, one = (right, left) if is_swapped else (left, right)
    by_key: dict[LabelKey, LineSeries] = {}
    for series in one:
        key = _matched_key(series.labels, matching)
        if key in by_key and (by_key[key].is_present & series.is_present).any():
            raise Malformed(
                f"several series on the {'left' if is_swapped else 'right'} side match "
                f"{shown_labels(key)}; add labels to on(…), or aggregate that side"
            )
        by_key[key] = _merged(by_key[key], series) if key in by_key else series
    found: dict[LabelKey, LineSeries] = {}
    for series in many:
        key = _matched_key(series.labels, matching)
        other = by_key.get(key)
        if other is None:
            continue
        first, second = (other, series) if is_swapped else (series, other)
        values, is_kept = _applied(expression, first.values, second.values, False)
        is_present = series.is_present & other.is_present
        if is_kept is not None:
            is_present = is_present & is_kept.astype(np.bool_)
        labels = _result_labels(series.labels, other.labels, matching)
        result = LineSeries(labels, values, is_present)
        if labels in found and (found[labels].is_present & is_present).any():
            raise Malformed(
                f"several series match {shown_labels(labels)} on both sides; use group_left or "
                "group_right, or aggregate"
            )
        found[labels] = _merged(found[labels], result) if labels in found else result
    return list(found.values())


def _merged(first: LineSeries, second: LineSeries) -> LineSeries:
    """Two series that never have a value at the same step, as one."""
    values = np.where(first.is_present, first.values, second.values)
    return LineSeries(first.labels, values, first.is_present | second.is_present)


def _result_labels(many: LabelKey, one: LabelKey, matching: LogqlMatching) -> LabelKey:
    if not matching.group:
        return _matched_key(many, matching)
    others = dict(one)
    return label_key({**dict(many), **{name: others.get(name, "") for name in matching.include}})


def _of_sets(
    expression: LogqlBinary, left: Sequence[LineSeries], right: Sequence[LineSeries]
) -> list[LineSeries]:
    """`and`, `or` and `unless`, step by step."""
    matching = expression.matching or _NO_MATCHING
    is_or = expression.operator == "or"
    kept, others = (right, left) if is_or else (left, right)
    present: dict[LabelKey, Flags] = {}
    for series in others:
        key = _matched_key(series.labels, matching)
        present[key] = series.is_present | present.get(key, np.zeros_like(series.is_present))
    result = list(left) if is_or else []
    for series in kept:
        other = present.get(
            _matched_key(series.labels, matching), np.zeros_like(series.is_present)
        ).astype(np.bool_)
        mask = other if expression.operator == "and" else ~other
        result.append(LineSeries(series.labels, series.values, series.is_present & mask))
    return result


def replace_labels(replacement: LogqlReplacement, series: Sequence[LineSeries]) -> list[LineSeries]:
    """`label_replace`: a label from another, if a regular expression matches all of it."""
    compiled = anchored_regex(replacement.pattern)
    result = []
    for one in series:
        labels = dict(one.labels)
        match = compiled.search(labels.get(replacement.source, ""))
        if match is not None:
            labels[replacement.target] = expand_groups(replacement.replacement, match)
        result.append(LineSeries(label_key(labels), one.values, one.is_present))
    keys = [one.labels for one in result]
    if len(set(keys)) < len(keys):
        raise Malformed("label_replace gives several series the same labels; keep another label")
    return result

"""Binary operators between vectors and scalars."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from frazil.languages.promql.evaluation import Evaluation
from frazil.languages.promql.failures import FailedQuery
from frazil.languages.promql.histogram import NativeHistogram
from frazil.languages.promql.kernels.arrays import Flags, Floats, any_along
from frazil.languages.promql.labels import METADATA, NAME, drop, keep, label, with_labels, written
from frazil.languages.promql.operators import (
    ARITHMETIC,
    COMPARING,
    TRIMMING,
    HistogramOperator,
)
from frazil.languages.promql.points import LabelSet
from frazil.languages.promql.syntax import BinaryOperation, Matching
from frazil.languages.promql.vectors import Objects, Vector, empty, merged, no_histograms, stacked


@dataclass(slots=True)
class _Computed:
    """The values of an operator, by row and step."""

    values: Floats
    possible: Flags
    """Where the operator is defined for the two values."""
    kept: Flags
    """Where a comparison holds, or there is none."""
    histograms: Objects | None


def _computed(
    operation: BinaryOperation, left: Vector, right: Vector, present: Flags, evaluation: Evaluation
) -> _Computed:
    """Evaluate an operator between the same rows of two vectors."""
    operator = operation.operator
    with np.errstate(all="ignore"):
        if operator in ARITHMETIC:
            values = ARITHMETIC[operator](left.values, right.values)
            kept = np.ones(present.shape, np.bool_)
        elif operator in COMPARING:
            values = left.values
            kept = COMPARING[operator](left.values, right.values)
        else:
            values, kept = left.values, np.zeros(present.shape, np.bool_)
    computed = _Computed(values, present.copy(), kept & present, None)
    has_histogram = present & (left.are_histograms() | right.are_histograms())
    are_trimmed_floats = (operator in TRIMMING) & present & ~has_histogram
    if has_histogram.any() or are_trimmed_floats.any():
        special = has_histogram | are_trimmed_floats
        _compute_histograms(operation, left, right, special, computed, evaluation)
    return computed


def _compute_histograms(
    operation: BinaryOperation,
    left: Vector,
    right: Vector,
    chosen: Flags,
    computed: _Computed,
    evaluation: Evaluation,
) -> None:
    evaluate = HistogramOperator(operation.operator, evaluation.notes, operation.begin)
    computed.kept = computed.kept.copy()
    computed.histograms = no_histograms(chosen.shape)
    for row, step in zip(*np.nonzero(chosen), strict=True):
        evaluation.cancel.check()
        outcome = evaluate.between(_value(left, row, step), _value(right, row, step))
        computed.histograms[row, step] = outcome.histogram
        computed.kept[row, step] = outcome.is_kept
        computed.possible[row, step] = outcome.is_possible


def _value(vector: Vector, row: int, step: int) -> float | NativeHistogram:
    if vector.histograms is not None and vector.histograms[row, step] is not None:
        histogram: NativeHistogram = vector.histograms[row, step]
        return histogram
    return float(vector.values[row, step])


def _finished(operation: BinaryOperation, computed: _Computed) -> _Computed:
    """With `bool`, a comparison gives 0 or 1 instead of leaving a value out."""
    if not operation.is_bool:
        return replace(computed, possible=computed.possible & computed.kept)
    return replace(computed, values=computed.kept.astype(np.float64), histograms=None)


def _constant(scalar: Floats, like: Vector) -> Vector:
    values = np.broadcast_to(scalar, like.present.shape)
    return Vector(like.labels, values, like.present, like.unnamed)


def with_scalar(
    operation: BinaryOperation,
    vector: Vector,
    scalar: Floats,
    is_left: bool,
    evaluation: Evaluation,
) -> Vector:
    """Evaluate an operator between a vector, on the left or not, and a scalar."""
    constant = _constant(scalar, vector)
    left, right = (vector, constant) if is_left else (constant, vector)
    # Prometheus notes types that do not fit, but no trouble with single values.
    computed = _finished(operation, _computed(operation, left, right, vector.present, evaluation))
    is_comparison = operation.operator in COMPARING
    values = computed.values
    if is_comparison and not is_left and not operation.is_bool:
        values = vector.values
    drops_name = operation.operator in ARITHMETIC or operation.is_bool
    found = Vector(
        vector.labels, values, computed.possible, vector.unnamed | drops_name, computed.histograms
    )
    return found.rows(any_along(found.present, 1))


def _signature(labels: LabelSet, matching: Matching) -> LabelSet:
    if matching.is_on:
        return keep(labels, matching.labels)
    return drop(labels, {*matching.labels, NAME})


def between_vectors(
    operation: BinaryOperation, left: Vector, right: Vector, evaluation: Evaluation
) -> Vector:
    """Evaluate an operator between two vectors."""
    if operation.operator in ("and", "or", "unless"):
        return _set_operation(operation, left, right)
    is_swapped = operation.matching.cardinality == "one-to-many"
    many, one = (right, left) if is_swapped else (left, right)
    both = any_along(many.present, 0) & any_along(one.present, 0)
    ones = _by_signature(one, operation.matching)
    _check_one_side(operation, one, ones, both)
    manies = _by_signature(many, operation.matching)
    size = sum(len(rows) * len(ones.get(signature, ())) for signature, rows in manies.items())
    evaluation.count(size * left.steps)
    pairs = [
        (row, other, signature)
        for signature, rows in manies.items()
        for row in rows
        for other in ones.get(signature, ())
    ]
    if not pairs:
        return empty(left.steps)
    pairs.sort()
    many_rows = many.rows(np.array([row for row, _, _ in pairs]))
    one_rows = one.rows(np.array([row for _, row, _ in pairs]))
    present = many_rows.present & one_rows.present
    sides = (one_rows, many_rows) if is_swapped else (many_rows, one_rows)
    computed = _computed(operation, *sides, present, evaluation)
    labels = [
        _result_labels(operation, *pair)
        for pair in zip(many_rows.labels, one_rows.labels, strict=True)
    ]
    signatures = [signature for _, _, signature in pairs]
    _check_matches(operation.matching, signatures, labels, computed.possible)
    computed = _finished(operation, computed)
    keeps_flag = operation.operator in COMPARING and not operation.is_bool
    unnamed = many_rows.unnamed if keeps_flag else np.full(len(labels), operation.is_bool)
    found = Vector(labels, computed.values, computed.possible, unnamed, computed.histograms)
    return merged(found.rows(any_along(found.present, 1)))


def _by_signature(vector: Vector, matching: Matching) -> dict[LabelSet, list[int]]:
    """The rows that belong together."""
    rows = defaultdict(list)
    for row, labels in enumerate(vector.labels):
        rows[_signature(labels, matching)].append(row)
    return rows


def _check_one_side(
    operation: BinaryOperation, one: Vector, ones: dict[LabelSet, list[int]], both: Flags
) -> None:
    """At most one series of the side of which there is one may have a value for a match."""
    for match, rows in ones.items():
        if len(rows) < 2:
            continue
        crowded = (one.present[rows].sum(axis=0) > 1) & both
        if not crowded.any():
            continue
        step = int(np.argmax(crowded))
        first, second = sorted(written(one.labels[row]) for row in rows if one.present[row, step])[
            :2
        ]
        side = "left" if operation.matching.cardinality == "one-to-many" else "right"
        raise FailedQuery(
            f"found duplicate series for the match group {written(match)} on the {side} hand-side"
            f" of the operation: [{first}, {second}];many-to-many matching not allowed: matching"
            " labels must be unique on one side"
        )


def _check_matches(
    matching: Matching, signatures: list[LabelSet], labels: list[LabelSet], possible: Flags
) -> None:
    """At most one series of the other side may match, unless grouping is asked for."""
    is_single = matching.cardinality == "one-to-one"
    groups = defaultdict(list)
    for row, (signature, result) in enumerate(zip(signatures, labels, strict=True)):
        groups[signature, () if is_single else result].append(row)
    for rows in groups.values():
        if len(rows) > 1 and (possible[rows].sum(axis=0) > 1).any():
            raise FailedQuery(
                "multiple matches for labels: many-to-one matching must be explicit"
                " (group_left/group_right)"
                if is_single
                else "multiple matches for labels: grouping labels must ensure unique matches"
            )


def _result_labels(operation: BinaryOperation, many: LabelSet, one: LabelSet) -> LabelSet:
    matching = operation.matching
    labels = many
    if operation.operator in ARITHMETIC:
        labels = drop(labels, METADATA)
    if matching.cardinality == "one-to-one":
        chosen = matching.labels
        return keep(labels, chosen) if matching.is_on else drop(labels, chosen)
    if not matching.include:
        return labels
    return with_labels(labels, {name: label(one, name) for name in matching.include})


def _set_operation(operation: BinaryOperation, left: Vector, right: Vector) -> Vector:
    if operation.operator == "or":
        seen = _seen(operation.matching, left, right)
        return merged(stacked([left, right.where(~seen)]))
    seen = _seen(operation.matching, right, left)
    return left.where(seen if operation.operator == "and" else ~seen)


def _seen(matching: Matching, vector: Vector, other: Vector) -> Flags:
    """For each row of the other vector, the steps at which a match of this one has a value."""
    found: dict[LabelSet, Flags] = {}
    for row, labels in enumerate(vector.labels):
        key = _signature(labels, matching)
        before = found.get(key)
        present = vector.present[row]
        found[key] = present if before is None else before | present
    nothing = np.zeros(other.steps, np.bool_)
    rows = [found.get(_signature(labels, matching), nothing) for labels in other.labels]
    return np.array(rows, np.bool_).reshape(other.present.shape)

"""label_replace, label_join, absent, and sorting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import Any

import numpy as np
import re2

from frazil.errors import TooLarge
from frazil.languages.promql.failures import FailedQuery
from frazil.languages.promql.kernels.arrays import Flags, any_along
from frazil.languages.promql.labels import NAME, is_text, label, with_labels
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.languages.promql.vectors import Vector, floats, merged

LETTERS_MAX = 65_536
"""Letters of a label that a query makes."""

_REFERENCE = re.compile(r"\$(?:(\$)|\{(\w+)\}|(\w+))", re.ASCII)
_QUIET = re2.Options()
_QUIET.log_errors = False
_DIGITS = re.compile(r"(\d+)")


def label_replaced(
    vector: Vector, target: str, replacement: str, source: str, pattern: str
) -> Vector:
    """Set a label from another where that matches a pattern as a whole."""
    try:
        compiled = re2.compile(f"^(?s:{pattern})$", options=_QUIET)
    except re2.error as error:
        raise FailedQuery(f"invalid regular expression in label_replace(): {pattern}") from error
    _check_name(target, "invalid destination label name in label_replace(): ")

    def change(labels: LabelSet) -> str | None:
        text = label(labels, source)
        match = compiled.search(text)
        if match is None:
            return None
        _check_length(len(replacement) + replacement.count("$") * len(text))
        return _expanded(replacement, match)

    return _relabelled(vector, target, change)


def _check_name(name: str, message: str) -> None:
    if not name or not is_text(name):
        raise FailedQuery(f"{message}{name}")


def _check_length(letters: int) -> None:
    if letters > LETTERS_MAX:
        raise TooLarge(f"a label would have {letters} letters, more than {LETTERS_MAX}")


def _expanded(replacement: str, match: Any) -> str:
    """Put what a pattern found into `$1`, `${1}` and `$name`."""

    def group(reference: re.Match[str]) -> str:
        if reference[1]:
            return "$"
        key = reference[2] or reference[3]
        try:
            return match.group(int(key) if key.isdigit() else key) or ""
        except (IndexError, KeyError, re2.error):
            return ""

    return _REFERENCE.sub(group, replacement)


def label_joined(vector: Vector, target: str, separator: str, sources: Sequence[str]) -> Vector:
    """Set a label to others, joined."""
    for source in sources:
        _check_name(source, "invalid source label name in label_join(): ")
    _check_name(target, "invalid destination label name in label_join(): ")

    def join(labels: LabelSet) -> str:
        values = [label(labels, name) for name in sources]
        _check_length(sum(map(len, values)) + len(values) * len(separator))
        return separator.join(values)

    return _relabelled(vector, target, join)


def _relabelled(vector: Vector, target: str, change: Callable[[LabelSet], str | None]) -> Vector:
    labels, unnamed = [], vector.unnamed.copy()
    for row, before in enumerate(vector.labels):
        value = change(before)
        labels.append(before if value is None else with_labels(before, {target: value}))
        if value is not None and target == NAME:
            unnamed[row] = False
    return merged(replace(vector, labels=labels, unnamed=unnamed))


def absent(present: Flags, matchers: Iterable[LabelMatcher]) -> Vector:
    """Return 1 at the steps without any value, with the labels that matchers ask for."""
    missing = ~any_along(present, 0)[np.newaxis]
    return floats([_wanted(matchers)], np.ones(missing.shape), missing, False)


def _wanted(matchers: Iterable[LabelMatcher]) -> LabelSet:
    found: dict[str, str] = {}
    seen: set[str] = set()
    for matcher in matchers:
        if matcher.name == NAME:
            continue
        if matcher.operator == "=" and matcher.name not in seen:
            found[matcher.name] = matcher.value
            seen.add(matcher.name)
        else:
            found.pop(matcher.name, None)
    return with_labels((), found)


def sorted_by_value(vector: Vector, is_descending: bool) -> Vector:
    """Sort series by their only value, NaN last; histograms are left out."""
    chosen = vector.rows(any_along(vector.are_floats(), 1))
    values = chosen.values[:, -1] if chosen.steps else np.zeros(len(chosen.labels))
    order = np.argsort(-values if is_descending else values, kind="stable")
    return chosen.rows(order)


def sorted_by_labels(vector: Vector, names: Sequence[str], is_descending: bool) -> Vector:
    """Sort series by some labels, digits by their number, then by all labels."""

    def compare(one: int, other: int) -> int:
        for name in names:
            first, second = label(vector.labels[one], name), label(vector.labels[other], name)
            if first != second:
                return -1 if _natural(first) < _natural(second) else 1
        return -1 if vector.labels[one] < vector.labels[other] else 1

    order = sorted(range(len(vector.labels)), key=cmp_to_key(compare), reverse=is_descending)
    return vector.rows(np.array(order, np.int64))


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = [part for part in _DIGITS.split(text) if part]
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]

"""SeriesFilter: conditions on labels, compiled. Regular expressions are RE2's and cover the whole
value; a dot matches a newline as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import re2

from frazil.errors import Malformed
from frazil.languages.prometheus.names import NAME, is_legacy_label, label_name_of
from frazil.languages.promql.points import LabelMatcher, LabelSet

Test = Callable[[str], bool]


def test_of(matcher: LabelMatcher) -> Test:
    """Return whether a value matches, as a function. `Malformed` if it is no regular expression."""
    wanted = matcher.value
    if matcher.operator == "=":
        return lambda value: value == wanted
    if matcher.operator == "!=":
        return lambda value: value != wanted
    pattern = _compiled(wanted)
    if matcher.operator == "=~":
        return lambda value: pattern.fullmatch(value) is not None
    return lambda value: pattern.fullmatch(value) is None


def _compiled(text: str) -> re2._Regexp[str]:
    try:
        return re2.compile(f"(?s:{text})")
    except re2.error as error:
        raise Malformed(f"the regular expression {text!r} cannot be parsed: {error}") from None


class SeriesFilter:
    """Conditions on the labels of a series, without those on its name."""

    def __init__(self, matchers: Sequence[LabelMatcher]) -> None:
        self._tests = [
            (matcher.name, test_of(matcher)) for matcher in matchers if matcher.name != NAME
        ]

    def selects(self, labels: LabelSet | None) -> bool:
        """Return whether a series with these labels matches; None never does."""
        if labels is None or not self._tests:
            return labels is not None
        values = dict(labels)
        return all(test(value_of(values, name)) for name, test in self._tests)


def value_of(labels: Mapping[str, str], name: str) -> str:
    """Return the value of a label, empty without it. A name with other characters than the labels
    have is found as it is escaped."""
    value = labels.get(name)
    if value is None and not is_legacy_label(name):
        value = labels.get(label_name_of(name) or "")
    return value or ""

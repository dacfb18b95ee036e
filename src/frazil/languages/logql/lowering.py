"""lowered: as much of a selection as SQL can decide.

    {service_name="cart"} |= "error" | json | status="500" | trace_id="ab12"

Selectors, line filters and label filters before a parser are conditions. A label filter behind a
parser may be about a field of the line: then the line must have its value somewhere, unless the
record has the label. The rows that are left go through the pipeline, unless it `is_exact`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from frazil.languages.logql.labels import LEVEL, LEVEL_ALIASES, label_sql, level_condition
from frazil.languages.logql.line_parsers import line_pattern
from frazil.languages.logql.regex import anchored, anchored_regex
from frazil.languages.logql.syntax import (
    DropStage,
    JsonStage,
    LabelFilter,
    LabelFormat,
    LabelTest,
    LabelTests,
    LineFilter,
    LogfmtStage,
    LogSelection,
    PatternStage,
    RegexpStage,
    Stage,
    StreamMatcher,
)
from frazil.query import label_name
from frazil.query import sql_text as text
from frazil.query import sql_texts as texts

ERROR_LABELS = frozenset({"__error__", "__error_details__"})

_LITERAL = re.compile(r"[A-Za-z0-9_ /:.-]*")
_PLAIN = re.compile(r"[A-Za-z0-9_ .-]{2,}")
"""Values that JSON and logfmt write as they are."""
_CONTAINS = re.compile(r'\{\{-?\s*contains\s+("[^"\\]*"|`[^`]*`)\s+__line__\s*-?\}\}')


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredSelection:
    conditions: tuple[str, ...]
    is_exact: bool
    """The conditions select exactly the lines, and no stage changes lines or labels."""


def lowered(selection: LogSelection) -> LoweredSelection:
    state = _Lowering()
    for matcher in selection.matchers:
        state.conditions += matcher_conditions(matcher)
    for stage in selection.stages:
        state.add(stage)
    return LoweredSelection(conditions=tuple(state.conditions), is_exact=state.is_exact)


def matcher_conditions(matcher: StreamMatcher) -> list[str]:
    """SQL of a matcher of a selector."""
    name = LEVEL if matcher.name in LEVEL_ALIASES else matcher.name
    return _matched(StreamMatcher(name, matcher.operator, matcher.value))


@dataclass(slots=True)
class _Lowering:
    conditions: list[str] = field(default_factory=list)
    is_exact: bool = True
    is_line_raw: bool = True
    is_parsed: bool = False
    """Labels may come from the line."""
    are_labels_known: bool = True
    virtual: dict[str, str] = field(default_factory=dict)
    """Labels that tell whether the line contains a text -> SQL."""

    def add(self, stage: Stage) -> None:
        if isinstance(stage, LineFilter):
            condition = line_condition(stage) if self.is_line_raw else None
            self._note(condition)
        elif isinstance(stage, LabelFilter):
            condition, is_exact = self._test(stage.test)
            self._note(condition)
            self.is_exact = self.is_exact and is_exact
        elif isinstance(stage, DropStage):
            if any(choice.name not in ERROR_LABELS for choice in stage.choices):
                self._forget_labels()
        elif isinstance(stage, JsonStage | LogfmtStage | PatternStage | RegexpStage):
            self.is_parsed = True
            self.is_exact = False
        elif isinstance(stage, LabelFormat) and self.is_line_raw:
            self._format(stage)
        else:
            self.is_line_raw = False
            self._forget_labels()

    def _note(self, condition: str | None) -> None:
        if condition is None:
            self.is_exact = False
        elif condition:
            self.conditions.append(condition)

    def _forget_labels(self) -> None:
        self.are_labels_known = False
        self.virtual.clear()
        self.is_exact = False

    def _format(self, stage: LabelFormat) -> None:
        self.is_exact = False
        for assignment in stage.assignments:
            found = _CONTAINS.fullmatch(assignment.value) if assignment.is_template else None
            if found is None:
                self._forget_labels()
                return
            self.virtual[assignment.label] = f"contains(body, {text(found[1][1:-1])})"

    def _test(self, test: LabelTest) -> tuple[str | None, bool]:
        """A condition that every line must meet, None if unknown, and whether it suffices."""
        if isinstance(test, LabelTests):
            return self._joined(test)
        if not isinstance(test, StreamMatcher) or not self.are_labels_known:
            return None, False
        if test.name in ERROR_LABELS:
            return ("" if anchored_match(test, "") else None), not self.is_parsed
        if test.name in self.virtual:
            return self._virtual(test), False
        condition = " AND ".join(_matched(test)) or "true"
        if not self.is_parsed:
            return condition, True
        if test.operator != "=" or not _PLAIN.fullmatch(test.value):
            return None, False
        return f"(({condition}) OR contains(body, {text(test.value)}))", False

    def _virtual(self, test: StreamMatcher) -> str | None:
        condition = f"coalesce({self.virtual[test.name]}, false)"
        meant = [value for value in ("true", "false") if anchored_match(test, value)]
        if len(meant) != 1:
            return None
        return condition if meant == ["true"] else f"NOT {condition}"

    def _joined(self, test: LabelTests) -> tuple[str | None, bool]:
        parts = [self._test(part) for part in test.tests]
        conditions = [condition for condition, _ in parts if condition]
        is_exact = all(exact for _, exact in parts)
        if test.joined_by == "or":
            if len(conditions) < len(parts):
                return None, False
            return f"({' OR '.join(conditions)})", is_exact
        if not conditions:
            return None, False
        return f"({' AND '.join(conditions)})", is_exact and len(conditions) == len(parts)


def anchored_match(matcher: StreamMatcher, value: str) -> bool:
    """Whether a text satisfies a matcher."""
    if matcher.operator == "=":
        return value == matcher.value
    if matcher.operator == "!=":
        return value != matcher.value
    is_match = anchored_regex(matcher.value).search(value) is not None
    return is_match == (matcher.operator == "=~")


def _matched(matcher: StreamMatcher) -> list[str]:
    name = label_name(matcher.name)
    if name == LEVEL:
        return [level_condition(lambda level: anchored_match(matcher, level))]
    sql = label_sql(name)
    value = matcher.value
    if matcher.operator in ("=", "!="):
        return [_equal(sql, value, is_equal=matcher.operator == "=")]
    choices = value.split("|")
    if all(_LITERAL.fullmatch(choice) and "." not in choice for choice in choices):
        return [_one_of(sql, choices, is_one=matcher.operator == "=~")]
    if value in (".*", ".+"):
        is_any = matcher.operator == "=~"
        if value == ".*":
            return [] if is_any else ["false"]
        return [_equal(sql, "", is_equal=not is_any)]
    sign = "" if matcher.operator == "=~" else "NOT "
    return [f"{sign}matches_regex(coalesce({sql}, ''), {text(anchored(value))})"]


def _equal(sql: str, value: str, *, is_equal: bool) -> str:
    if value:
        return f"{sql} = {text(value)}" if is_equal else f"({sql} IS DISTINCT FROM {text(value)})"
    return f"coalesce({sql}, '') {'=' if is_equal else '<>'} ''"


def _one_of(sql: str, choices: Sequence[str], *, is_one: bool) -> str:
    if "" in choices:
        sql = f"coalesce({sql}, '')"
    if is_one:
        return f"{sql} IN ({texts(choices)})"
    return f"({sql} IS NULL OR {sql} NOT IN ({texts(choices)}))"


def line_condition(stage: LineFilter) -> str | None:
    """SQL of a line filter; empty if all lines pass, None if SQL cannot tell."""
    if any(needle.is_ip for needle in stage.needles):
        return None
    is_wanted = stage.operator[0] == "|"
    tests = [_line_test(stage.operator, needle.value) for needle in stage.needles]
    if "true" in tests:
        return "" if is_wanted else "false"
    joined = " OR ".join(tests)
    return f"({joined})" if is_wanted else f"(({joined}) IS NOT TRUE)"


def _line_test(operator: str, value: str) -> str:
    if operator in ("|=", "!="):
        return f"contains(body, {text(value)})" if value else "true"
    if operator in ("|~", "!~"):
        if value and _LITERAL.fullmatch(value) and "." not in value:
            return f"contains(body, {text(value)})"
        return f"matches_regex(coalesce(body, ''), {text(value)})"
    regex = line_pattern(value, needs_name=False).regex()
    return f"matches_regex(coalesce(body, ''), {text(regex)})"

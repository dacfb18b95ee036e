"""logql_text: a tree as LogQL, in one form of writing."""

from __future__ import annotations

import json

from frazil.languages.logql.series import sample_text
from frazil.languages.logql.syntax import (
    DecolorizeStage,
    DropStage,
    Expression,
    Extraction,
    IpTest,
    JsonStage,
    KeepStage,
    LabelChoice,
    LabelFilter,
    LabelFormat,
    LabelGrouping,
    LabelTest,
    LabelTests,
    LineFilter,
    LineFormat,
    LogfmtStage,
    LogqlAggregation,
    LogqlBinary,
    LogqlMatching,
    LogqlNumber,
    LogqlReplacement,
    LogqlVector,
    LogRange,
    LogSelection,
    NumberTest,
    PatternStage,
    RegexpStage,
    Stage,
    StreamMatcher,
    Unwrap,
)
from frazil.languages.logql.units import duration_text


def logql_text(expression: Expression) -> str:
    if isinstance(expression, LogSelection):
        return _selection(expression)
    if isinstance(expression, LogqlNumber):
        return sample_text(expression.value)
    if isinstance(expression, LogqlVector):
        return f"vector({sample_text(expression.value)})"
    if isinstance(expression, LogqlReplacement):
        texts = (expression.target, expression.replacement, expression.source, expression.pattern)
        return f"label_replace({', '.join([logql_text(expression.inner), *map(quoted, texts)])})"
    if isinstance(expression, LogqlBinary):
        return _binary(expression)
    if isinstance(expression, LogqlAggregation):
        parameter = "" if expression.parameter is None else f"{expression.parameter}, "
        head = f"{expression.operation}{_grouping(expression.grouping)}"
        return f"{head} ({parameter}{logql_text(expression.inner)})"
    return _range(expression)


def quoted(text: str) -> str:
    """A text in quotes, or in backquotes if that spares escapes."""
    if "`" not in text and ("\\" in text or '"' in text):
        return f"`{text}`"
    return json.dumps(text, ensure_ascii=False)


def _label(name: str) -> str:
    is_plain = name.replace("_", "a").replace(":", "a").isalnum() and not name[0].isdigit()
    return name if is_plain and name.isascii() else quoted(name)


def _matcher(matcher: StreamMatcher) -> str:
    return f"{_label(matcher.name)}{matcher.operator}{quoted(matcher.value)}"


def _selection(selection: LogSelection) -> str:
    selector = "{" + ", ".join(map(_matcher, selection.matchers)) + "}"
    return " ".join([selector, *map(_stage, selection.stages)])


def _stage(stage: Stage) -> str:
    if isinstance(stage, LineFilter):
        needles = (
            f"ip({quoted(needle.value)})" if needle.is_ip else quoted(needle.value)
            for needle in stage.needles
        )
        return f"{stage.operator} {' or '.join(needles)}"
    if isinstance(stage, LabelFilter):
        return f"| {_test(stage.test)}"
    return f"| {_named(stage)}"


def _named(stage: Stage) -> str:
    if isinstance(stage, JsonStage):
        return f"json{_extractions(stage.extractions)}"
    if isinstance(stage, LogfmtStage):
        flags = (" --strict" if stage.is_strict else "") + (
            " --keep-empty" if stage.keeps_empty else ""
        )
        return f"logfmt{flags}{_extractions(stage.extractions)}"
    if isinstance(stage, PatternStage):
        return f"pattern {quoted(stage.pattern)}"
    if isinstance(stage, RegexpStage):
        return f"regexp {quoted(stage.pattern)}"
    if isinstance(stage, LineFormat):
        return f"line_format {quoted(stage.template)}"
    if isinstance(stage, LabelFormat):
        pairs = (
            f"{_label(each.label)}={quoted(each.value) if each.is_template else _label(each.value)}"
            for each in stage.assignments
        )
        return f"label_format {', '.join(pairs)}"
    if isinstance(stage, DropStage | KeepStage):
        name = "drop" if isinstance(stage, DropStage) else "keep"
        return f"{name} {', '.join(map(_choice, stage.choices))}"
    return "decolorize" if isinstance(stage, DecolorizeStage) else "unpack"


def _choice(choice: LabelChoice) -> str:
    return _label(choice.name) if choice.matcher is None else _matcher(choice.matcher)


def _extractions(extractions: tuple[Extraction, ...]) -> str:
    pairs = (f"{_label(each.label)}={quoted(each.source)}" for each in extractions)
    return f" {', '.join(pairs)}" if extractions else ""


def _test(test: LabelTest) -> str:
    if isinstance(test, LabelTests):
        parts = (
            f"({_test(part)})" if isinstance(part, LabelTests) else _test(part)
            for part in test.tests
        )
        return f" {test.joined_by} ".join(parts)
    if isinstance(test, NumberTest):
        return f"{_label(test.name)} {test.operator} {test.written}"
    if isinstance(test, IpTest):
        return f"{_label(test.name)}{test.operator}ip({quoted(test.value)})"
    return _matcher(test)


def _range(aggregation: LogRange) -> str:
    parameter = "" if aggregation.parameter is None else f"{sample_text(aggregation.parameter)}, "
    unwrap = "" if aggregation.unwrap is None else f" {_unwrap(aggregation.unwrap)}"
    offset = f" offset {duration_text(aggregation.offset_ns)}" if aggregation.offset_ns else ""
    window = f"[{duration_text(aggregation.range_ns)}]{offset}"
    inside = f"{parameter}{_selection(aggregation.selection)}{unwrap} {window}"
    return f"{aggregation.operation}({inside}){_grouping(aggregation.grouping)}"


def _unwrap(unwrap: Unwrap) -> str:
    label = _label(unwrap.label)
    converted = f"{unwrap.conversion}({label})" if unwrap.conversion else label
    return " ".join([f"| unwrap {converted}", *(f"| {_test(test)}" for test in unwrap.tests)])


def _grouping(grouping: LabelGrouping | None) -> str:
    if grouping is None:
        return ""
    word = "without" if grouping.is_without else "by"
    return f" {word} ({', '.join(map(_label, grouping.labels))})"


def _binary(expression: LogqlBinary) -> str:
    is_bool = " bool" if expression.is_bool else ""
    matching = "" if expression.matching is None else f" {_matching(expression.matching)}"
    sides = [
        f"({logql_text(side)})" if isinstance(side, LogqlBinary) else logql_text(side)
        for side in (expression.left, expression.right)
    ]
    return f"{sides[0]} {expression.operator}{is_bool}{matching} {sides[1]}"


def _matching(matching: LogqlMatching) -> str:
    word = "on" if matching.is_on else "ignoring"
    text = f"{word} ({', '.join(map(_label, matching.labels))})"
    if matching.group:
        text += f" group_{matching.group} ({', '.join(map(_label, matching.include))})"
    return text

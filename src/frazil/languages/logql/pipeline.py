"""compile_stages: the stages of a query as one function over lines."""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from frazil.languages.logql import line_parsers
from frazil.languages.logql.labels import LEVEL, LEVEL_ALIASES
from frazil.languages.logql.line_parsers import ParsedLine
from frazil.languages.logql.lowering import anchored_match
from frazil.languages.logql.regex import anchored_regex, compiled_regex
from frazil.languages.logql.syntax import (
    DecolorizeStage,
    DropStage,
    IpTest,
    JsonStage,
    KeepStage,
    LabelChoice,
    LabelFilter,
    LabelFormat,
    LabelTest,
    LabelTests,
    LineFilter,
    LineFormat,
    LineNeedle,
    LogfmtStage,
    NumberTest,
    PatternStage,
    RegexpStage,
    Stage,
    StreamMatcher,
    UnpackStage,
)
from frazil.languages.logql.template_functions import TemplateFailure
from frazil.languages.logql.templates import TemplateScope, compile_template
from frazil.languages.logql.units import size_bytes, value_duration_s
from frazil.query import label_name

ERROR = "__error__"
ERROR_DETAILS = "__error_details__"
EXTRACTED = "_extracted"

FILTER_ERROR = "LabelFilterErr"
TEMPLATE_ERROR = "TemplateFormatErr"


class LogLine:
    """A line on its way through a pipeline. `stream` and `metadata` are replaced, not changed."""

    __slots__ = ("line", "metadata", "parsed", "stream", "time_ns")

    def __init__(
        self, time_ns: int, line: str, stream: Mapping[str, str], metadata: Mapping[str, str]
    ) -> None:
        self.time_ns = time_ns
        self.line = line
        self.stream = stream
        self.metadata = metadata
        self.parsed: dict[str, str] = {}

    def get(self, name: str) -> str:
        """A label, empty if the line lacks it. `level` is the severity if nothing else is."""
        for labels in (self.parsed, self.metadata, self.stream):
            if name in labels:
                return labels[name]
        return self.metadata.get(LEVEL, "") if name in LEVEL_ALIASES else ""

    def set(self, name: str, value: str) -> None:
        """Set a label, whatever had this name. An empty value removes it."""
        self.remove(name)
        if value:
            self.parsed[name] = value

    def remove(self, name: str) -> None:
        self.parsed.pop(name, None)
        if name in self.metadata:
            self.metadata = {key: self.metadata[key] for key in self.metadata if key != name}
        if name in self.stream:
            self.stream = {key: self.stream[key] for key in self.stream if key != name}

    def fail(self, error: str, details: str) -> None:
        """Note what went wrong; the first error counts."""
        if ERROR not in self.parsed:
            self.parsed[ERROR] = error
            self.parsed[ERROR_DETAILS] = details

    def labels(self) -> dict[str, str]:
        return {**self.stream, **self.metadata, **self.parsed}


Step = Callable[[LogLine], bool]
"""Changes a line, and returns whether it stays."""


def compile_stages(stages: Sequence[Stage]) -> list[Step]:
    return [_COMPILERS[type(stage)](stage) for stage in stages]


def passes(line: LogLine, steps: Sequence[Step]) -> bool:
    return all(step(line) for step in steps)


# Line filters


def _line_filter(stage: LineFilter) -> Step:
    tests = [_needle_test(stage.operator, needle) for needle in stage.needles]
    is_wanted = stage.operator[0] == "|"
    return lambda line: any(test(line.line) for test in tests) == is_wanted


def _needle_test(sign: str, needle: LineNeedle) -> Callable[[str], bool]:
    if needle.is_ip:
        is_inside = address_test(needle.value)
        return lambda text: any(is_inside(found) for found in _ADDRESS.findall(text))
    if sign in ("|=", "!="):
        return lambda text: needle.value in text
    pattern = needle.value
    if sign in ("|>", "!>"):
        pattern = line_parsers.line_pattern(pattern, needs_name=False).regex()
    search = compiled_regex(pattern).search
    return lambda text: search(text) is not None


_ADDRESS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|[0-9A-Fa-f:]{0,39}:[0-9A-Fa-f:]{1,39}(?:\.\d{1,3}){0,3}"
)


def address_test(wanted: str) -> Callable[[str], bool]:
    """Whether a text is an address that is wanted: one, a network, or a range."""
    if "-" in wanted:
        first, _, last = wanted.partition("-")
        low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
    else:
        network = ipaddress.ip_network(wanted, strict=False)
        low, high = network[0], network[-1]

    def is_inside(text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return address.version == low.version and int(low) <= int(address) <= int(high)

    return is_inside


# Parsers


def _json(stage: JsonStage) -> Step:
    if not stage.extractions:
        return partial(_parse, line_parsers.parse_json)
    paths = [(each.label, line_parsers.json_path(each.source)) for each in stage.extractions]
    return partial(_parse, lambda text: line_parsers.parse_json_paths(text, paths))


def _logfmt(stage: LogfmtStage) -> Step:
    read = partial(
        line_parsers.parse_logfmt, is_strict=stage.is_strict, keeps_empty=stage.keeps_empty
    )
    if not stage.extractions:
        return partial(_parse, read)

    def chosen(text: str) -> ParsedLine:
        parsed = read(text)
        labels = {e.label: parsed.labels.get(label_name(e.source), "") for e in stage.extractions}
        return ParsedLine(labels, parsed.error, parsed.details)

    return partial(_parse, chosen)


def _pattern(stage: PatternStage) -> Step:
    pattern = line_parsers.line_pattern(stage.pattern, needs_name=True)
    return partial(_parse, lambda text: ParsedLine(pattern.find(text)))


def _regexp(stage: RegexpStage) -> Step:
    compiled = line_parsers.named_regex(stage.pattern)
    return partial(_parse, lambda text: line_parsers.parse_regex(text, compiled))


def _unpack(_: UnpackStage) -> Step:
    return partial(_parse, line_parsers.unpack)


def _parse(read: Callable[[str], ParsedLine], line: LogLine) -> bool:
    """Add the labels of a line. What the stream has keeps its name; the other gets a suffix."""
    parsed = read(line.line)
    for name, value in parsed.labels.items():
        line.parsed[name + EXTRACTED if name in line.stream else name] = value
    if parsed.error:
        line.fail(parsed.error, parsed.details)
    if parsed.line is not None:
        line.line = parsed.line
    return True


def _decolorize(_: DecolorizeStage) -> Step:
    def step(line: LogLine) -> bool:
        line.line = line_parsers.without_colors(line.line)
        return True

    return step


# Label filters


def _label_filter(stage: LabelFilter) -> Step:
    return label_test(stage.test)


def label_test(test: LabelTest) -> Step:
    if isinstance(test, LabelTests):
        steps = [label_test(part) for part in test.tests]
        return partial(_any if test.joined_by == "or" else _all, steps)
    if isinstance(test, StreamMatcher):
        return _text_test(test)
    return _ip_test(test) if isinstance(test, IpTest) else _number_test(test)


def _all(steps: list[Step], line: LogLine) -> bool:
    return all(step(line) for step in steps)


def _any(steps: list[Step], line: LogLine) -> bool:
    return any(step(line) for step in steps)


def _text_test(test: StreamMatcher) -> Step:
    name, value = test.name, test.value
    if test.operator == "=":
        return lambda line: line.get(name) == value
    if test.operator == "!=":
        return lambda line: line.get(name) != value
    search = anchored_regex(value).search
    is_wanted = test.operator == "=~"
    return lambda line: (search(line.get(name)) is not None) == is_wanted


def _ip_test(test: IpTest) -> Step:
    is_inside = address_test(test.value)
    is_wanted = test.operator == "="
    return lambda line: is_inside(line.get(test.name)) == is_wanted


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def number_of(text: str) -> float | None:
    """A text as a number; None if it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


_READ: dict[str, Callable[[str], float | None]] = {
    "number": number_of,
    "duration": value_duration_s,
    "bytes": size_bytes,
}


def _number_test(test: NumberTest) -> Step:
    """A line without the label does not stay; one whose value cannot be read stays, as an error."""
    compare, read = _COMPARE[test.operator], _READ[test.unit]

    def step(line: LogLine) -> bool:
        text = line.get(test.name)
        if not text:
            return False
        value = read(text)
        if value is None:
            line.fail(FILTER_ERROR, f"{test.name} is {text!r}, which is no {test.unit}")
            return True
        return compare(value, test.value)

    return step


# Formats


def _scope(line: LogLine) -> TemplateScope:
    return TemplateScope(line.labels(), line.line, line.time_ns)


def _line_format(stage: LineFormat) -> Step:
    write = compile_template(stage.template)

    def step(line: LogLine) -> bool:
        try:
            line.line = write(_scope(line))
        except TemplateFailure as failure:
            line.fail(TEMPLATE_ERROR, str(failure))
        return True

    return step


def _label_format(stage: LabelFormat) -> Step:
    writers = [
        (each, compile_template(each.value) if each.is_template else None)
        for each in stage.assignments
    ]

    def step(line: LogLine) -> bool:
        for each, write in writers:
            if write is None:
                value = line.get(each.value)
                if value:
                    line.remove(each.value)
                    line.set(each.label, value)
                continue
            try:
                line.set(each.label, write(_scope(line)))
            except TemplateFailure as failure:
                line.fail(TEMPLATE_ERROR, str(failure))
        return True

    return step


def _drop(stage: DropStage) -> Step:
    def step(line: LogLine) -> bool:
        for choice in stage.choices:
            if _is_chosen(choice, line):
                line.remove(choice.name)
        return True

    return step


def _keep(stage: KeepStage) -> Step:
    def step(line: LogLine) -> bool:
        kept = {choice.name for choice in stage.choices if _is_chosen(choice, line)}
        kept |= {ERROR, ERROR_DETAILS}
        line.stream = {name: value for name, value in line.stream.items() if name in kept}
        line.metadata = {name: value for name, value in line.metadata.items() if name in kept}
        line.parsed = {name: value for name, value in line.parsed.items() if name in kept}
        return True

    return step


def _is_chosen(choice: LabelChoice, line: LogLine) -> bool:
    return choice.matcher is None or anchored_match(choice.matcher, line.get(choice.name))


_COMPILERS: dict[type, Callable[[Any], Step]] = {
    LineFilter: _line_filter,
    JsonStage: _json,
    LogfmtStage: _logfmt,
    PatternStage: _pattern,
    RegexpStage: _regexp,
    UnpackStage: _unpack,
    DecolorizeStage: _decolorize,
    LabelFilter: _label_filter,
    LineFormat: _line_format,
    LabelFormat: _label_format,
    DropStage: _drop,
    KeepStage: _keep,
}

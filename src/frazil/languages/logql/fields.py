"""detected_fields: fields that lines have, as JSON, as logfmt, or as attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.languages.logql.line_parsers import DEPTH_MAX, json_object, parse_json, parse_logfmt
from frazil.languages.logql.pipeline import EXTRACTED, LogLine, number_of
from frazil.languages.logql.units import size_bytes, value_duration_s
from frazil.query import label_name

JSON, LOGFMT = "json", "logfmt"
VALUES_MAX = 10_000
"""Distinct values of a field that are counted."""
_WHOLE = re.compile(r"[-+]?\d+")


@dataclass(slots=True)
class DetectedField:
    """A field, the parsers that find it, and its values in the lines that were read."""

    name: str
    parsers: list[str] = field(default_factory=list)
    values: dict[str, None] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    """Where JSON has it."""

    @property
    def type(self) -> str:
        """The narrowest type that all values have."""
        for name, is_of in _TYPES:
            if self.values and all(map(is_of, self.values)):
                return name
        return "string"


_TYPES = (
    ("boolean", lambda text: text in ("true", "false")),
    ("int", lambda text: _WHOLE.fullmatch(text) is not None),
    ("float", lambda text: number_of(text) is not None),
    ("duration", lambda text: value_duration_s(text) is not None),
    ("bytes", lambda text: text[-1:].lower() == "b" and size_bytes(text) is not None),
)


def detected_fields(lines: Sequence[LogLine]) -> list[DetectedField]:
    """Fields of lines, those of most lines first. Labels of streams are none."""
    found: dict[str, DetectedField] = {}
    counts: dict[str, int] = {}

    def note(name: str, value: str, parser: str) -> None:
        one = found.setdefault(name, DetectedField(name))
        counts[name] = counts.get(name, 0) + 1
        if parser and parser not in one.parsers:
            one.parsers.append(parser)
        if value and len(one.values) < VALUES_MAX:
            one.values[value] = None

    for line in lines:
        for name, value in line.metadata.items():
            note(name, value, "")
        parser, labels = _parsed(line.line)
        for name, value in labels.items():
            note(name + EXTRACTED if name in line.stream else name, value, parser)
        if parser == JSON:
            for path in _paths(json_object(line.line), ()):
                name = label_name("_".join(path))
                found[name + EXTRACTED if name in line.stream else name].path = path
    return sorted(found.values(), key=lambda one: (-counts[one.name], one.name))


def _paths(value: Any, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Where the labels of an object are, as `parse_json` finds them."""
    for key, member in value.items():
        path = (*before, key)
        if isinstance(member, dict) and len(path) <= DEPTH_MAX:
            yield from _paths(member, path)
        elif isinstance(member, str | int | float | bool):
            yield path


def _parsed(line: str) -> tuple[str, dict[str, str]]:
    """The parser of a line, and its labels; none of words without `=`."""
    if line.lstrip().startswith("{"):
        parsed = parse_json(line)
        return ("", {}) if parsed.error else (JSON, dict(parsed.labels))
    if "=" in line:
        return LOGFMT, dict(parse_logfmt(line, is_strict=False, keeps_empty=False).labels)
    return "", {}

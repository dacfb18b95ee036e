"""Parsers of lines: JSON, logfmt, patterns, regular expressions.

Each returns labels by name, as text, and the reason if the line is something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from frazil.errors import Malformed
from frazil.languages.logql.regex import compiled_regex
from frazil.query import label_name

DEPTH_MAX = 64
"""Nested objects of a line; deeper ones are left out."""

JSON_ERROR = "JSONParserErr"
LOGFMT_ERROR = "LogfmtParserErr"
PACKED_LINE = "_entry"

_ANSI = re.compile(r"\x1b\[[0-9;?]*+[A-Za-z]|\x1b\][^\x07\x1b]{0,256}\x07|\x9b[0-9;?]*[A-Za-z]")
_PAIR = re.compile(r'([^\s="]++)(?:(=)("(?:[^"\\]|\\.)*"|[^\s"]*))?(?=\s|$)|(\S++)', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_CAPTURE = re.compile(r"<([A-Za-z_][A-Za-z0-9_]*)>")
_STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_\-]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]')


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """Labels of a line; `error` is the name of Loki for what went wrong, `details` a sentence."""

    labels: Mapping[str, str]
    error: str = ""
    details: str = ""
    line: str | None = None
    """The line, if the parser replaces it."""


def without_colors(line: str) -> str:
    return _ANSI.sub("", line)


# JSON


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_constant)


def json_object(line: str) -> dict[str, Any] | ParsedLine:
    """A line as an object, its numbers as they are written; what is wrong if it is none."""
    try:
        value = _DECODER.decode(line)
    except ValueError as error:
        return ParsedLine({}, JSON_ERROR, str(error))
    except RecursionError:
        return ParsedLine({}, JSON_ERROR, "it is nested too deeply")
    if not isinstance(value, dict):
        return ParsedLine({}, JSON_ERROR, "it is not an object")
    return _whole_characters(value) if _HALF.search(line) else value


def _whole_characters(value: Any) -> Any:
    """Replace halves of characters, which JSON can escape, and UTF-8 cannot encode."""
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_whole_characters(member) for member in value]
    if isinstance(value, str) and not isinstance(value, _Number):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def parse_json(line: str) -> ParsedLine:
    """All fields; those of objects are joined by underscores, lists are left out."""
    value = json_object(line)
    if isinstance(value, ParsedLine):
        return value
    return ParsedLine(dict(_flattened(value, "", 0)))


def _flattened(fields: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        name = label_name(prefix + key)
        if isinstance(value, str):
            yield name, str(value)
        elif isinstance(value, bool):
            yield name, "true" if value else "false"
        elif isinstance(value, dict) and depth < DEPTH_MAX:
            yield from _flattened(value, f"{name}_", depth + 1)


@lru_cache(maxsize=256)
def json_path(path: str) -> tuple[str | int, ...]:
    """Parse `a.b[0]["c d"]`. `Malformed` if it is no path."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (at == 0 and path.startswith(".")):
            raise Malformed(f'{path!r} is no path; write a.b[0] or a["b c"]')
        if step[2] is not None:
            steps.append(int(step[2]))
        elif step[3] is not None:
            steps.append(re.sub(r"\\(.)", r"\1", step[3]))
        else:
            steps.append(step[1])
        at = step.end()
    if not steps:
        raise Malformed("the path is empty; write a.b[0]")
    return tuple(steps)


def parse_json_paths(line: str, paths: Sequence[tuple[str, tuple[str | int, ...]]]) -> ParsedLine:
    """These labels only; one that the line does not have is empty."""
    value = json_object(line)
    if isinstance(value, ParsedLine):
        return ParsedLine({name: "" for name, _ in paths}, value.error, value.details)
    return ParsedLine({name: _text_at(value, path) for name, path in paths})


def _text_at(value: Any, path: tuple[str | int, ...]) -> str:
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return ""
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return ""
            value = value[step]
    if isinstance(value, str):
        return str(value)
    return "" if value is None else _json_text(value)


def _json_text(value: Any) -> str:
    """JSON without spaces, numbers as they were written."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        members = (f"{json.dumps(k, ensure_ascii=False)}:{_json_text(v)}" for k, v in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def unpack(line: str) -> ParsedLine:
    """Labels that were packed into a line, and the line in them."""
    value = json_object(line)
    if isinstance(value, ParsedLine):
        return value
    texts = {
        key: str(text)
        for key, text in value.items()
        if isinstance(text, str) and not isinstance(text, _Number)
    }
    packed = texts.pop(PACKED_LINE, None)
    return ParsedLine({label_name(key): text for key, text in texts.items()}, line=packed)


# logfmt


def parse_logfmt(line: str, *, is_strict: bool, keeps_empty: bool) -> ParsedLine:
    """`key=value` pairs. What is none is skipped, or if `is_strict`, an error."""
    labels: dict[str, str] = {}
    for pair in _PAIR.finditer(line):
        if pair[1] is None:
            if is_strict:
                details = f"no key=value at character {pair.start(4) + 1}"
                return ParsedLine(labels, LOGFMT_ERROR, details)
            continue
        value = pair[3] or ""
        if value.startswith('"'):
            value = _unquoted(value)
        if value or keeps_empty:
            labels[label_name(pair[1])] = value
    return ParsedLine(labels)


def _unquoted(quoted: str) -> str:
    if "\\" not in quoted:
        return quoted[1:-1]
    try:
        return str(_whole_characters(json.loads(quoted, strict=False)))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", quoted[1:-1])


# Patterns and regular expressions


@dataclass(frozen=True, slots=True)
class LinePattern:
    """Texts with captures between them: `<ip> - <_> "<method> `."""

    parts: tuple[tuple[bool, str], ...]
    """Whether it is a capture, and its name or text."""

    def find(self, line: str) -> dict[str, str]:
        """Return what the captures have, up to the first text that the line lacks."""
        found: dict[str, str] = {}
        at = 0
        for index, (is_capture, text) in enumerate(self.parts):
            if not is_capture:
                if not line.startswith(text, at):
                    return found
                at += len(text)
                continue
            following = self.parts[index + 1][1] if index + 1 < len(self.parts) else None
            end = len(line) if following is None else line.find(following, at)
            if end < 0:
                return found
            if text != "_":
                found[text] = line[at:end]
            at = end
        return found

    def regex(self) -> str:
        """A regular expression of the lines that match as a whole."""
        pieces = [".*" if is_capture else re.escape(text) for is_capture, text in self.parts]
        return f"^(?s:{''.join(pieces)})$"


@lru_cache(maxsize=256)
def line_pattern(pattern: str, *, needs_name: bool) -> LinePattern:
    """Parse a pattern. `Malformed` if captures touch, are named twice, or are missing."""
    parts: list[tuple[bool, str]] = []
    at = 0
    for capture in _CAPTURE.finditer(pattern):
        if capture.start() > at:
            parts.append((False, pattern[at : capture.start()]))
        elif parts:
            raise Malformed(f"{capture[0]} follows a capture; put a text between them")
        parts.append((True, capture[1]))
        at = capture.end()
    if at < len(pattern):
        parts.append((False, pattern[at:]))
    names = [text for is_capture, text in parts if is_capture and text != "_"]
    if len(set(names)) < len(names):
        raise Malformed("the pattern names a capture twice; use different names")
    if needs_name and not names:
        raise Malformed("the pattern has no named capture; write one, such as <status>")
    if not needs_name and names:
        raise Malformed("the pattern of a line filter has <_> only, no names")
    return LinePattern(tuple(parts))


@lru_cache(maxsize=256)
def named_regex(pattern: str) -> Any:
    """Compile an expression for `| regexp`. `Malformed` if it has no named group."""
    compiled = compiled_regex(pattern)
    if not compiled.groupindex:
        raise Malformed("the expression has no named group; write one, such as (?P<status>\\d+)")
    return compiled


def parse_regex(line: str, compiled: Any) -> ParsedLine:
    match = compiled.search(line)
    if match is None:
        return ParsedLine({})
    return ParsedLine({name: text or "" for name, text in match.groupdict().items()})

"""StageParser: selectors and the stages of a pipeline."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Literal, NoReturn, cast

from frazil.errors import Malformed
from frazil.languages.logql.lexer import LogqlToken, logql_tokens, syntax_error
from frazil.languages.logql.line_parsers import json_path, line_pattern, named_regex
from frazil.languages.logql.regex import compiled_regex
from frazil.languages.logql.syntax import (
    Comparison,
    DecolorizeStage,
    DropStage,
    Extraction,
    IpTest,
    JsonStage,
    KeepStage,
    LabelAssignment,
    LabelChoice,
    LabelFilter,
    LabelFormat,
    LabelTest,
    LabelTests,
    LineFilter,
    LineFormat,
    LineNeedle,
    LineOperator,
    LogfmtStage,
    MatchOperator,
    NumberTest,
    PatternStage,
    RegexpStage,
    Stage,
    StreamMatcher,
    UnpackStage,
    Unwrap,
)
from frazil.languages.logql.templates import compile_template
from frazil.languages.logql.units import NS_PER_S, duration_ns, size_bytes

LINE_OPERATORS = ("|=", "!=", "|~", "!~", "|>", "!>")
MATCH_OPERATORS = ("=", "!=", "=~", "!~")
COMPARE_OPERATORS = ("==", "=", "!=", ">", ">=", "<", "<=")
CONVERSIONS = ("duration", "duration_seconds", "bytes")
STAGES_MAX = 64
MATCHERS_MAX = 64
TESTS_DEPTH_MAX = 32


class StageParser:
    """Reads tokens from left to right."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = logql_tokens(query)
        self._at = 0
        self._stage_count = 0

    # Tokens

    @property
    def token(self) -> LogqlToken:
        return self._tokens[self._at]

    def peek(self, distance: int) -> LogqlToken:
        return self._tokens[min(self._at + distance, len(self._tokens) - 1)]

    def advance(self) -> LogqlToken:
        token = self.token
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def is_sign(self, text: str) -> bool:
        return self.token.kind == "sign" and self.token.text == text

    def take_sign(self, text: str) -> bool:
        is_here = self.is_sign(text)
        if is_here:
            self.advance()
        return is_here

    def take(self, word: str) -> bool:
        is_here = self.token.kind == "name" and self.token.text == word
        if is_here:
            self.advance()
        return is_here

    def expect_sign(self, text: str) -> None:
        if not self.take_sign(text):
            raise self.unexpected(text)

    def expect_end(self) -> None:
        if self.token.kind != "end":
            raise self.unexpected("the end of the query")

    def error(self, message: str, at: LogqlToken | None = None) -> Malformed:
        return syntax_error(self._query, (at or self.token).begin, message)

    def unexpected(self, wanted: str) -> Malformed:
        return self.error(f"syntax error: unexpected {self.token.text}, expected {wanted}")

    def text(self) -> str:
        if self.token.kind != "text":
            raise self.unexpected("a text in quotes")
        return self.advance().text

    def number(self) -> float:
        if self.token.kind != "number":
            raise self.unexpected("a number")
        text = self.advance().text
        return float(int(text, 16)) if text[:2].lower() == "0x" else float(text)

    def label(self) -> str:
        """A label; names with dots are quoted."""
        if self.token.kind not in ("name", "text") or not self.token.text:
            raise self.unexpected("a label")
        return self.advance().text

    def label_names(self) -> tuple[str, ...]:
        self.expect_sign("(")
        names: list[str] = []
        while not self.take_sign(")"):
            if names:
                self.expect_sign(",")
            names.append(self.label())
        return tuple(names)

    def check_regex(self, pattern: str) -> None:
        self._checked(self.peek(-1), lambda: compiled_regex(pattern))

    def _checked(self, at: LogqlToken, check: Callable[[], object]) -> None:
        try:
            check()
        except Malformed as error:
            raise self.error(str(error), at) from None

    # Selectors

    def matchers(self) -> tuple[StreamMatcher, ...]:
        """What is in braces."""
        if not self.is_sign("{"):
            raise self.unexpected('a selector, such as {service_name="cart"}')
        begin = self.advance()
        found: list[StreamMatcher] = []
        while not self.take_sign("}"):
            if found:
                self.expect_sign(",")
                if self.take_sign("}"):
                    break
            found.append(self._matcher())
        if len(found) > MATCHERS_MAX:
            raise self.error(f"a selector has at most {MATCHERS_MAX} matchers", begin)
        return tuple(found)

    def _matcher(self) -> StreamMatcher:
        name = self.label()
        operator = self.advance()
        if operator.kind != "sign" or operator.text not in MATCH_OPERATORS:
            raise self.error(
                f"syntax error: unexpected {operator.text}, expected one of = != =~ !~", operator
            )
        value = self.text()
        if operator.text in ("=~", "!~"):
            self.check_regex(value)
        return StreamMatcher(name, cast("MatchOperator", operator.text), value)

    # Stages

    def at_stage(self) -> bool:
        """Whether a stage begins here."""
        token = self.token
        if token.kind != "sign":
            return False
        if token.text in ("!=", "!~", "!>"):
            return self.peek(1).kind == "text" or self.peek(1).text == "ip"
        return token.text in LINE_OPERATORS or (token.text == "|" and not self.at_unwrap())

    def at_unwrap(self) -> bool:
        return self.is_sign("|") and self.peek(1).text == "unwrap"

    def stage(self) -> Stage:
        self._stage_count += 1
        if self._stage_count > STAGES_MAX:
            raise self.error(f"a query has at most {STAGES_MAX} stages")
        if self.token.text in LINE_OPERATORS:
            return self._line_filter()
        self.expect_sign("|")
        read = _STAGES.get(self.token.text) if self.token.kind == "name" else None
        if read is None or self._is_comparison(self.peek(1)):
            return LabelFilter(self._tests())
        self.advance()
        return read(self)

    def _is_comparison(self, token: LogqlToken) -> bool:
        return token.kind == "sign" and token.text in (*MATCH_OPERATORS, *COMPARE_OPERATORS)

    def _line_filter(self) -> LineFilter:
        operator = cast("LineOperator", self.advance().text)
        needles = [self._needle(operator)]
        while self.take("or"):
            needles.append(self._needle(operator))
        return LineFilter(operator, tuple(needles))

    def _needle(self, operator: LineOperator) -> LineNeedle:
        if self.take("ip"):
            if operator not in ("|=", "!="):
                raise self.error("ip() follows |= or != only")
            return LineNeedle(self._ip(), is_ip=True)
        needle = LineNeedle(self.text())
        if operator in ("|~", "!~"):
            self.check_regex(needle.value)
        elif operator in ("|>", "!>"):
            value = needle.value
            self._checked(self.peek(-1), lambda: line_pattern(value, needs_name=False))
        return needle

    def _ip(self) -> str:
        self.expect_sign("(")
        at = self.token
        value = self.text()
        self.expect_sign(")")
        self._checked(at, lambda: check_ip(value))
        return value

    def json_stage(self) -> JsonStage:
        return JsonStage(self._extractions(is_path=True))

    def logfmt_stage(self) -> LogfmtStage:
        flags = set()
        while self.token.kind == "flag":
            flags.add(self.advance().text)
        return LogfmtStage(self._extractions(), "--strict" in flags, "--keep-empty" in flags)

    def _extractions(self, *, is_path: bool = False) -> tuple[Extraction, ...]:
        found: list[Extraction] = []
        while (not found and self.token.kind == "name") or (found and self.take_sign(",")):
            label = self.label()
            source = self.text() if self.take_sign("=") else label
            check = json_path if is_path else str
            self._checked(self.peek(-1), lambda: check(source))  # noqa: B023 # runs now
            found.append(Extraction(label, source))
        return tuple(found)

    def pattern_stage(self) -> PatternStage:
        stage = PatternStage(self.text())
        self._checked(self.peek(-1), lambda: line_pattern(stage.pattern, needs_name=True))
        return stage

    def regexp_stage(self) -> RegexpStage:
        stage = RegexpStage(self.text())
        self._checked(self.peek(-1), lambda: named_regex(stage.pattern))
        return stage

    def unpack_stage(self) -> UnpackStage:
        return UnpackStage()

    def decolorize_stage(self) -> DecolorizeStage:
        return DecolorizeStage()

    def line_format_stage(self) -> LineFormat:
        stage = LineFormat(self.text())
        self._checked(self.peek(-1), lambda: compile_template(stage.template))
        return stage

    def label_format_stage(self) -> LabelFormat:
        assignments: list[LabelAssignment] = []
        while not assignments or self.take_sign(","):
            label = self.label()
            self.expect_sign("=")
            if self.token.kind == "text":
                value = self.text()
                self._checked(self.peek(-1), lambda: compile_template(value))  # noqa: B023 # runs now
                assignments.append(LabelAssignment(label, value, is_template=True))
            else:
                assignments.append(LabelAssignment(label, self.label(), is_template=False))
        names = [assignment.label for assignment in assignments]
        if len(set(names)) < len(names):
            raise self.error("label_format sets a label twice; use two stages")
        return LabelFormat(tuple(assignments))

    def drop_stage(self) -> DropStage:
        return DropStage(self._choices())

    def keep_stage(self) -> KeepStage:
        return KeepStage(self._choices())

    def _choices(self) -> tuple[LabelChoice, ...]:
        choices: list[LabelChoice] = []
        while not choices or self.take_sign(","):
            if self._is_comparison(self.peek(1)):
                matcher = self._matcher()
                choices.append(LabelChoice(matcher.name, matcher))
            else:
                choices.append(LabelChoice(self.label()))
        return tuple(choices)

    def unsupported_stage(self) -> NoReturn:
        raise self.error(f"| {self.peek(-1).text} is not supported", self.peek(-1))

    def unwrap(self) -> Unwrap:
        self.advance()
        self.advance()
        name = self.label()
        conversion = ""
        if self.is_sign("("):
            if name not in CONVERSIONS:
                raise self.error(f"unwrap knows no {name}(); use {', '.join(CONVERSIONS)}")
            conversion = name
            self.advance()
            name = self.label()
            self.expect_sign(")")
        tests: list[LabelTest] = []
        while self.is_sign("|"):
            self.advance()
            tests.append(self._tests())
        kind = cast('Literal["", "duration", "duration_seconds", "bytes"]', conversion)
        return Unwrap(name, kind, tuple(tests))

    # Label filters

    def _tests(self, depth: int = 0) -> LabelTest:
        """`or` of `and`; a comma and nothing mean `and`, too."""
        if depth > TESTS_DEPTH_MAX:
            raise self.error(f"label filters are nested more than {TESTS_DEPTH_MAX} deep")
        parts = [self._all_tests(depth)]
        while self.take("or"):
            parts.append(self._all_tests(depth))
        return parts[0] if len(parts) == 1 else LabelTests("or", tuple(parts))

    def _all_tests(self, depth: int) -> LabelTest:
        parts = [self._test(depth)]
        while self.take("and") or self.take_sign(",") or self._at_test():
            parts.append(self._test(depth))
        return parts[0] if len(parts) == 1 else LabelTests("and", tuple(parts))

    def _at_test(self) -> bool:
        is_label = self.token.kind == "name" and self._is_comparison(self.peek(1))
        return is_label or self.is_sign("(")

    def _test(self, depth: int) -> LabelTest:
        if self.take_sign("("):
            inner = self._tests(depth + 1)
            self.expect_sign(")")
            return inner
        if not self._is_comparison(self.peek(1)):
            raise self.unexpected("a stage such as json, or a label filter such as status >= 500")
        if self.peek(2).kind == "text":
            return self._matcher()
        name = self.label()
        operator = self.advance()
        if operator.text in ("=", "!=") and self.take("ip"):
            return IpTest(name, "=" if operator.text == "=" else "!=", self._ip())
        if operator.text not in COMPARE_OPERATORS:
            raise self.unexpected("a text in quotes")
        sign = "==" if operator.text == "=" else operator.text
        return self._compared(name, cast("Comparison", sign))

    def _compared(self, name: str, sign: Comparison) -> NumberTest:
        minus = "-" if self.take_sign("-") else ""
        factor = -1 if minus else 1
        token = self.token
        written = minus + token.text
        if token.kind == "number":
            return NumberTest(name, sign, factor * self.number(), "number", written)
        if token.kind == "quantity":
            self.advance()
            duration = duration_ns(token.text)
            if duration is not None:
                return NumberTest(name, sign, factor * duration / NS_PER_S, "duration", written)
            size = size_bytes(token.text)
            if size is not None:
                return NumberTest(name, sign, factor * size, "bytes", written)
        raise self.error(f"{token.text} is no text, number, duration or size", token)


_STAGES: dict[str, Callable[[StageParser], Stage]] = {
    "json": StageParser.json_stage,
    "logfmt": StageParser.logfmt_stage,
    "pattern": StageParser.pattern_stage,
    "regexp": StageParser.regexp_stage,
    "unpack": StageParser.unpack_stage,
    "decolorize": StageParser.decolorize_stage,
    "line_format": StageParser.line_format_stage,
    "label_format": StageParser.label_format_stage,
    "drop": StageParser.drop_stage,
    "keep": StageParser.keep_stage,
    "distinct": StageParser.unsupported_stage,
}


def check_ip(value: str) -> None:
    """Refuse what is no address, network, or range of addresses."""
    try:
        if "-" in value:
            low, _, high = value.partition("-")
            ipaddress.ip_address(low)
            ipaddress.ip_address(high)
        elif "/" in value:
            ipaddress.ip_network(value, strict=False)
        else:
            ipaddress.ip_address(value)
    except ValueError:
        raise Malformed(
            f"{value} is no address; write 192.168.0.1, 192.168.0.0/16 or 192.168.0.1-192.168.0.9"
        ) from None

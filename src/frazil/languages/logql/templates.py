"""compile_template: the subset of Go templates that line_format and label_format use.

    {{.status}} {{ .path | trunc 20 }}{{ if contains "error" __line__ }} !{{ else }} ok{{ end }}

Fields, texts, numbers, calls, pipelines, parentheses, `if`, `else if`, `else`, and trim marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from frazil.errors import Malformed
from frazil.languages.logql.go_times import TemplateTime
from frazil.languages.logql.template_functions import (
    FUNCTIONS,
    TemplateFailure,
    TemplateValue,
    is_true,
    shown_text,
)

DEPTH_MAX = 16
PARTS_MAX = 256


@dataclass(frozen=True, slots=True)
class TemplateScope:
    """What a template sees of a line."""

    labels: Mapping[str, str]
    line: str
    time_ns: int


Value = Callable[[TemplateScope], TemplateValue]
Writer = Callable[[TemplateScope], str]

_ACTION = re.compile(
    r"\{\{(- )?((?:\"(?:[^\"\\]|\\.)*+\"|`[^`]*+`|[^\"`}]|\}(?!\}))*?)( -)?\}\}", re.DOTALL
)
_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(`[^`]*`)|(\.[A-Za-z_][A-Za-z0-9_]*|\.)|([A-Za-z_][A-Za-z0-9_]*)'
    r"|([-+]?(?:\d+\.?\d*|\.\d+))|([|()])|(\S))"
)
_UNSUPPORTED = ("range", "with", "define", "template", "block", "break", "continue")


@dataclass(frozen=True, slots=True)
class _Action:
    text: str


@lru_cache(maxsize=256)
def compile_template(template: str) -> Writer:
    """Compile a template. `Malformed` says what is wrong or not supported."""
    pieces = _split(template)
    if len(pieces) > PARTS_MAX:
        raise Malformed(f"the template has more than {PARTS_MAX} parts")
    builder = _Builder(pieces)
    writer = builder.block(0)
    if builder.at < len(pieces):
        raise Malformed("the template has an {{end}} or {{else}} without {{if}}")
    return writer


def _split(template: str) -> list[str | _Action]:
    """Texts and actions in order, with spaces trimmed as `{{-` and `-}}` say."""
    pieces: list[str | _Action] = []
    at, trims = 0, False
    while (begin := template.find("{{", at)) >= 0:
        action = _ACTION.match(template, begin)
        if action is None:
            raise Malformed("the template has {{ without }}")
        text = template[at:begin]
        text = text.lstrip() if trims else text
        pieces.append(text.rstrip() if action[1] else text)
        if not action[2].startswith("/*"):
            pieces.append(_Action(action[2].strip()))
        trims, at = bool(action[3]), action.end()
    rest = template[at:]
    pieces.append(rest.lstrip() if trims else rest)
    return [piece for piece in pieces if piece != ""]


class _Builder:
    """Builds writers of the pieces from `at` on."""

    def __init__(self, pieces: list[str | _Action]) -> None:
        self._pieces = pieces
        self.at = 0

    def block(self, depth: int) -> Writer:
        """Everything up to the `end` or `else` of this block."""
        if depth > DEPTH_MAX:
            raise Malformed(f"the template is nested more than {DEPTH_MAX} deep")
        writers: list[Writer] = []
        while self.at < len(self._pieces):
            piece = self._pieces[self.at]
            if isinstance(piece, str):
                writers.append(_constant_text(piece))
            else:
                word = piece.text.partition(" ")[0]
                if word in ("end", "else"):
                    break
                if word in _UNSUPPORTED:
                    raise Malformed(f"{{{{{word}}}}} is not supported in templates")
                if word == "if":
                    writers.append(self._choice(piece.text[len("if") :], depth))
                    continue
                writers.append(_written(_pipeline(piece.text)))
            self.at += 1
        return lambda scope: "".join([write(scope) for write in writers])

    def _choice(self, condition: str, depth: int) -> Writer:
        """`if` up to its `end`."""
        test = _pipeline(condition)
        self.at += 1
        then = self.block(depth + 1)
        otherwise: Writer = _constant_text("")
        word = self._action_word()
        if word == "else":
            piece = self._pieces[self.at]
            assert isinstance(piece, _Action)
            rest = piece.text[len("else") :].strip()
            if rest.startswith("if "):
                otherwise = self._choice(rest[len("if") :], depth + 1)
                return lambda scope: (then if is_true(test(scope)) else otherwise)(scope)
            self.at += 1
            otherwise = self.block(depth + 1)
            word = self._action_word()
        if word != "end":
            raise Malformed("the template has {{if}} without {{end}}")
        self.at += 1
        return lambda scope: (then if is_true(test(scope)) else otherwise)(scope)

    def _action_word(self) -> str:
        if self.at >= len(self._pieces):
            return ""
        piece = self._pieces[self.at]
        return piece.text.partition(" ")[0] if isinstance(piece, _Action) else ""


def _constant_text(text: str) -> Writer:
    return lambda _: text


def _written(value: Value) -> Writer:
    return lambda scope: shown_text(value(scope))


def _pipeline(text: str) -> Value:
    tokens = _tokens(text)
    value, at = _piped(tokens, 0, text)
    if at < len(tokens):
        raise Malformed(f"unexpected {tokens[at]} in {{{{{text}}}}}")
    return value


def _tokens(text: str) -> list[str]:
    found = []
    for token in _TOKEN.finditer(text.rstrip()):
        if token[7] is not None:
            raise Malformed(f"unexpected {token[7]} in {{{{{text}}}}}; it is not supported")
        found.append(token[0].strip())
    return found


def _piped(tokens: list[str], at: int, text: str, depth: int = 0) -> tuple[Value, int]:
    """Commands joined by `|`; each gets the value before it as its last argument."""
    if depth > DEPTH_MAX:
        raise Malformed(f"the template is nested more than {DEPTH_MAX} deep")
    value, at = _command(tokens, at, text, None, depth)
    while at < len(tokens) and tokens[at] == "|":
        value, at = _command(tokens, at + 1, text, value, depth)
    return value, at


def _command(
    tokens: list[str], at: int, text: str, piped: Value | None, depth: int
) -> tuple[Value, int]:
    if at >= len(tokens) or tokens[at] in ("|", ")"):
        raise Malformed(f"{{{{{text}}}}} lacks a value; write a field such as .status")
    name = tokens[at]
    if not (name[0].isalpha() or name[0] == "_") or name in ("true", "false"):
        value, at = _operand(tokens, at, text, depth)
        if piped is not None or (at < len(tokens) and tokens[at] not in ("|", ")")):
            raise Malformed(f"{name} in {{{{{text}}}}} is no function")
        return value, at
    arguments: list[Value] = []
    at += 1
    while at < len(tokens) and tokens[at] not in ("|", ")"):
        argument, at = _operand(tokens, at, text, depth)
        arguments.append(argument)
    if piped is not None:
        arguments.append(piped)
    return _call(name, arguments), at


def _operand(tokens: list[str], at: int, text: str, depth: int) -> tuple[Value, int]:
    token = tokens[at]
    if token == "(":
        value, at = _piped(tokens, at + 1, text, depth + 1)
        if at >= len(tokens) or tokens[at] != ")":
            raise Malformed(f"{{{{{text}}}}} lacks a )")
        return value, at + 1
    if token[0] == '"':
        return _constant(_unquoted(token)), at + 1
    if token[0] == "`":
        return _constant(token[1:-1]), at + 1
    if token == ".":
        raise Malformed("{{.}} is not supported; write a field such as {{.status}}")
    if token[0] == "." and not token[1:2].isdigit():
        return _field(token[1:]), at + 1
    if token in ("true", "false"):
        return _constant(token == "true"), at + 1
    if token[0].isalpha() or token[0] == "_":
        return _call(token, []), at + 1
    return _constant(float(token) if "." in token else int(token)), at + 1


def _constant(value: TemplateValue) -> Value:
    return lambda _: value


def _field(name: str) -> Value:
    return lambda scope: scope.labels.get(name, "")


def _unquoted(quoted: str) -> str:
    return re.sub(
        r"\\(.)", lambda escape: {"n": "\n", "t": "\t", "r": "\r"}.get(escape[1], escape[1]),
        quoted[1:-1], flags=re.DOTALL,
    )  # fmt: skip


def _call(name: str, arguments: list[Value]) -> Value:
    if name == "__line__":
        return lambda scope: scope.line
    if name == "__timestamp__":
        return lambda scope: TemplateTime(scope.time_ns)
    function = FUNCTIONS.get(name)
    if function is None:
        raise Malformed(f"the template function {name} is not supported")
    if not function.least <= len(arguments) <= function.most:
        wanted = f"{function.least}" if function.least == function.most else "another number of"
        raise Malformed(f"{name} has {len(arguments)} arguments; it takes {wanted}")
    call = function.call

    def value(scope: TemplateScope) -> TemplateValue:
        try:
            return call(*[argument(scope) for argument in arguments])
        except (OverflowError, ValueError) as error:
            raise TemplateFailure(f"{name}: {error}") from None

    return value

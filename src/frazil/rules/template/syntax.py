"""Text of a template to nodes: text, `{{ pipeline }}`, `{{ if }}…{{ else }}…{{ end }}`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from frazil.errors import Malformed

OPEN, CLOSE = "{{", "}}"
DEPTH_MAX = 20
"""Of `if` and parentheses."""
COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)
UNSUPPORTED = ("range", "with", "define", "template", "block", "break", "continue")
TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<raw>`[^`]*`)
      | (?P<number>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+))
      | (?P<variable>\$\w*(?:\.\w+)*)
      | (?P<field>(?:\.\w+)+|\.)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign>[()|])
    )""",
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    """A text, number or boolean."""

    value: str | float | int | bool


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """`$labels.job` or `.Labels.job`: a path from a root."""

    root: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplateCall:
    """A function and its arguments."""

    name: str
    arguments: tuple[Operand, ...]


Operand = TemplateLiteral | TemplateReference | TemplateCall


@dataclass(frozen=True, slots=True)
class TemplateCondition:
    """An `if`, with what follows on either side."""

    test: Operand
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node = str | TemplateLiteral | TemplateReference | TemplateCall | TemplateCondition


def parse_template(text: str) -> tuple[Node, ...]:
    """Return the nodes. `Malformed` says what is wrong, and where."""
    parser = _Parser(list(_pieces(text)))
    nodes = parser.nodes(0)
    if parser.ahead() is not None:
        raise Malformed(f"{{{{ {parser.ahead()} }}}} has no if before it")
    return nodes


@dataclass(frozen=True, slots=True)
class _Action:
    text: str


def _pieces(text: str) -> Iterator[str | _Action]:
    """Yield texts and actions. `{{-` and `-}}` remove the space beside them."""
    at = 0
    trims_next = False
    while True:
        begin = text.find(OPEN, at)
        plain = text[at:] if begin < 0 else text[at:begin]
        if trims_next:
            plain = plain.lstrip()
        if begin < 0:
            yield plain
            return
        inside = begin + len(OPEN)
        if text[inside : inside + 1] == "-" and text[inside + 1 : inside + 2].isspace():
            plain = plain.rstrip()
            inside += 1
        end = _end_of_action(text, inside)
        content = text[inside:end]
        trims_next = content.endswith("-") and content[-2:-1].isspace()
        yield plain
        action = COMMENT.sub("", content.removesuffix("-") if trims_next else content).strip()
        if action:
            yield _Action(action)
        at = end + len(CLOSE)


def _end_of_action(text: str, begin: int) -> int:
    """Return where an action ends; texts in it may have braces."""
    at = begin
    while at < len(text):
        if text.startswith(CLOSE, at):
            return at
        if text[at] in '"`':
            match = TOKEN.match(text, at)
            if match is None:
                raise Malformed(f"a text in {text[begin - 2 : begin + 30]!r} does not end")
            at = match.end()
        else:
            at += 1
    raise Malformed(f"{text[begin - 2 : begin + 30]!r} does not end with }}}}")


class _Parser:
    """Nodes of a list of pieces."""

    def __init__(self, pieces: list[str | _Action]) -> None:
        self._pieces = pieces
        self._at = 0

    def ahead(self) -> str | None:
        """Return the word of the next piece if it ends or divides an `if`."""
        if self._at < len(self._pieces):
            piece = self._pieces[self._at]
            if isinstance(piece, _Action):
                word = piece.text.split(None, 1)[0]
                return word if word in ("else", "end") else None
        return None

    def nodes(self, depth: int) -> tuple[Node, ...]:
        if depth > DEPTH_MAX:
            raise Malformed(f"if is nested more than {DEPTH_MAX} levels deep")
        found: list[Node] = []
        while self._at < len(self._pieces) and self.ahead() is None:
            piece = self._pieces[self._at]
            self._at += 1
            if isinstance(piece, str):
                found.append(piece)
                continue
            word, _, rest = piece.text.partition(" ")
            if word in UNSUPPORTED:
                raise Malformed(f"{{{{ {word} }}}} is not supported; use if, values and functions")
            if word == "if":
                found.append(self._condition(rest, depth))
            else:
                found.append(parse_pipeline(piece.text))
        return tuple(found)

    def _condition(self, text: str, depth: int) -> TemplateCondition:
        test = parse_pipeline(text)
        then = self.nodes(depth + 1)
        otherwise: tuple[Node, ...] = ()
        word, rest = self._next(text)
        if word == "else" and rest:
            inner = rest.partition(" ")
            if inner[0] != "if":
                raise Malformed(f"{{{{ else {rest} }}}}: only an if may follow else")
            return TemplateCondition(test, then, (self._condition(inner[2], depth + 1),))
        if word == "else":
            otherwise = self.nodes(depth + 1)
            word, rest = self._next(text)
        if word != "end" or rest:
            raise Malformed(f"{{{{ {word} {rest} }}}} stands where {{{{ end }}}} is needed")
        return TemplateCondition(test, then, otherwise)

    def _next(self, text: str) -> tuple[str, str]:
        if self._at >= len(self._pieces):
            raise Malformed(f"{{{{ if {text} }}}} has no {{{{ end }}}}")
        piece = self._pieces[self._at]
        assert isinstance(piece, _Action)
        self._at += 1
        word, _, rest = piece.text.partition(" ")
        return word, rest.strip()


def parse_pipeline(text: str) -> Operand:
    """Return the operand that `a | b | c x` stands for: `c x (b (a))`."""
    tokens = _tokens(text)
    operand, at = _pipeline(text, tokens, 0, 0)
    if at != len(tokens):
        _fail(text, f"{tokens[at][1]!r} is one too many")
    return operand


def _fail(text: str, why: str) -> NoReturn:
    raise Malformed(f"{{{{ {text} }}}}: {why}")


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at)
        if match is None:
            _fail(text, f"{text[at:].strip()[:20]!r} is not understood")
        assert match.lastgroup is not None
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _pipeline(text: str, tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Operand, int]:
    if depth > DEPTH_MAX:
        _fail(text, f"parentheses are nested more than {DEPTH_MAX} levels deep")
    before: tuple[Operand, ...] = ()
    while True:
        operand, at = _command(text, tokens, at, depth, before)
        if at >= len(tokens) or tokens[at] != ("sign", "|"):
            return operand, at
        before, at = (operand,), at + 1


def _command(
    text: str, tokens: list[tuple[str, str]], at: int, depth: int, before: tuple[Operand, ...]
) -> tuple[Operand, int]:
    """One command of a pipeline. What came before it is its last argument."""
    if at >= len(tokens):
        _fail(text, "a value or a function is missing")
    kind, word = tokens[at]
    if kind == "word" and word not in ("true", "false"):
        arguments: list[Operand] = []
        at += 1
        while at < len(tokens) and tokens[at] not in (("sign", "|"), ("sign", ")")):
            argument, at = _operand(text, tokens, at, depth)
            arguments.append(argument)
        return TemplateCall(word, (*arguments, *before)), at
    if before:
        _fail(text, f"{word!r} follows |, but is not a function")
    return _operand(text, tokens, at, depth)


def _operand(text: str, tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Operand, int]:
    kind, word = tokens[at]
    match kind:
        case "string":
            try:
                return TemplateLiteral(str(ast.literal_eval(word))), at + 1
            except (ValueError, SyntaxError):
                _fail(text, f"{word} has an escape that is not understood")
        case "raw":
            return TemplateLiteral(word[1:-1]), at + 1
        case "number":
            is_whole = word.lstrip("+-").isdecimal()
            return TemplateLiteral(int(word) if is_whole else float(word)), at + 1
        case "variable":
            root, *path = word.split(".")
            return TemplateReference(root, tuple(path)), at + 1
        case "field":
            return TemplateReference(".", tuple(part for part in word.split(".") if part)), at + 1
        case "word":
            if word in ("true", "false"):
                return TemplateLiteral(word == "true"), at + 1
            return TemplateCall(word, ()), at + 1
    if word != "(":
        _fail(text, f"{word!r} stands where a value is needed")
    operand, at = _pipeline(text, tokens, at + 1, depth + 1)
    if at >= len(tokens) or tokens[at] != ("sign", ")"):
        _fail(text, "a parenthesis does not end")
    return operand, at + 1

"""Tokens: a .proto file, word by word; the same file in one layout."""

from __future__ import annotations

import re

from frazil.errors import Malformed

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>[{}\[\]()<>;:,.=+\-/])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPES = {
    "n": b"\n",
    "t": b"\t",
    "r": b"\r",
    "a": b"\a",
    "b": b"\b",
    "f": b"\f",
    "v": b"\v",
    "\\": b"\\",
    "'": b"'",
    '"': b'"',
    "?": b"?",
}
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
INDENT = "  "
TIGHT_BEFORE = frozenset(";,.)]>:")
TIGHT_AFTER = frozenset("(.[<+-/")
END = ""


class Tokens:
    """A cursor over the words of a file. Comments and white space are none."""

    def __init__(self, text: str) -> None:
        self._words = _words(text)
        self._next = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a word without taking it, `END` after the last one."""
        position = self._next + ahead
        return self._words[position] if position < len(self._words) else END

    def take(self) -> str:
        word = self.peek()
        if word == END:
            raise Malformed("the file ends too early; a bracket or a semicolon is missing")
        self._next += 1
        return word

    def accept(self, word: str) -> bool:
        """Take a word if it is the next one."""
        if self.peek() != word:
            return False
        self._next += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise Malformed(f"{word!r} is expected where {self.peek()[:40]!r} stands")

    def name(self) -> str:
        """Take a simple name."""
        word = self.take()
        if not is_name(word):
            raise Malformed(f"a name is expected where {word[:40]!r} stands")
        return word

    def full_name(self) -> str:
        """Take a name with dots, perhaps with one in front."""
        parts = ["."] if self.accept(".") else []
        parts.append(self.name())
        while self.accept("."):
            parts += (".", self.name())
        return "".join(parts)

    def integer(self) -> int:
        sign = "-" if self.accept("-") else ""
        return integer_of(sign + self.take())

    def text(self) -> str:
        """Take a text; several in a row are one."""
        parts = [text_value(self.take())]
        while self.peek()[:1] in ("'", '"') and self.peek():
            parts.append(text_value(self.take()))
        try:
            return b"".join(parts).decode()
        except UnicodeDecodeError:
            raise Malformed("a text is not UTF-8") from None


def integer_of(word: str) -> int:
    """Return a number that is written in decimal, hexadecimal or octal."""
    digits = word.removeprefix("-")
    is_octal = digits.isdigit() and len(digits) > 1 and digits.startswith("0")
    try:
        return int(word, 8 if is_octal else 0)
    except ValueError:
        raise Malformed(f"a whole number is expected where {word[:40]!r} stands") from None


def is_name(word: str) -> bool:
    return word[:1].isalpha() or word[:1] == "_"


def text_value(word: str) -> bytes:
    """Return what a quoted word stands for."""
    if word[:1] not in ("'", '"'):
        raise Malformed(f"a text in quotes is expected where {word[:40]!r} stands")
    out, position, inside = bytearray(), 0, word[1:-1]
    for match in _ESCAPE.finditer(inside):
        out += inside[position : match.start()].encode()
        octal, short, unicode4, unicode8, simple = match.groups()
        if simple is not None:
            if simple not in _ESCAPES:
                raise Malformed(f"\\{simple} means nothing in a text")
            out += _ESCAPES[simple]
        elif unicode4 or unicode8:
            code = int(unicode4 or unicode8, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise Malformed(f"{match[0]} is no character")
            out += chr(code).encode()
        else:
            out.append(int(octal, 8) & 0xFF if octal else int(short, 16))
        position = match.end()
    return bytes(out + inside[position:].encode())


def _words(text: str) -> list[str]:
    words: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Malformed(f"{text[position : position + 20]!r} means nothing in a .proto file")
        if match.lastgroup != "space":
            words.append(match[0])
        position = match.end()
    return words


def laid_out(text: str) -> str:
    """Return a file in one layout, without comments: what differs in white space only is equal."""
    lines: list[str] = []
    line: list[str] = []
    depth = brackets = 0
    for word in _words(text):
        if word == "}" and not brackets:
            if line:
                lines.append(INDENT * depth + _joined(line))
            depth, line = max(0, depth - 1), []
            lines.append(INDENT * depth + "}")
            continue
        if word == ";" and not line and lines and lines[-1].endswith("}"):
            continue  # an empty statement
        line.append(word)
        if word in "[(":
            brackets += 1
        elif word in "])":
            brackets = max(0, brackets - 1)
        if word in ("{", ";") and not brackets:
            lines.append(INDENT * depth + _joined(line))
            line = []
            depth += word == "{"
    if line:
        lines.append(INDENT * depth + _joined(line))
    return "\n".join(lines) + "\n"


def _joined(words: list[str]) -> str:
    out: list[str] = []
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        is_tight = word in TIGHT_BEFORE or before in TIGHT_AFTER or not before
        if word == "(" and before not in ("=", "returns", "option") and before != ",":
            is_tight = True
        if word in ("<",) and before == "map":
            is_tight = True
        if word == "." and before in (",", "optional", "required", "repeated", "stream", "returns"):
            is_tight = False
        out += (word,) if is_tight else (" ", word)
    return "".join(out)

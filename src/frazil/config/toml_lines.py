"""On which line of a TOML file each key stands.

Python's own reader does not tell. This walks over a text that it has read without complaint, so it
need not know what is wrong TOML: only where keys, texts and brackets begin and end.
"""

from __future__ import annotations

import re
import tomllib

from frazil.config.settings import Keys

BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
"""What may stand between two statements, and between the values of a list."""
BLANKS = re.compile(r"[ \t]*")
KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
TEXT = re.compile(
    r'"{3}(?:[^\\]|\\.)*?"{3}"{0,2}'
    r"|'{3}.*?'{3}'{0,2}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
"""The four kinds. Two more quotes may stand right before the end of a long one."""
PLAIN = re.compile(r"[^,\]}#\n]*")
"""Numbers, dates, true and false."""


def key_lines(text: str) -> dict[Keys, int]:
    """The line of every key and table, counted from 1; of what is named twice, the first.

    `text` is TOML. Keys inside of lists are not told apart.
    """
    return _Walk(text).lines


class _Walk:
    """Goes from the first letter to the last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1
        self.lines: dict[Keys, int] = {}
        table: Keys = ()
        self._skip(BETWEEN)
        while self._position < len(text):
            if self._text[self._position] == "[":
                table = self._head()
            else:
                self._pair(table)
            self._skip(BETWEEN)

    def _head(self) -> Keys:
        """`[a.b]` or `[[a.b]]`: the table that what follows belongs to."""
        self._skip(re.compile(r"\[\[?"))
        table = self._keys(())
        self._skip(re.compile(r"[ \t]*\]\]?"))
        return table

    def _pair(self, table: Keys) -> None:
        """`a.b = value`."""
        keys = self._keys(table)
        self._skip(re.compile(r"[ \t]*="))
        self._value(keys)

    def _keys(self, above: Keys) -> Keys:
        """Keys with dots between them. Each that is new is on this line."""
        keys = above
        while True:
            self._skip(BLANKS)
            keys = (*keys, _plain(self._skip(KEY)))
            self.lines.setdefault(keys, self._line)
            self._skip(BLANKS)
            if not self._text.startswith(".", self._position):
                return keys
            self._position += 1

    def _value(self, keys: Keys) -> None:
        self._skip(BLANKS)
        first = self._text[self._position]
        if first == "[":
            self._listed(keys, "]", is_table=False)
        elif first == "{":
            self._listed(keys, "}", is_table=True)
        elif first in "\"'":
            self._skip(TEXT)
        else:
            self._skip(PLAIN)

    def _listed(self, keys: Keys, end: str, *, is_table: bool) -> None:
        """Values, or pairs, with commas between them, up to a bracket."""
        self._position += 1
        self._skip(BETWEEN)
        while self._text[self._position] != end:
            if is_table:
                self._pair(keys)
            else:
                self._value(keys)
            self._skip(BETWEEN)
            if self._text[self._position] == ",":
                self._position += 1
            self._skip(BETWEEN)
        self._position += 1

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Step over what is there."""
        found = pattern.match(self._text, self._position)
        assert found is not None, f"{pattern.pattern} is not at {self._position}"
        self._position = found.end()
        self._line += found.group().count("\n")
        return found.group()


def _plain(key: str) -> str:
    """A key without its quotes."""
    if key[0] not in "\"'":
        return key
    (plain,) = tomllib.loads(f"{key} = 0")
    return plain

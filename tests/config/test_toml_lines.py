"""The line of a key: what the scanner says is where the key was written."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.config.toml_lines import key_lines

Keys = tuple[str, ...]

BARE = st.text("abcdefXYZ019_-", min_size=1, max_size=6)
ODD = st.text(st.sampled_from("ab.= #[]{}\"'\\,é"), max_size=6)
KEYS = st.one_of(BARE, ODD)

VALUES = st.sampled_from(
    [
        "1", "-1_000", "0x1F", "1.5e3", "inf", "true", "1979-05-27", "1979-05-27 07:32:00Z",
        '"a"', '""', "''", "'a = 1 # [x]'", r'"a \" = 1 # \\"', r"'\'",
        '"""a"""', "'''a'''", '"""\n[no]\nno = 1\n"""', "'''\nno = 1 # \"\n'''",
        '"""a\\""""', '"""x""""', "'''x'''''", '"""\\\n  y"""', '""""""',
        "[]", "[1, 2]", "[\n  1, # ], no = 1\n  [2],\n]", '["]", \'[\']',
        "{}", "{}", '[{ in-list = 1 }, { in-list = "}" }]',
    ]
)  # fmt: skip
"""Whatever could be taken for a key, a head, or an end."""

REST = st.sampled_from(["", " ", "  # a = 1", "\t# [x]", "\n", "\n\n# comment", "\n  "])


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Keys, int]]:
    """A text, and the lines of its keys, noted while it is written."""
    tree = draw(st.dictionaries(KEYS, _tables(2) | VALUES, max_size=5))
    writer = Writer(draw)
    writer.table((), tree)
    return writer.text, writer.lines


def _tables(depth: int) -> st.SearchStrategy[Any]:
    below = VALUES if depth == 0 else _tables(depth - 1) | VALUES
    return st.dictionaries(KEYS, below, max_size=3)


class Writer:
    """Writes tables as heads, as dotted keys, or within braces, as it is dealt."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.lines: dict[Keys, int] = {}

    def table(self, at: Keys, tree: dict[str, Any]) -> None:
        later = []
        for key, value in tree.items():
            style = self.draw(st.sampled_from(["head", "dotted", "braces"]))
            if isinstance(value, dict) and (style == "head" or not value):
                later.append((key, value))
            elif isinstance(value, dict) and style == "dotted":
                self.dotted((*at, key), value, len(at))
            else:
                self.indent()
                self.names((*at, key), len(at))
                self.write(" = ")
                self.value((*at, key), value)
                self.end()
        for key, value in later:
            self.indent()
            self.write("[")
            self.names((*at, key), 0)
            self.write("]")
            self.end()
            self.table((*at, key), value)

    def dotted(self, keys: Keys, tree: dict[str, Any], above: int) -> None:
        for key, value in tree.items():
            self.indent()
            self.names((*keys, key), above)
            self.write("=")
            self.value((*keys, key), value)
            self.end()

    def value(self, keys: Keys, value: Any) -> None:
        if not isinstance(value, dict):
            if value.startswith("[{"):
                self.lines.setdefault((*keys, "in-list"), self.line)
            self.write(value)
            return
        self.write("{ ")
        for number, (key, below) in enumerate(value.items()):
            self.write(", " if number else "")
            self.names((*keys, key), len(keys))
            self.write(" = ")
            self.value((*keys, key), below)
        self.write(" }")

    def names(self, keys: Keys, above: int) -> None:
        """The keys behind the first `above`, with dots between them."""
        for length in range(above + 1, len(keys) + 1):
            if length > above + 1:
                self.write(self.draw(st.sampled_from([".", " . ", "."])))
            self.lines.setdefault(keys[:length], self.line)
            self.write(self.quoted(keys[length - 1]))

    def quoted(self, key: str) -> str:
        kinds = [json.dumps(key)]
        if "'" not in key:
            kinds.append(f"'{key}'")
        if key and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in key):
            kinds.append(key)
        return self.draw(st.sampled_from(kinds))

    def indent(self) -> None:
        self.write(self.draw(st.sampled_from(["", "", "  ", "\t", "\n", "# x = 1\n"])))

    def end(self) -> None:
        self.write(self.draw(REST) + "\n")

    def write(self, text: str) -> None:
        self.text += text

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1


def keys_of(tree: Any, at: Keys = ()) -> set[Keys]:
    found: set[Keys] = set()
    for key, value in tree.items():
        found |= {(*at, key)}
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, dict):
                found |= keys_of(below, (*at, key))
    return found


@given(documents())
def test_every_key_has_its_line(document: tuple[str, dict[Keys, int]]) -> None:
    """All keys that Python's own reader finds, no others, each where it was written."""
    text, lines = document
    found = key_lines(text)
    assert found == lines
    assert found.keys() == keys_of(tomllib.loads(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("# only = 1", {}),
        ("a=1", {("a",): 1}),
        ("\n[a]\nb=1\n[c]\nb=1", {("a",): 2, ("a", "b"): 3, ("c",): 4, ("c", "b"): 5}),
        ("[a.b]\n[a]\n", {("a",): 1, ("a", "b"): 1}),
        ("[[a]]\nb=1\n[[a]]\nc=1", {("a",): 1, ("a", "b"): 2, ("a", "c"): 4}),
    ],
)
def test_by_hand(text: str, wanted: dict[Keys, int]) -> None:
    tomllib.loads(text)
    assert key_lines(text) == wanted

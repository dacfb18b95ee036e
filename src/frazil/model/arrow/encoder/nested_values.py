"""Encode values that are JSON, with their type word.

One at a time, in Python: they are rare, and they repeat.
"""

from __future__ import annotations

import binascii
import json
import re
import struct
from collections.abc import Iterator, Sequence
from typing import NoReturn

INT = re.compile(r"-?[0-9]{1,19}", re.ASCII)
DOUBLE = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
INT64 = range(-(2**63), 2**63)
UINT64_COUNT = 2**64
INFINITY = float("inf")
ARRAY_DEPTH, KVLIST_DEPTH = 2, 3
"""Nesting depth, from an AnyValue to those of its elements or members."""
PACK_DOUBLE = struct.Struct("<d").pack


class _Number(str):
    """A JSON number as written, to tell it from a string."""

    __slots__ = ()


class _Members(list[tuple[str, object]]):
    """A JSON object, in its order."""


def value_of(text: str, word: str, depth_max: int) -> bytes:
    """Return the contents of an AnyValue from JSON and type word. Raises ValueError if they do
    not match, or are nested too deeply."""
    try:
        node = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
            object_pairs_hook=_Members,
        )
        return _write(node, iter(word), depth_max)
    except RecursionError:
        raise ValueError("it is too deep") from None


def _write(node: object, words: Iterator[str], depth_max: int) -> bytes:
    """Encode an AnyValue whose type is next in `words`."""
    match next(words), node:
        case "s", str() if not isinstance(node, _Number):
            return b"\x0a" + _delimited(node.encode())
        case "i", _Number():
            return b"\x18" + varint(int_of(node) % UINT64_COUNT)
        case "d", str() if isinstance(node, _Number) or node in NOT_FINITE:
            return b"\x21" + PACK_DOUBLE(double_of(node))
        case "b", bool():
            return b"\x10\x01" if node else b"\x10\x00"
        case "y", str() if not isinstance(node, _Number):
            return b"\x3a" + _delimited(bytes_of(node))
        case "e", None:
            return b""
        case "[", list() if not isinstance(node, _Members):
            return b"\x2a" + _delimited(_array(node, words, depth_max))
        case "{", _Members():
            return b"\x32" + _delimited(_kvlist(node, words, depth_max))
        case letter, _:
            raise ValueError(f"{node!r:.40} is not {letter!r}")
    raise AssertionError


def _array(node: list[object], words: Iterator[str], depth_max: int) -> bytes:
    below = _deeper(node, ARRAY_DEPTH, depth_max)
    encoded = [b"\x0a" + _delimited(_write(item, words, below)) for item in node]
    _end(words, "]")
    return b"".join(encoded)


def _kvlist(node: _Members, words: Iterator[str], depth_max: int) -> bytes:
    below = _deeper(node, KVLIST_DEPTH, depth_max)
    encoded = []
    for key, value in node:
        held = b"\x12" + _delimited(_write(value, words, below))
        named = b"\x0a" + _delimited(key.encode()) if key else b""
        encoded.append(b"\x0a" + _delimited(named + held))
    _end(words, "}")
    return b"".join(encoded)


def _deeper(node: Sequence[object], depth: int, depth_max: int) -> int:
    """Return the remaining depth inside. An empty container is one message."""
    if depth_max < (depth if node else 1):
        raise ValueError("it is deeper than protobuf reads")
    return depth_max - depth


def _end(words: Iterator[str], letter: str) -> None:
    if next(words) != letter:
        raise ValueError("it has fewer values than words")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def int_of(text: str) -> int:
    """Parse a 64-bit int. Raises ValueError."""
    number = int(text) if INT.fullmatch(text) else INT64.stop
    if number not in INT64:
        raise ValueError(f"{text!r:.40} is not a 64-bit integer")
    return number


def double_of(text: str) -> float:
    """Parse a double. Raises ValueError if it is invalid or overflows."""
    if text in NOT_FINITE:
        return float(text)
    number = float(text) if DOUBLE.fullmatch(text) else INFINITY
    if abs(number) == INFINITY:
        raise ValueError(f"{text!r:.40} is not a double")
    return number


def bytes_of(text: str) -> bytes:
    """Decode base64. Raises ValueError."""
    return binascii.a2b_base64(text, strict_mode=True)


def varint(number: int) -> bytes:
    """Encode an unsigned varint."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _delimited(content: bytes) -> bytes:
    return varint(len(content)) + content

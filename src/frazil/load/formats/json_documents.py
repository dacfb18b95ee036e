"""JSON files: objects in one array, or one after the other, over any number of lines. Each becomes
a line of NDJSON; the line of an error is then the number of the object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from frazil.errors import Malformed, TooLarge
from frazil.load.formats.lines import BOM, CHUNK_BYTES, LINE_BYTES_MAX, LineChunk

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*("|\\?\Z)|[{}\[\]]', re.DOTALL)
"""A string, whose group is `"` unless it is cut, or a bracket."""
SPACE = b" \t\r\n"


def document_chunks(stream: IO[bytes], *, is_cut: bool = False) -> Iterator[LineChunk]:
    """Yield the objects of a file as lines. `Malformed` if it holds something else. `is_cut`: the
    stream may end anywhere."""
    lines: list[bytes] = []
    size, first = 0, 1
    for document in _documents(stream, is_cut):
        # A line break inside a string would be wrong JSON, and one outside is white space.
        line = document.replace(b"\n", b" ").replace(b"\r", b" ")
        lines.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield LineChunk(first_line=first, data=b"\n".join((*lines, b"")))
            first, lines, size = first + len(lines), [], 0
    if lines:
        yield LineChunk(first_line=first, data=b"\n".join((*lines, b"")))


def _documents(stream: IO[bytes], is_cut: bool) -> Iterator[bytes]:
    """Yield each object, without what is between them."""
    data = bytes(stream.read(CHUNK_BYTES)).removeprefix(BOM)
    base = 1 if data.lstrip(SPACE).startswith(b"[") else 0
    depth, begin, at = 0, 0, 0
    is_over = False
    while True:
        for found in TOKEN.finditer(data, at):
            token = found[0]
            if token[:1] == b'"' and found[1] != b'"':
                break  # cut: look at it again with more bytes
            at = found.end()
            is_outside = depth <= base
            if token[:1] == b'"':
                if is_outside:
                    raise Malformed("a JSON file holds objects, but there is a string")
            elif token in b"{[":
                if is_outside:
                    _check_between(data[begin : found.start()], is_over=is_over)
                    if is_over or token != (b"[" if depth < base else b"{"):
                        raise Malformed("a JSON file holds objects only, or one array of them")
                    begin = at if depth < base else found.start()
                depth += 1
            else:
                depth -= 1
                if depth == base:
                    yield data[begin:at]
                    begin = at
                elif depth < base:
                    if depth < 0:
                        raise Malformed("the JSON file closes a bracket that it did not open")
                    _check_between(data[begin : found.start()], is_over=is_over)
                    is_over, begin = True, at
        more = bytes(stream.read(CHUNK_BYTES))
        if not more:
            break
        data, at, begin = data[begin:] + more, at - begin, 0
        if len(data) > LINE_BYTES_MAX + CHUNK_BYTES:
            raise TooLarge(f"a JSON object has more than {LINE_BYTES_MAX} bytes")
    if is_cut:
        return
    if depth or (base and not is_over):
        raise Malformed("the JSON file ends in the middle of an object or array")
    _check_between(data[begin:], is_over=is_over)


def _check_between(data: bytes, *, is_over: bool) -> None:
    rest = data.strip(SPACE)
    if rest and (is_over or rest != b","):
        raise Malformed(f"a JSON file holds objects, but there is {rest[:40]!r}")

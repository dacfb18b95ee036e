"""JSON files: objects in one array, or one after the other, over any number of lines. Each becomes
a line of NDJSON; the line of an error is then the number of the object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from frazil.errors import Malformed, TooLarge
from frazil.load.formats.lines import BOM, CHUNK_BYTES, LINE_BYTES_MAX, LineChunk

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
BETWEEN = b" \t\r\n,"


def document_chunks(stream: IO[bytes]) -> Iterator[LineChunk]:
    """Yield the objects of a file as lines. `Malformed` if it is something else."""
    lines: list[bytes] = []
    size, first = 0, 1
    for document in _documents(stream):
        # A line break inside a string would be wrong JSON, and one outside is white space.
        line = document.replace(b"\n", b" ").replace(b"\r", b" ")
        lines.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield LineChunk(first_line=first, data=b"\n".join((*lines, b"")))
            first, lines, size = first + len(lines), [], 0
    if lines:
        yield LineChunk(first_line=first, data=b"\n".join((*lines, b"")))


def _documents(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield each object, without what is between them."""
    data = bytes(stream.read(CHUNK_BYTES)).removeprefix(BOM)
    is_array = data.lstrip().startswith(b"[")
    base = 1 if is_array else 0
    depth, begin, at = 0, 0, 0
    has_ended = False
    while True:
        for found in TOKEN.finditer(data, at):
            token = found[0]
            at = found.end()
            if token[:1] == b'"':
                if depth == base:
                    raise Malformed("a JSON file holds objects, but there is a string")
                continue
            if token in b"{[":
                if depth == base and token == b"{":
                    _check_between(data[begin : found.start()], is_array)
                    begin = found.start()
                elif depth == base and (token == b"[" and not (is_array and base == 0)):
                    raise Malformed("a JSON file holds objects, but there is an array")
                depth += 1
                if is_array and depth == 1:
                    begin = at
            else:
                depth -= 1
                if depth == base:
                    yield data[begin:at]
                    begin = at
                elif depth < base:
                    _check_between(data[begin : found.start()], is_array)
                    has_ended, begin = True, at
                    if depth < 0:
                        raise Malformed("the JSON file closes a bracket that was not opened")
        more = stream.read(CHUNK_BYTES)
        if not more:
            break
        # A string may be cut: look at it again, from its beginning.
        rest = data[at:]
        cut = rest.find(b'"')
        keep = begin if depth > base else at + (cut if cut >= 0 else len(rest))
        keep = min(keep, begin) if depth > base else begin
        data, at, begin = data[keep:] + more, at - keep, begin - keep
        if len(data) - begin > LINE_BYTES_MAX + CHUNK_BYTES:
            raise TooLarge(f"a JSON object has more than {LINE_BYTES_MAX} bytes")
    if depth > (0 if has_ended or not is_array else base) or (is_array and not has_ended):
        raise Malformed("the JSON file ends in the middle of an object or array")
    _check_between(data[begin:], False)


def _check_between(data: bytes, is_array: bool) -> None:
    rest = data.strip(BETWEEN if is_array else BETWEEN[:-1])
    if rest:
        raise Malformed(f"a JSON file holds objects, but there is {rest[:40]!r}")

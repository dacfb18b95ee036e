"""Cuts a stream into chunks of whole lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from frazil.errors import TooLarge
from frazil.model import MiB

CHUNK_BYTES = 8 * MiB
LINE_BYTES_MAX = 64 * MiB
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChunk:
    """Whole lines of a file. Each ends with a newline."""

    first_line: int
    """Counted from 1."""
    data: bytes


def line_chunks(stream: IO[bytes], *, skip_lines: int = 0) -> Iterator[LineChunk]:
    """Yield all lines. `TooLarge` for a line above `LINE_BYTES_MAX`."""
    parts: list[bytes] = []
    size, line, skipped = 0, 1, 0
    is_first = True
    while True:
        data = stream.read(CHUNK_BYTES)
        if is_first:
            data, is_first = bytes(data).removeprefix(BOM), False
        end = data.rfind(b"\n") + 1
        if not data:
            if not size:
                return
            chunk, parts, size = b"".join(parts) + b"\n", [], 0
        elif not end:
            parts.append(data)
            size += len(data)
            if size > LINE_BYTES_MAX:
                raise TooLarge(f"line {line} has more than {LINE_BYTES_MAX} bytes")
            continue
        else:
            chunk = b"".join((*parts, data[:end]))
            parts, size = [data[end:]] if end < len(data) else [], len(data) - end
        while skipped < skip_lines and chunk:
            chunk = chunk[chunk.index(b"\n") + 1 :]
            skipped, line = skipped + 1, line + 1
        if chunk:
            yield LineChunk(first_line=line, data=chunk)
            line += chunk.count(b"\n")

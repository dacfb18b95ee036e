"""Lines of plain or compressed files, with their locations."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from frazil.errors import Malformed

STDIN = "-"
LINE_BYTES_MAX = 64 * 1024 * 1024
"""Longer lines are skipped: lines are held in memory, and no collector writes such."""
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""First bytes of such files."""
BUFFER_BYTES = 1024 * 1024
COMPRESSED_BYTES = 16 * 1024
"""Compressed bytes per step: zstd may expand them a thousandfold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePosition:
    """File and line number."""

    path: str
    number: int
    """From 1."""

    def __str__(self) -> str:
        return f"{'standard input' if self.path == STDIN else self.path}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """A line, or why it could not be read."""

    location: LinePosition
    text: bytes = b""
    error: str | None = None
    position: int
    """Bytes of the file read so far."""


def read_lines(path: str) -> Iterator[ReadLine]:
    """Yield the non-empty lines of a plain, gzip or zstd file. `-` is standard input.

    Raises Malformed if it cannot be opened. Later errors are yielded in place of a line.
    """
    with ExitStack() as stack:
        try:
            raw = sys.stdin.buffer if path == STDIN else stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise Malformed(f"cannot read {path}: {error.strerror}") from None
        yield from _lines(path, CountingStream(cast(BinaryIO, raw)))


def _lines(path: str, counter: CountingStream) -> Iterator[ReadLine]:
    number = 0
    try:
        stream = _opened(io.BufferedReader(counter, BUFFER_BYTES))
        while line := stream.readline(LINE_BYTES_MAX + 1):
            number += 1
            location = LinePosition(path=path, number=number)
            if len(line) > LINE_BYTES_MAX:
                _skip_line(stream, line)
                error = f"the line is longer than {LINE_BYTES_MAX} bytes"
                yield ReadLine(location=location, error=error, position=counter.position)
            elif text := line.strip():
                yield ReadLine(location=location, text=text, position=counter.position)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as problem:
        location = LinePosition(path=path, number=number + 1)
        error = f"cannot read the rest of the file: {problem}"
        yield ReadLine(location=location, error=error, position=counter.position)


class CountingStream(io.RawIOBase):
    """A stream that counts the bytes read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


class ZstdStream(io.RawIOBase):
    """Decompresses zstd frames. A truncated file raises EOFError; the library's own streams end
    silently there."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._is_in_frame = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            compressed = self._stream.read1(COMPRESSED_BYTES)
            if not compressed:
                if self._is_in_frame:
                    raise EOFError("truncated: the last frame is incomplete")
                return 0
            self._ready = memoryview(b"".join(self._decompressed(compressed)))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _decompressed(self, compressed: bytes) -> Iterator[bytes]:
        while compressed:
            yield self._frame.decompress(compressed)
            self._is_in_frame = not self._frame.eof
            compressed = self._frame.unused_data
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()


def _opened(stream: io.BufferedReader) -> io.BufferedReader:
    start = stream.peek(len(ZSTD))
    if start.startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=stream), BUFFER_BYTES)
    if start.startswith(ZSTD):
        return io.BufferedReader(ZstdStream(stream), BUFFER_BYTES)
    return stream


def _skip_line(stream: io.BufferedReader, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(BUFFER_BYTES)

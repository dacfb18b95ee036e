"""Lines of files that may be compressed, with the places they have there."""

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
"""Longer ones are not read: no file of a collector has them, and they are held in memory."""
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How such files begin."""
BUFFER_BYTES = 1024 * 1024
PACKED_BYTES = 16 * 1024
"""Unpacked at a time: zstd makes a thousand times as much of some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePosition:
    """Where a line is."""

    path: str
    number: int
    """From 1."""

    def __str__(self) -> str:
        return f"{'standard input' if self.path == STDIN else self.path}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """A line, or why there is none."""

    place: LinePosition
    text: bytes = b""
    trouble: str | None = None
    position: int
    """How much of the file was read for it."""


def read_lines(path: str) -> Iterator[ReadLine]:
    """All lines of a file that are not empty, be it plain, gzip or zstd. `-` is standard input.

    `Malformed` when it cannot be opened. What goes wrong later is told in place of a line.
    """
    with ExitStack() as stack:
        try:
            raw = sys.stdin.buffer if path == STDIN else stack.enter_context(Path(path).open("rb"))
        except OSError as error:
            raise Malformed(f"cannot read {path}: {error.strerror}") from None
        yield from _lines(path, CountingStream(cast(BinaryIO, raw)))


def _lines(path: str, counted: CountingStream) -> Iterator[ReadLine]:
    number = 0
    try:
        stream = _opened(io.BufferedReader(counted, BUFFER_BYTES))
        while line := stream.readline(LINE_BYTES_MAX + 1):
            number += 1
            place = LinePosition(path=path, number=number)
            if len(line) > LINE_BYTES_MAX:
                _skip_line(stream, line)
                trouble = f"the line is longer than {LINE_BYTES_MAX} bytes"
                yield ReadLine(place=place, trouble=trouble, position=counted.position)
            elif text := line.strip():
                yield ReadLine(place=place, text=text, position=counted.position)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        place = LinePosition(path=path, number=number + 1)
        trouble = f"the file cannot be read any further: {error}"
        yield ReadLine(place=place, trouble=trouble, position=counted.position)


class CountingStream(io.RawIOBase):
    """A stream that knows how much of it was read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        self.position += len(found)
        return len(found)


class ZstdStream(io.RawIOBase):
    """What zstd has packed, frame after frame. The library's own streams end in silence where a
    file was cut; here that is an `EOFError`."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._is_inside = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            packed = self._stream.read1(PACKED_BYTES)
            if not packed:
                if self._is_inside:
                    raise EOFError("it was cut off: its last frame has no end")
                return 0
            self._ready = memoryview(b"".join(self._unpacked(packed)))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        while packed:
            yield self._frame.decompress(packed)
            self._is_inside = not self._frame.eof
            packed = self._frame.unused_data
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

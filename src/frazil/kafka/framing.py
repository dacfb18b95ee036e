"""FrameReader: requests out of a stream of bytes.

A frame is four bytes of size and so many bytes. The size is checked before anything is allocated:
what is no Kafka client ("GET ") announces more than a gigabyte. A frame that is larger than the
small buffer of a connection is received into memory of its own, which its records refer to until
they are durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from frazil.errors import Malformed, TooLarge
from frazil.kafka.wire.schema import Bytes

SIZE_BYTES = 4
FRAME_BYTES_MIN = 8
"""API key, version and correlation id."""
BUFFER_BYTES = 16 * 1024
"""Per connection."""


class FrameReader:
    """Owned by the event loop."""

    def __init__(self, admit: Callable[[int], bool]) -> None:
        """`admit` is called with the size of the next frame; False means not now: then `frames`
        ends, and goes on with the same frame when called again. It may raise."""
        self._admit = admit
        self._buffer = bytearray(BUFFER_BYTES)
        self._begin = self._end = 0
        self._body: bytearray | None = None
        self._filled = 0

    @property
    def is_inside(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._body is not None or self._end > self._begin

    def space(self) -> memoryview:
        """Return where the next bytes go."""
        if self._body is not None:
            return memoryview(self._body)[self._filled :]
        if self._begin:
            held = self._end - self._begin
            self._buffer[:held] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, held
        return memoryview(self._buffer)[self._end :]

    def received(self, count: int) -> None:
        """Take note of bytes that were put there."""
        if self._body is not None:
            self._filled += count
        else:
            self._end += count

    def frames(self) -> Iterator[Bytes]:
        """Yield the frames that are whole. Raises `Malformed` or `TooLarge`."""
        while True:
            if self._body is not None:
                if self._filled < len(self._body):
                    return
                body, self._body = self._body, None
                yield memoryview(body)
                continue
            begin = self._begin + SIZE_BYTES
            if self._end < begin:
                return
            size = int.from_bytes(self._buffer[self._begin : begin], "big", signed=True)
            if size < FRAME_BYTES_MIN:
                raise Malformed(f"a request of {size} bytes; the shortest has {FRAME_BYTES_MIN}")
            if not self._admit(size):
                return
            held = self._end - begin
            if held >= size:
                self._begin = begin + size
                yield bytes(self._buffer[begin : begin + size])
                continue
            self._body = bytearray(size)
            self._body[:held] = self._buffer[begin : self._end]
            self._filled = held
            self._begin = self._end = 0


def check_size(size: int, bytes_max: int, setting: str) -> None:
    """Raise `TooLarge` if a request has more bytes than allowed."""
    if size > bytes_max:
        raise TooLarge(
            f"a request of {size} bytes is above {setting} ({bytes_max}); this port speaks Kafka's "
            "protocol"
        )

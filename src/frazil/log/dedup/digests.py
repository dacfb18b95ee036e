"""Duplicate detection by digest, for OTLP clients, which do not number their requests.

A client that did not get our response sends the same body again. The log stores a digest of each
body as a record header, and remembers digests for a window of time and count. Entries are kept in
generations that are dropped whole, so that expiry costs nothing per entry; the window is therefore
up to an eighth longer than configured.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

DIGEST_BYTES = 16
"""128 bits: a body with the digest of another one would be lost, so collisions must not happen."""
DIGEST_HEADER = "frazil.digest"
"""Key of the record header with the digest."""
GENERATIONS = 8

ENTRY = struct.Struct("<16sq")

Digest = tuple[bytes, int]
"""A digest and the base offset of its batch."""


class _Generation:
    __slots__ = ("first_ms", "last_ms", "offsets")

    def __init__(self, now_ms: int) -> None:
        self.first_ms = now_ms
        self.last_ms = now_ms
        self.offsets: dict[bytes, int] = {}


class DigestWindow:
    """Recent digests of one partition. Owned by the writer thread."""

    def __init__(self, *, window_ms: int, count_max: int) -> None:
        self._window_ms = window_ms
        self._generation_ms = max(1, window_ms // GENERATIONS)
        self._generation_count = max(1, count_max // GENERATIONS)
        self._count_max = count_max
        self._generations: deque[_Generation] = deque()
        self._count = 0

    def find(self, digest: bytes) -> int | None:
        """Return the offset of the batch with this digest, None if not remembered."""
        for generation in reversed(self._generations):
            offset = generation.offsets.get(digest)
            if offset is not None:
                return offset
        return None

    def add(self, digest: bytes, offset: int, now_ms: int) -> None:
        newest = self._generations[-1] if self._generations else None
        if (
            newest is None
            or len(newest.offsets) >= self._generation_count
            or now_ms - newest.first_ms >= self._generation_ms
        ):
            newest = _Generation(now_ms)
            self._generations.append(newest)
        self._count += digest not in newest.offsets
        newest.offsets[digest] = offset
        newest.last_ms = max(newest.last_ms, now_ms)
        self.expire(now_ms)

    def remove(self, digest: bytes) -> None:
        """Undo one `add`: the batch was not written."""
        for generation in reversed(self._generations):
            if generation.offsets.pop(digest, None) is not None:
                self._count -= 1
                return

    def expire(self, now_ms: int) -> None:
        """Drop generations outside the window."""
        while self._generations:
            oldest = self._generations[0]
            is_old = oldest.last_ms + self._window_ms < now_ms
            if not is_old and self._count - len(oldest.offsets) < self._count_max:
                return
            self._count -= len(oldest.offsets)
            self._generations.popleft()

    def __len__(self) -> int:
        return self._count


def encode_digests(entries: Iterable[Digest]) -> bytes:
    """Encode the digests of a sealed segment for its `.digests` file."""
    return b"".join(ENTRY.pack(*entry) for entry in entries)


def decode_digests(data: bytes) -> list[Digest]:
    """Decode a `.digests` file, whose checksum is already verified."""
    return list(ENTRY.iter_unpack(data))

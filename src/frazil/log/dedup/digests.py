"""Never twice, for senders that number nothing.

An OTLP sender that lost our answer sends the same body again. The log keeps a digest of each
body, as a record header, and remembers digests for a window of time and count. Entries are kept
in generations that are forgotten whole, so that forgetting costs nothing per entry; the window
is therefore at least what was asked for and at most an eighth more.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

DIGEST_BYTES = 16
"""128 bits: a body that shared another one's digest would be lost, so it must not happen."""
DIGEST_HEADER = "frazil.digest"
"""Key of the record header that carries the digest."""
GENERATIONS = 8

ENTRY = struct.Struct("<16sq")

Digest = tuple[bytes, int]
"""A digest and the base offset of the batch that carried it."""


class _Generation:
    __slots__ = ("first_ms", "last_ms", "offsets")

    def __init__(self, now_ms: int) -> None:
        self.first_ms = now_ms
        self.last_ms = now_ms
        self.offsets: dict[bytes, int] = {}


class DigestWindow:
    """Digests seen lately in one partition. Owned by the writer thread."""

    def __init__(self, *, window_ms: int, count_max: int) -> None:
        self._window_ms = window_ms
        self._generation_ms = max(1, window_ms // GENERATIONS)
        self._generation_count = max(1, count_max // GENERATIONS)
        self._count_max = count_max
        self._generations: deque[_Generation] = deque()
        self._count = 0

    def find(self, digest: bytes) -> int | None:
        """The offset this digest was stored at, if it is remembered."""
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
        """Undo one `add`: the batch was not written after all."""
        for generation in reversed(self._generations):
            if generation.offsets.pop(digest, None) is not None:
                self._count -= 1
                return

    def expire(self, now_ms: int) -> None:
        """Forget whole generations that lie outside the window."""
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
    """The digests of one sealed segment, as its `.digests` file holds them."""
    return b"".join(ENTRY.pack(*entry) for entry in entries)


def decode_digests(data: bytes) -> list[Digest]:
    """Read what `encode_digests` wrote. The bytes have passed their checksum."""
    return list(ENTRY.iter_unpack(data))

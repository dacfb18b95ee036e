"""LoneClient: whether the event loop itself may write for a client, instead of the log's thread.

A client that waits for each response before its next request gains nothing from group commit, and
two changes of threads take as long as the sync. So while nobody else writes, its batches are
written at once. As soon as a second client writes, or requests are pipelined, batches are queued
again and share a sync.
"""

from __future__ import annotations

from frazil.model import NS_PER_MS, Clock

REQUESTS_MIN = 8
"""Requests in a row, each alone on its connection and of no other client, after which a client
counts as lone. One that pipelines would lose more by waiting for the loop's syncs."""
BYTES_MAX = 32 * 1024
"""Larger batches are those of producers that gather."""
SLOW_MS = 5
"""A write that takes longer has kept the loop from others."""
RECOVER_FACTOR = 10
"""Batches are queued for so many times as long afterwards: slow writes take a tenth of the loop's
time at most."""


class LoneClient:
    """Owned by the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._client: object = None
        self._requests = 0
        self._queued_until_ns = 0
        self._begin_ns = 0

    def is_lone(self, client: object, *, waits: bool = True, size_bytes: int = 0) -> bool:
        """Count a request. Returns whether its batch may be written at once. `waits`: whether the
        client has no other request under way."""
        if client is not self._client or not waits:
            self._client = client
            self._requests = 0
        self._requests += 1
        if self._requests <= REQUESTS_MIN or size_bytes > BYTES_MAX:
            return False
        self._begin_ns = self._clock.monotonic_ns()
        return self._begin_ns >= self._queued_until_ns

    def written(self) -> None:
        """Note that a batch was written."""
        now_ns = self._clock.monotonic_ns()
        took_ns = now_ns - self._begin_ns
        if took_ns > SLOW_MS * NS_PER_MS:
            self._queued_until_ns = now_ns + RECOVER_FACTOR * took_ns

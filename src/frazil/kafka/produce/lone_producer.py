"""LoneProducer: whether the event loop itself may write a batch, instead of the log's thread.

A producer that waits for each response before its next batch gains nothing from group commit, and
two changes of threads take as long as the sync. So while nobody else produces, its batches are
written at once. As soon as a second client produces, or requests are pipelined, batches are queued
again and share a sync.
"""

from __future__ import annotations

from frazil.kafka.context import ConnectionState, RequestContext
from frazil.log import Append
from frazil.model import NS_PER_MS, Clock

REQUESTS_MIN = 8
"""Requests in a row, each alone on its connection and of no other connection, after which a
producer counts as lone. One that pipelines would lose more by waiting for the loop's syncs."""
BYTES_MAX = 32 * 1024
"""Larger batches are those of producers that gather."""
SLOW_MS = 5
"""A write that takes longer has kept the loop from others."""
RECOVER_FACTOR = 10
"""Batches are queued for so many times as long afterwards: slow writes take a tenth of the loop's
time at most."""


class LoneProducer:
    """Owned by the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connection: ConnectionState | None = None
        self._requests = 0
        self._queued_until_ns = 0
        self._begin_ns = 0

    def is_lone(self, context: RequestContext, append: Append) -> bool:
        """Count a request. Returns whether its batch may be written at once."""
        if context.connection is not self._connection or not context.is_only:
            self._connection = context.connection
            self._requests = 0
        self._requests += 1
        if self._requests <= REQUESTS_MIN or append.size_bytes > BYTES_MAX:
            return False
        self._begin_ns = self._clock.monotonic_ns()
        return self._begin_ns >= self._queued_until_ns

    def written(self) -> None:
        """Note that a batch was written."""
        now_ns = self._clock.monotonic_ns()
        took_ns = now_ns - self._begin_ns
        if took_ns > SLOW_MS * NS_PER_MS:
            self._queued_until_ns = now_ns + RECOVER_FACTOR * took_ns

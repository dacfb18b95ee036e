"""ReadableLog: what readers need of a log.

`Log` is one, in the process that appends; `ObservedLog` is one, in any other process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from frazil.log.readable import ReadablePartition, ReadableTopic
from frazil.log.reader import Reader, Start


class ProgressKeeper(Protocol):
    """The progress of a subscriber that reads by itself. The log keeps what is unfinished."""

    def finish(self, partition: int, begin: int, end: int) -> None:
        """Mark offsets as finished."""
        ...

    def reopen(self, partition: int, begin: int, end: int) -> None:
        """Mark offsets as unfinished."""
        ...

    def step(self) -> int:
        """Make progress durable if it changed."""
        ...


class ReadableLog(Protocol):
    """The reading half of a log. Any thread may use it."""

    def topics(self) -> Sequence[ReadableTopic]: ...

    def topic(self, name: str) -> ReadableTopic: ...

    def partition(self, topic: str, index: int) -> ReadablePartition: ...

    def reader(self, topic: str, start: Start, *, partition: int = 0) -> Reader: ...

    def wait_for_any(
        self, offsets: Sequence[tuple[ReadablePartition, int]], timeout_s: float
    ) -> bool: ...

    def publish(
        self, topic: str, partition: int, lake_watermark: int, topic_id: UUID | None = None
    ) -> None: ...

    def discard(self, topic: str, partition: int, end: int) -> None: ...

    def lake_watermark(self, topic: str, partition: int = 0) -> int | None: ...

    def has_subscriber(self, name: str) -> bool: ...

    def keep_progress(self, name: str, topic: str) -> ProgressKeeper:
        """Register a subscriber from the earliest offset on, or resume an existing one."""
        ...

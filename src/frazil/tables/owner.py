"""TableOwner: what keyed tables need of a log besides reading it.

`Log` is one, in the process that owns it. `ObservedLog` is one in the reader process of a node: it
sends encoded batches to the writer process, which needs neither Arrow nor definitions of tables.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol
from uuid import UUID

from frazil.log import Append, AppendResult, ReadableLog, ReadableTopic, SourcePosition
from frazil.settings import TopicConfig


class TableOwner(ReadableLog, Protocol):
    """A log to which tables are written. Any thread may use it."""

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]:
        """Append a batch; the future resolves when it is durable."""
        ...

    def append_durably(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> AppendResult:
        """Append a batch and wait until it is durable."""
        ...

    def source_position(
        self, topic: str, source: str, *, partition: int = 0
    ) -> SourcePosition | None:
        """Return how far a source was copied into a partition; None if it never was."""
        ...

    def create_topic(self, name: str, config: TopicConfig) -> ReadableTopic: ...

    def delete_topic(self, name: str) -> None: ...

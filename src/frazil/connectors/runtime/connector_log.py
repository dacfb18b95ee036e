"""ConnectorLog: what connectors need of the log."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol
from uuid import UUID

from frazil.log import Append, AppendResult, ReadableLog, ReadableTopic, SourceDirectory
from frazil.settings import TopicConfig


class ConnectorLog(ReadableLog, Protocol):
    """`Log` is one, and `ObservedLog`. Any thread may use it."""

    @property
    def sources(self) -> SourceDirectory: ...

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]: ...

    def create_topic(self, name: str, config: TopicConfig) -> ReadableTopic: ...

    def unsubscribe(self, name: str) -> None: ...

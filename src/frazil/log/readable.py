"""What readers need of partitions and topics, whether this process owns the log or observes it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from frazil.disk import Disk
from frazil.log.view import PartitionView
from frazil.settings import TopicConfig


class ReadablePartition(Protocol):
    """A partition, as readers see it. Any thread may use it."""

    @property
    def topic(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def swap(self) -> AbstractContextManager[object]:
        """Held while a file of the view is opened: the owner renames none meanwhile."""
        ...

    @property
    def view(self) -> PartitionView:
        """What is durable, as of now or a moment ago."""
        ...

    def current_view(self, *, is_stale: bool = False, is_indexed: bool = False) -> PartitionView:
        """Return what is durable now. `is_stale`: files of the last view are gone or replaced.
        `is_indexed`: with complete indexes. Raises `Corrupt` if acknowledged data is missing."""
        ...


class ReadableTopic(Protocol):
    """A topic, as readers see it."""

    @property
    def name(self) -> str: ...

    @property
    def topic_id(self) -> UUID | None:
        """Another one once the topic was deleted and created again; None while an earlier release
        owns the log."""
        ...

    @property
    def config(self) -> TopicConfig: ...

    @property
    def partitions(self) -> Sequence[ReadablePartition]: ...

"""QueryConfig: what one query may take, and how many may run at a time."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed
from frazil.model import MiB
from frazil.results import Limits


class QueryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the query engine."""

    timeout_ms: int = 30_000
    """How long a query may take, from the call to the last row that is read."""
    memory_bytes_max: int = 512 * MiB
    """What a query may hold in tables of groups, sorted rows and joined sides. With what it keeps
    on top of that for a moment, the process may grow by three times as much."""
    rows_max: int = 1_000_000
    """How many rows a result may have."""
    text_bytes_max: int = 256 * 1024
    """How long the text of a query may be."""
    concurrency_max: int = 8
    """Queries that run at the same time, each until its result is read or closed."""
    queue_timeout_ms: int = 5_000
    """How long a query waits for its turn before it is refused."""
    apart_bytes_max: int = 1024 * MiB
    """Rows that are handed to a process of its own, for queries that may not run in this one."""
    topic_bytes_max: int = 256 * MiB
    """Rows of a topic that is no telemetry which are in the log only: each query reads all of
    them. As much as comes until the lake is filled, and some more."""
    apart_idle_ms: int = 60_000
    """How long such a process waits for the next query."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise Malformed(f"query.{name} is {getattr(self, name)}; it must be at least 1")

    def within(self, limits: Limits | None) -> QueryConfig:
        """The same settings for one query that asks for less."""
        if limits is None:
            return self
        asked = {
            name: min(value, getattr(self, name))
            for name in limits.__struct_fields__
            if (value := getattr(limits, name)) is not None
        }
        return msgspec.structs.replace(self, **asked)

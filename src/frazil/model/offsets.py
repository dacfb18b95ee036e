"""TopicPartition and OffsetRange: which partition, and which offsets of it.

Tuples: cheap, hashable, and stored as arrays where a format stores them.
"""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class OffsetRange(NamedTuple):
    """Offsets from `begin` up to, not including, `end`."""

    begin: int
    end: int

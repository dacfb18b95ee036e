"""What an operator may set for the log. Unknown keys and contradicting values are refused."""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.disk import FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX
from frazil.errors import Malformed
from frazil.model import GiB, KiB, MiB

PARTITIONS_MAX = 1024
"""Each partition keeps two open files and a segment that cannot be released."""


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the whole log."""

    segment_bytes_max: int = 64 * MiB
    """A partition goes on in a new file when the last one has this size. Only whole files go."""
    segment_age_ms_max: int = 3_600_000
    """A file is also ended at this age, so that a quiet partition lets go of old records, too."""
    batch_bytes_max: int = 32 * MiB
    """The largest batch that can be appended. A request of OTLP must fit into one."""
    group_bytes_max: int = 16 * MiB
    """About as much as is written with one sync, when many wait for the disk at the same time."""
    queue_bytes_max: int = 128 * MiB
    """Batches that wait for the disk. Above it, senders are told to come back later."""
    queue_count_max: int = 20_000
    """The same, as a number of batches."""
    disk_bytes_max: int = 10 * GiB
    """What the log may take of the disk, all topics together."""
    when_full: Literal["backpressure", "drop_oldest"] = "backpressure"
    """At that limit: refuse what comes, or lose the oldest records, which are counted."""
    digest_window_ms: int = 600_000
    """For so long a request that comes again is known, and not stored twice."""
    digest_count_max: int = 1_000_000
    """So many requests of a partition are known at most, the latest ones. They are in memory."""
    producer_expiry_ms: int = 7 * 86_400_000
    """A producer that was silent for so long is forgotten: what it sends again is stored again."""
    index_interval_bytes: int = 64 * KiB
    """A read begins at most so many bytes before what it looks for. Less takes more memory."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise Malformed(f"log.{name} is {value}; it must be at least 1")
        if self.batch_bytes_max > PAYLOAD_BYTES_MAX // 2:
            raise Malformed(
                f"log.batch_bytes_max ({self.batch_bytes_max}) is above {PAYLOAD_BYTES_MAX // 2}"
            )
        if self.batch_bytes_max + FRAME_HEADER_BYTES > self.queue_bytes_max:
            raise Malformed(
                f"log.batch_bytes_max ({self.batch_bytes_max}) is not below log.queue_bytes_max "
                f"({self.queue_bytes_max}): a batch of that size could never be queued"
            )
        if self.disk_bytes_max < 3 * self.segment_bytes_max:
            raise Malformed(
                f"log.disk_bytes_max ({self.disk_bytes_max}) is below three segments of "
                f"{self.segment_bytes_max} bytes: the log could not release one while it fills "
                "the next; raise it or lower log.segment_bytes_max"
            )


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one topic, stored beside its partitions.

    A sealed segment may go once it is released: published to the lake (when `awaits_lake`) and
    acknowledged by every subscriber. It then stays for `retention_ms`, unless the partition holds
    more than `retention_bytes_max` or the log as a whole is short of room.
    """

    partitions: int = 1
    awaits_lake: bool = False
    retention_ms: int = 600_000
    retention_bytes_max: int | None = None
    cleanup: Literal["expire", "compact"] = "expire"
    compact_dirty_ratio_min: float = 0.5
    compact_age_ms_min: int = 0
    compact_lag_ms_max: int | None = None
    tombstone_grace_ms: int = 86_400_000

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise Malformed(f"partitions is {self.partitions}; it must be 1 to {PARTITIONS_MAX}")
        if not 0 <= self.compact_dirty_ratio_min <= 1:
            raise Malformed(
                f"compact_dirty_ratio_min is {self.compact_dirty_ratio_min}; it must be 0 to 1"
            )
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and value < 0:
                raise Malformed(f"{name} is {value}; it must not be negative")
        lag = self.compact_lag_ms_max
        if lag is not None and lag < self.compact_age_ms_min:
            raise Malformed(
                f"compact_lag_ms_max ({lag}) is below compact_age_ms_min "
                f"({self.compact_age_ms_min}): a record would have to be compacted before it may be"
            )

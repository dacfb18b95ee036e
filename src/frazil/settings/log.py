"""LogConfig: settings of the log. TopicConfig: settings of one topic."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.disk import FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX
from frazil.errors import InvalidSetting, Malformed
from frazil.model import GiB, KiB, MiB, doc, require_at_least

PARTITIONS_MAX = 1024
"""Each partition keeps two files open and one segment that cannot be deleted."""


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the log, all topics together."""

    segment_bytes_max: Annotated[
        int, doc("Start a new segment file at this size. Retention deletes whole segments.")
    ] = 64 * MiB
    segment_age_ms_max: Annotated[
        int, doc("Start a new segment file at this age, so that quiet partitions expire, too.")
    ] = 3_600_000
    batch_bytes_max: Annotated[int, doc("Largest batch. An OTLP request must fit into one.")] = (
        32 * MiB
    )
    group_bytes_max: Annotated[
        int, doc("About how many bytes one fsync covers when many appends wait.")
    ] = 16 * MiB
    queue_bytes_max: Annotated[
        int, doc("Bytes waiting for the disk. Above it, clients must retry later.")
    ] = 128 * MiB
    queue_count_max: Annotated[
        int, doc("Batches waiting for the disk. Above it, clients must retry later.")
    ] = 20_000
    disk_bytes_max: Annotated[int, doc("Disk space for the log, all topics together.")] = 10 * GiB
    when_full: Annotated[
        Literal["backpressure", "drop_oldest"],
        doc("At `disk_bytes_max`: reject new batches, or drop (and count) the oldest."),
    ] = "backpressure"
    digest_window_ms: Annotated[
        int, doc("How long a request is remembered, so that a retry is not stored twice.")
    ] = 600_000
    digest_count_max: Annotated[
        int, doc("How many of the latest requests of a partition are remembered, in memory.")
    ] = 1_000_000
    producer_expiry_ms: Annotated[
        int, doc("Forget a producer silent for this long. Later repeats are stored again.")
    ] = 7 * 86_400_000
    index_interval_bytes: Annotated[
        int, doc("Bytes between index entries: a read skips at most this. Less takes more memory.")
    ] = 64 * KiB

    def __post_init__(self) -> None:
        require_at_least(1, "log", self)
        if self.batch_bytes_max > PAYLOAD_BYTES_MAX // 2:
            raise InvalidSetting(
                f"log.batch_bytes_max ({self.batch_bytes_max}) is above the maximum of "
                f"{PAYLOAD_BYTES_MAX // 2}",
                "log.batch_bytes_max",
            )
        if self.batch_bytes_max + FRAME_HEADER_BYTES > self.queue_bytes_max:
            raise InvalidSetting(
                f"log.batch_bytes_max ({self.batch_bytes_max}) is not below log.queue_bytes_max "
                f"({self.queue_bytes_max}): a batch of that size could never be queued",
                "log.batch_bytes_max",
                "log.queue_bytes_max",
            )
        if self.disk_bytes_max < 3 * self.segment_bytes_max:
            raise InvalidSetting(
                f"log.disk_bytes_max ({self.disk_bytes_max}) is below three segments of "
                f"{self.segment_bytes_max} bytes: the log could not delete one while it fills "
                "the next; raise it or lower log.segment_bytes_max",
                "log.disk_bytes_max",
                "log.segment_bytes_max",
            )


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one topic, stored beside its partitions.

    A closed segment is released once it is in the lake (if `awaits_lake`) and acknowledged by every
    subscriber. It is deleted `retention_ms` later, or earlier if the partition exceeds
    `retention_bytes_max` or, with `may_expire_early`, the log exceeds its disk space.
    """

    partitions: int = 1
    awaits_lake: bool = False
    retention_ms: int = 600_000
    retention_bytes_max: int | None = None
    may_expire_early: bool = True
    """Whether segments go before their time if the log needs the space. Without it, appends are
    refused while there is none."""
    cleanup: Literal["expire", "compact", "compact_expire"] = "expire"
    """Remove old segments; keep the latest record of each key; or both: the latest, unless old."""
    compact_dirty_ratio_min: float = 0.5
    compact_age_ms_min: int = 0
    compact_lag_ms_max: int | None = None
    tombstone_grace_ms: int = 86_400_000
    batch_bytes_max: int | None = None
    """Largest batch, if below the log's own limit."""
    compression: Literal["producer", "none", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """How batches of Kafka clients are stored: as their producer compressed them, or otherwise."""
    timestamps: Literal["create", "append"] = "create"
    """Whether records of Kafka clients keep their timestamp or get that of their append."""

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
                f"({self.compact_age_ms_min}): compaction would be due before it is allowed"
            )

    @property
    def is_compacted(self) -> bool:
        return self.cleanup != "expire"

    @property
    def is_expired(self) -> bool:
        return self.cleanup != "compact"

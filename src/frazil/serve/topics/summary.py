"""A topic and its partitions as the API shows them, from watermarks and settings."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.lake import source_of
from frazil.log import DEAD_LETTERS, SCHEMAS, ReadablePartition, ReadableTopic
from frazil.model import Signal, doc
from frazil.serve.context import NodeContext

FOREVER_MS = 2**63 - 1
"""Retention of a topic without a limit. No record has this time."""
INTERNAL_PREFIX = "__"
TELEMETRY = frozenset(signal.topic for signal in Signal)
POLICIES = {"expire": "delete", "compact": "compact", "compact_expire": "compact,delete"}
"""`cleanup.policy`, as Kafka calls it."""

TopicKind = Literal["topic", "telemetry", "internal"]


class TopicSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A topic."""

    name: str
    topic_id: Annotated[str | None, doc("Another one once the topic was created again.")]
    kind: Annotated[TopicKind, doc("Clients produce only to those of kind `topic`.")]
    table: Annotated[str | None, doc("SQL table of its records.")]
    partitions: int
    records: Annotated[int, doc("Offsets in the log. After compaction there are fewer records.")]
    bytes: Annotated[int, doc("Bytes in the log.")]
    cleanup_policy: str
    retention_ms: Annotated[int | None, doc("Null: no limit.")]
    retention_bytes: Annotated[int | None, doc("Per partition. Null: no limit.")]
    newest_ms: Annotated[int | None, doc("Largest timestamp of a record; null if unknown.")]


class TopicPartitionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A partition of a topic."""

    partition: int
    start_offset: Annotated[int, doc("First offset in the log.")]
    last_stable_offset: Annotated[
        int, doc("End of what is committed; below `end_offset` while a transaction is open.")
    ]
    end_offset: Annotated[int, doc("Offset of the next record.")]
    bytes: int
    segments: int
    newest_ms: int | None


def kind_of(topic: str) -> TopicKind:
    """Return who writes to a topic."""
    if topic in TELEMETRY:
        return "telemetry"
    is_internal = topic in (DEAD_LETTERS, SCHEMAS) or topic.startswith(INTERNAL_PREFIX)
    return "internal" if is_internal else "topic"


def partitions_of(topic: ReadableTopic) -> list[TopicPartitionDetail]:
    """Return the partitions of a topic."""
    return [_partition(partition) for partition in topic.partitions]


def summary_of(
    context: NodeContext, topic: ReadableTopic, partitions: list[TopicPartitionDetail]
) -> TopicSummary:
    """Summarize a topic with these partitions."""
    config = topic.config
    times = [each.newest_ms for each in partitions if each.newest_ms is not None]
    has_limit = config.is_expired and config.retention_ms < FOREVER_MS
    return TopicSummary(
        name=topic.name,
        topic_id=None if topic.topic_id is None else str(topic.topic_id),
        kind=kind_of(topic.name),
        table=_table(context, topic.name),
        partitions=len(partitions),
        records=sum(each.end_offset - each.start_offset for each in partitions),
        bytes=sum(each.bytes for each in partitions),
        cleanup_policy=POLICIES[config.cleanup],
        retention_ms=config.retention_ms if has_limit else None,
        retention_bytes=config.retention_bytes_max if config.is_expired else None,
        newest_ms=max(times, default=None),
    )


def _table(context: NodeContext, topic: str) -> str | None:
    if context.sql is None:
        return None
    source = source_of(topic, 0, context.lake_topics)
    return None if source is None else source.table


def _partition(partition: ReadablePartition) -> TopicPartitionDetail:
    view = partition.view
    times = [segment.info.max_timestamp_ms for segment in view.segments[-2:]]
    known = [time for time in times if abs(time) < FOREVER_MS]
    return TopicPartitionDetail(
        partition=partition.index,
        start_offset=view.start_offset,
        last_stable_offset=view.last_stable_offset,
        end_offset=view.durable_watermark,
        bytes=view.size_bytes,
        segments=len(view.segments),
        newest_ms=max(known, default=None),
    )

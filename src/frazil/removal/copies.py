"""Which offsets log and hot tier still have of rows that were removed from the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import Unknown
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from frazil.hot import HotTier
    from frazil.lake import TablesView
    from frazil.log import ReadableLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What one partition still has below the offset after the last removed row."""

    partition: TopicPartition
    log_offsets: int
    hot_offsets: int


def copies_of(view: TablesView, log: ReadableLog, tier: HotTier | None) -> list[Copies]:
    """Return the partitions whose log or hot tier still has records of removed rows."""
    removed: dict[TopicPartition, int] = {}
    for table in view.tables.values():
        for partition, end in table.removed.items():
            removed[partition] = max(removed.get(partition, 0), end)
    copies = []
    for partition, end in sorted(removed.items()):
        log_offsets = max(0, end - _log_start(log, partition, end))
        hot_offsets = max(0, end - _hot_start(tier, partition, end))
        if log_offsets or hot_offsets:
            copies.append(
                Copies(partition=partition, log_offsets=log_offsets, hot_offsets=hot_offsets)
            )
    return copies


def _log_start(log: ReadableLog, partition: TopicPartition, end: int) -> int:
    try:
        return log.partition(partition.topic, partition.partition).current_view().start_offset
    except Unknown:  # tables that another log has filled
        return end


def _hot_start(tier: HotTier | None, partition: TopicPartition, end: int) -> int:
    if tier is None:
        return end
    try:
        return tier.start_offset(partition.topic, partition.partition)
    except Unknown:  # not telemetry
        return end

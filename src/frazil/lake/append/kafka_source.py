"""KafkaSource: fills the tables from a Kafka cluster.

Kafka reports offsets, not bytes. The bytes per offset are estimated by reading a few records where
a plan begins, every few plans; gaps count as offsets of no bytes. The estimate only decides how
offsets are cut into slices and when a round is due.
"""

from __future__ import annotations

import logging
from itertools import pairwise

from frazil.lake.append.kafka_admin import (
    KafkaAdmin,
    KafkaOffsets,
    KafkaTopic,
    count_lost,
    ends_early,
)
from frazil.lake.append.kafka_reader import KafkaRange
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.model import Signal, TopicPartition
from frazil.settings import KafkaConfig

logger = logging.getLogger(__name__)

SAMPLE_COUNT = 64
"""Offsets read to estimate the bytes per offset."""
SAMPLE_PLANS = 32
"""Plans of a partition per sample."""
OFFSET_BYTES = 16 * 1024
"""Assumed bytes per offset before the first sample: a request of some dozens of log records."""
OFFSET_BYTES_MIN = 64
"""Used when the sample holds only gaps."""


class KafkaSource:
    """Owned by one thread. The other methods work on what the last `sources` returned."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._admin_client: KafkaAdmin | None = None
        self._topics: dict[str, KafkaTopic] = {}
        self._extents: dict[TopicPartition, KafkaOffsets] = {}
        self._watermarks: dict[TopicPartition, int] = {}
        self._offset_bytes: dict[TopicPartition, float] = {}
        self._plan_counts: dict[TopicPartition, int] = {}
        self._missing: frozenset[str] = frozenset()

    def sources(self) -> list[SourcePartition]:
        signals = {self._config.topic_of(signal.table): signal for signal in Signal}
        topics = {topic.name: topic for topic in self._admin().topics(signals)}
        self._warn_about(topics, frozenset(signals) - topics.keys())
        sources = [
            SourcePartition(
                table=signals[name].table, signal=signals[name], topic=name, partition=partition
            )
            for name in signals
            if name in topics
            for partition in topics[name].partitions
        ]
        self._extents = self._admin().extents(source.topic_partition for source in sources)
        self._topics = topics
        return sources

    @property
    def replaces_topics(self) -> bool:
        return False

    def identities(self) -> dict[str, str]:
        return {topic.name: topic.identity for topic in self._topics.values() if topic.identity}

    def end(self, source: SourcePartition) -> int:
        return self._extents[source.topic_partition].last_stable_offset

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        extent = self._extents[source.topic_partition]
        stable = extent.last_stable_offset
        last = stable if end is None else end
        if begin > stable or last > stable:
            raise ends_early(source.topic_partition, stable, begin, source.table)
        if begin == last:
            return []
        first = self._first(source, begin, min(last, extent.start_offset))
        offset_bytes = self._estimate(source, first, last)
        step = max(1, int(bytes_max / offset_bytes))
        # The first slice also covers lost offsets.
        edges = [begin, *range(first + step, last, step), last]
        return [
            Slice(
                source=source,
                begin=slice_begin,
                end=slice_end,
                size_bytes=int((slice_end - max(first, slice_begin)) * offset_bytes),
                origin=self._range(source, max(first, slice_begin), slice_end),
            )
            for slice_begin, slice_end in pairwise(edges)
        ]

    def pending_bytes(self, source: SourcePartition) -> int:
        extent = self._extents[source.topic_partition]
        begin = max(self.watermark(source), extent.start_offset)
        count = max(0, extent.last_stable_offset - begin)
        return int(count * self._offset_bytes.get(source.topic_partition, OFFSET_BYTES))

    def publish(self, source: SourcePartition, lake_watermark: int) -> None:
        """Also commit it as a consumer group's offset, for monitoring only: Kafka's retention
        does not depend on it."""
        self._watermarks[source.topic_partition] = lake_watermark
        if lake_watermark > 0:
            self._admin().commit_progress({source.topic_partition: lake_watermark})

    def watermark(self, source: SourcePartition) -> int:
        return self._watermarks.get(source.topic_partition, 0)

    def discard(self, partition: TopicPartition, end: int) -> None:
        """Kafka keeps its records by its own retention."""

    def _admin(self) -> KafkaAdmin:
        if self._admin_client is None:
            self._admin_client = KafkaAdmin(self._config)
        return self._admin_client

    def _first(self, source: SourcePartition, begin: int, kept: int) -> int:
        """Return the first readable offset."""
        if begin >= kept:
            return begin
        skip = self._config.skip_lost
        count_lost(source.topic_partition, begin, kept, source.table, skip=skip)
        return kept

    def _estimate(self, source: SourcePartition, begin: int, end: int) -> float:
        """Estimate the bytes per offset."""
        count = self._plan_counts.get(source.topic_partition, 0)
        self._plan_counts[source.topic_partition] = count + 1
        if count % SAMPLE_PLANS == 0:
            sample = self._range(source, begin, min(end, begin + SAMPLE_COUNT))
            read_bytes = sum(
                len(record.value or b"") for records in sample.read() for record in records
            )
            mean = read_bytes / max(1, sample.end - sample.begin)
            self._offset_bytes[source.topic_partition] = max(OFFSET_BYTES_MIN, mean)
        return self._offset_bytes[source.topic_partition]

    def _range(self, source: SourcePartition, begin: int, end: int) -> KafkaRange:
        return KafkaRange(
            brokers=self._config.brokers,
            group=self._config.group,
            client=self._config.client,
            topic=source.topic,
            partition=source.partition,
            begin=begin,
            end=end,
        )

    def _warn_about(self, topics: dict[str, KafkaTopic], missing: frozenset[str]) -> None:
        """Log once which topics are missing or poorly replicated."""
        for name in sorted(missing - self._missing):
            logger.warning("kafka topic does not exist", extra={"topic": name})
        self._missing = missing
        for name in sorted(topics.keys() - self._topics.keys()):
            self._admin().warn_if_weak(topics[name])

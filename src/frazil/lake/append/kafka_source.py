"""KafkaSource: where rows come from when the log is a Kafka. Partitions, cut by offsets for tasks.

Kafka counts records, not bytes. How many bytes an offset stands for is found by reading a few at
the place where a plan begins, now and then; gaps count, as they are offsets, too. It decides how
work is cut and when a round is due, and nothing else: a task reads its offsets whatever they hold.
"""

from __future__ import annotations

import logging
from itertools import pairwise

from frazil.errors import OutOfRange
from frazil.lake.append.kafka_admin import (
    IN_SYNC_MIN,
    REPLICAS_MIN,
    KafkaAdmin,
    KafkaOffsets,
    KafkaTopic,
    Place,
)
from frazil.lake.append.kafka_reader import KafkaRange
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.lake.kafka_config import KafkaConfig
from frazil.metrics import Counter
from frazil.model import Signal

logger = logging.getLogger(__name__)

SAMPLE_COUNT = 64
"""Offsets that are read to find out how large the others are."""
SAMPLE_PLANS = 32
"""So many plans of a partition go by one sample."""
WEIGHT_BYTES = 16 * 1024
"""Of an offset, until one was read: some dozens of log records."""
WEIGHT_BYTES_MIN = 64
"""Where all that was read were gaps."""

LOST = Counter("frazil.lake.kafka.lost.offsets", "Offsets the broker had removed before a round.")


class KafkaSource:
    """Belongs to one thread. What `sources` has found, the others go by."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._brokers: KafkaAdmin | None = None
        self._topics: dict[str, KafkaTopic] = {}
        self._extents: dict[Place, KafkaOffsets] = {}
        self._weights: dict[Place, float] = {}
        self._plan_counts: dict[Place, int] = {}
        self._missing: frozenset[str] = frozenset()

    def sources(self) -> list[SourcePartition]:
        signals = {self._config.topic_of(signal.table): signal for signal in Signal}
        topics = {topic.name: topic for topic in self._ask().topics(signals)}
        self._tell_of(topics, frozenset(signals) - topics.keys())
        found = [
            SourcePartition(
                table=signals[name].table, signal=signals[name], topic=name, partition=partition
            )
            for name in signals
            if name in topics
            for partition in topics[name].partitions
        ]
        self._extents = self._ask().extents(source.place for source in found)
        self._topics = topics
        return found

    def identities(self) -> dict[str, str]:
        return {topic.name: topic.identity for topic in self._topics.values() if topic.identity}

    def end(self, source: SourcePartition) -> int:
        return self._extents[source.place].end

    def plan(
        self, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        extent = self._extents[source.place]
        last = extent.end if end is None else end
        if begin > extent.end or last > extent.end:
            raise OutOfRange(
                f"{source.topic}/{source.partition} ends at offset {extent.end}, and the table "
                f"{source.table} goes on at {begin}: the topic was made anew, or its broker has "
                "lost what it had acknowledged. Fill tables of another namespace from it "
                "(lake.namespace), or send to a topic of another name"
            )
        if begin == last:
            return []
        first = self._first(source, begin, min(last, extent.begin))
        weight = self._weigh(source, first, last)
        step = max(1, int(bytes_max / weight))
        # Where offsets were lost, the first slice takes care of them, too.
        edges = [begin, *range(first + step, last, step), last]
        return [
            Slice(
                source=source,
                begin=slice_begin,
                end=slice_end,
                size_bytes=int((slice_end - max(first, slice_begin)) * weight),
                origin=self._range(source, max(first, slice_begin), slice_end),
            )
            for slice_begin, slice_end in pairwise(edges)
        ]

    def pending_bytes(self, source: SourcePartition, begin: int) -> int:
        extent = self._extents[source.place]
        count = max(0, extent.end - max(begin, extent.begin))
        return int(count * self._weights.get(source.place, WEIGHT_BYTES))

    def publish(self, source: SourcePartition, end: int) -> None:
        """Kafka's own retention decides when records go; so this is for people to look at."""
        if end > 0:
            self._ask().show_progress({source.place: end})

    def _ask(self) -> KafkaAdmin:
        if self._brokers is None:
            self._brokers = KafkaAdmin(self._config)
        return self._brokers

    def _first(self, source: SourcePartition, begin: int, kept: int) -> int:
        """The first offset that can still be read."""
        if begin >= kept:
            return begin
        lost = f"offsets {begin} up to {kept} of {source.topic}/{source.partition}"
        if not self._config.skip_lost:
            raise OutOfRange(
                f"Kafka has removed {lost}, which the table {source.table} does not hold: its "
                "retention was shorter than the time nobody filled the table. They are lost. To go "
                "on without them, run once with --skip-lost (lake.kafka.skip_lost)"
            )
        LOST.add(kept - begin, topic=source.topic)
        logger.error("offsets were lost before they came into the table", extra={"lost": lost})
        return kept

    def _weigh(self, source: SourcePartition, begin: int, end: int) -> float:
        """About how many bytes an offset stands for."""
        count = self._plan_counts.get(source.place, 0)
        self._plan_counts[source.place] = count + 1
        if count % SAMPLE_PLANS == 0:
            sample = self._range(source, begin, min(end, begin + SAMPLE_COUNT))
            read_bytes = sum(
                len(record.value or b"") for records in sample.read() for record in records
            )
            mean = read_bytes / max(1, sample.end - sample.begin)
            self._weights[source.place] = max(WEIGHT_BYTES_MIN, mean)
        return self._weights[source.place]

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

    def _tell_of(self, topics: dict[str, KafkaTopic], missing: frozenset[str]) -> None:
        """Say once what an operator may not expect."""
        for name in sorted(missing - self._missing):
            logger.warning("a topic does not exist", extra={"topic": name})
        self._missing = missing
        for name in sorted(topics.keys() - self._topics.keys()):
            in_sync_min = self._ask().in_sync_min(name)
            replica_count = topics[name].replica_count
            if replica_count < REPLICAS_MIN or (in_sync_min or IN_SYNC_MIN) < IN_SYNC_MIN:
                logger.warning(
                    "a broker that dies may take acknowledged records with it",
                    extra={
                        "topic": name,
                        "replicas": f"{replica_count}, and {REPLICAS_MIN} are safe",
                        "min_insync": f"{in_sync_min}, and {IN_SYNC_MIN} is safe",
                    },
                )

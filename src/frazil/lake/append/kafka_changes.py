"""KafkaChanges: topics of a Kafka cluster that keyed tables are folded from.

It has the shape of `ChangeLog` in `frazil.tables`. What it returns is as of the last `refresh`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from frazil.errors import Unknown
from frazil.lake.append.kafka_admin import (
    KafkaAdmin,
    KafkaOffsets,
    KafkaTopic,
    count_lost,
    ends_early,
)
from frazil.lake.append.kafka_reader import KafkaCursor, KafkaRange
from frazil.log import Record
from frazil.model import KiB, TopicPartition
from frazil.settings import KafkaConfig

OFFSET_BYTES = 1 * KiB
"""Assumed bytes per offset before the first read."""


class KafkaChanges:
    """Owned by one thread."""

    def __init__(self, config: KafkaConfig, tables: Mapping[str, str]) -> None:
        """`tables` has the table of each topic."""
        self.config = config
        self.tables = tables
        self._admin_client: KafkaAdmin | None = None
        self._topics: dict[str, KafkaTopic] = {}
        self._offsets: dict[TopicPartition, KafkaOffsets] = {}
        self._offset_bytes: dict[TopicPartition, float] = {}

    def refresh(self, topics: Collection[str]) -> None:
        """Ask the cluster for topics and their offsets. Raises `Unknown` if one does not exist."""
        admin = self._admin()
        found = {topic.name: topic for topic in admin.topics(topics)}
        missing = sorted(set(topics) - found.keys())
        if missing:
            raise Unknown(
                f"Kafka at {self.config.brokers} has no topic {missing[0]}, which feeds table "
                f"{self.tables[missing[0]]}; create it first"
            )
        for name in sorted(found.keys() - self._topics.keys()):
            admin.warn_if_weak(found[name])
        self._topics |= found
        self._offsets |= admin.extents(
            TopicPartition(topic.name, partition)
            for topic in found.values()
            for partition in topic.partitions
        )

    def topic(self, name: str) -> KafkaTopic:
        return self._topics[name]

    def offsets(self, partition: TopicPartition) -> KafkaOffsets:
        return self._offsets[partition]

    def partition(self, topic: str, index: int) -> KafkaPartition:
        return KafkaPartition(self, TopicPartition(topic, index))

    def check_begin(self, partition: TopicPartition, begin: int) -> None:
        """Raise `OutOfRange` if a partition does not go on from where its table ends. Offsets that
        may be skipped are no reason."""
        known, table = self._offsets[partition], self.tables[partition.topic]
        if begin > known.last_stable_offset:
            raise ends_early(partition, known.last_stable_offset, begin, table)
        if begin < known.start_offset and not self.config.skip_lost:
            count_lost(partition, begin, known.start_offset, table, skip=False)

    def pending_bytes(self, partition: TopicPartition, begin: int) -> int:
        """Estimate the bytes of committed records from an offset on."""
        known = self._offsets[partition]
        count = max(0, known.last_stable_offset - max(begin, known.start_offset))
        return int(count * self._offset_bytes.get(partition, OFFSET_BYTES))

    def publish(self, partition: TopicPartition, offset: int) -> None:
        """Commit an offset of the consumer group, for monitoring only."""
        self._admin().commit_progress({partition: offset})

    def read(self, partition: TopicPartition, begin: int, end: int) -> Iterator[list[Record]]:
        """Yield the committed records of a range. Those that were removed are left out."""
        config = self.config
        return KafkaRange(
            brokers=config.brokers,
            group=config.group,
            client=config.client,
            topic=partition.topic,
            partition=partition.partition,
            begin=max(begin, self._offsets[partition].start_offset),
            end=end,
        ).read()

    def measure(self, partition: TopicPartition, offsets: int, records: list[Record]) -> None:
        """Take the size of records that were read into account."""
        if offsets:
            size = sum(len(record.value or b"") + len(record.key or b"") for record in records)
            self._offset_bytes[partition] = max(1.0, size / offsets)

    def _admin(self) -> KafkaAdmin:
        if self._admin_client is None:
            self._admin_client = KafkaAdmin(self.config)
        return self._admin_client


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """A partition, as tables are folded from it."""

    source: KafkaChanges
    place: TopicPartition

    @property
    def topic(self) -> str:
        return self.place.topic

    @property
    def index(self) -> int:
        return self.place.partition

    @property
    def view(self) -> KafkaOffsets:
        """As of the last refresh. It begins at 0 if lost offsets may be skipped."""
        known = self.source.offsets(self.place)
        if not self.source.config.skip_lost:
            return known
        return KafkaOffsets(start_offset=0, last_stable_offset=known.last_stable_offset)

    def reader(self, offset: int) -> KafkaRecords:
        kept, config = self.source.offsets(self.place).start_offset, self.source.config
        if offset < kept:
            table = self.source.tables[self.topic]
            count_lost(self.place, offset, kept, table, skip=config.skip_lost)
        return KafkaRecords(self.source, self.place, max(offset, kept))


class KafkaRecords:
    """A cursor over committed records. Connects when there is something to read."""

    def __init__(self, source: KafkaChanges, place: TopicPartition, begin: int) -> None:
        self.offset = begin
        self._source = source
        self._place = place
        self._cursor: KafkaCursor | None = None

    def read(self, bytes_max: int) -> list[Record]:
        """Return the next records, those that the client has. It bounds their bytes by itself."""
        end = self._source.offsets(self._place).last_stable_offset
        if self.offset >= end:
            return []
        if self._cursor is None:
            config = self._source.config
            self._cursor = KafkaCursor(
                config.brokers, config.group, config.client, *self._place, self.offset
            )
        records = self._cursor.read(end)
        before, self.offset = self.offset, self._cursor.offset
        self._source.measure(self._place, self.offset - before, records)
        return records

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

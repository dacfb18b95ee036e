"""KafkaAdmin: topics, partitions, offsets and replication of a Kafka cluster, for the driver."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from frazil.errors import OutOfRange, Unavailable
from frazil.lake.append.kafka_reader import QUIET, ClientErrors
from frazil.metrics import Counter
from frazil.model import TopicPartition
from frazil.settings import KafkaConfig

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

logger = logging.getLogger(__name__)

REQUEST_S = 15.0
"""Timeout of an admin request."""
REPLICAS_MIN = 3
IN_SYNC_MIN = 2
"""With fewer, the loss of one broker can lose acknowledged records."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Zero, from brokers too old for topic ids."""

LOST = Counter(
    "frazil.lake.kafka.lost.offsets", "Offsets that Kafka removed before the lake read them."
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """An existing topic."""

    name: str
    identity: str | None
    """Topic id; differs if the topic is deleted and created again. None from old brokers."""
    partitions: tuple[int, ...]
    replica_count: int
    """Lowest of all partitions."""

    @property
    def uuid(self) -> UUID | None:
        """The id, as our own topics have it."""
        if self.identity is None:
            return None
        text = self.identity.replace("-", "+").replace("_", "/")
        return UUID(bytes=base64.b64decode(f"{text}=="))


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOffsets:
    """The offsets that a partition holds."""

    start_offset: int
    last_stable_offset: int
    """Every transaction below it is committed or aborted."""


class KafkaAdmin:
    """An admin client. Owned by one thread."""

    def __init__(self, config: KafkaConfig) -> None:
        from confluent_kafka.admin import AdminClient

        self._config = config
        self._errors = ClientErrors()
        settings: dict[str, Any] = {
            **QUIET,
            **config.client,
            "bootstrap.servers": config.brokers,
            "error_cb": self._errors.record,
        }
        self._admin = AdminClient(settings)

    def topics(self, names: Iterable[str]) -> list[KafkaTopic]:
        """Return those of the topics that exist."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        collection = TopicCollection(list(names))
        futures = self._admin.describe_topics(collection, request_timeout=REQUEST_S)
        topics = []
        for name, future in futures.items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._unavailable(f"topic {name}", error) from error
            identity = str(description.topic_id)
            topics.append(
                KafkaTopic(
                    name=name,
                    identity=None if identity == NO_ID else identity,
                    partitions=tuple(sorted(part.id for part in description.partitions)),
                    replica_count=min(len(part.replicas) for part in description.partitions),
                )
            )
        return topics

    def extents(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaOffsets]:
        """Return the offsets that each partition holds now."""
        from confluent_kafka import IsolationLevel
        from confluent_kafka import TopicPartition as KafkaPartition
        from confluent_kafka.admin import OffsetSpec

        keys = [KafkaPartition(*partition) for partition in partitions]
        if not keys:
            return {}
        futures = [
            self._admin.list_offsets(
                dict.fromkeys(keys, spec),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=REQUEST_S,
            )
            # Latest first, so that a removal in between shows in the earliest offset.
            for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
        ]
        ends, begins = (
            {each: self._result(future[each]).offset for each in keys} for future in futures
        )
        return {
            TopicPartition(each.topic, each.partition): KafkaOffsets(
                start_offset=begins[each], last_stable_offset=ends[each]
            )
            for each in keys
        }

    def in_sync_min(self, topic: str) -> int | None:
        """Return `min.insync.replicas` of a topic, or None if the broker does not tell."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures = self._admin.describe_configs([resource], request_timeout=REQUEST_S)
        try:
            return int(futures[resource].result()["min.insync.replicas"].value)
        except KafkaException:
            return None

    def warn_if_weak(self, topic: KafkaTopic) -> None:
        """Log it if one broker can lose acknowledged records of a topic."""
        in_sync_min = self.in_sync_min(topic.name)
        count = topic.replica_count
        if count < REPLICAS_MIN or (in_sync_min or IN_SYNC_MIN) < IN_SYNC_MIN:
            logger.warning(
                "kafka topic can lose acknowledged records with one broker",
                extra={
                    "topic": topic.name,
                    "replicas": f"{count}; at least {REPLICAS_MIN} are safe",
                    "min_insync": f"{in_sync_min}; at least {IN_SYNC_MIN} is safe",
                },
            )

    def commit_progress(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Commit lake watermarks as offsets of the consumer group, for Kafka's own tools. Does not
        wait; a failure is logged and has no other effect."""
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as KafkaPartition

        offsets = [KafkaPartition(topic, part, end) for (topic, part), end in watermarks.items()]
        request = ConsumerGroupTopicPartitions(self._config.group, offsets)
        futures = self._admin.alter_consumer_group_offsets([request], request_timeout=REQUEST_S)
        for future in futures.values():
            future.add_done_callback(partial(_log_failure, self._config.group))

    def _result(self, future: Future[T]) -> T:
        from confluent_kafka import KafkaException

        try:
            return future.result()
        except KafkaException as error:
            raise self._unavailable("offsets", error) from error

    def _unavailable(self, what: str, error: KafkaException) -> Unavailable:
        self._admin.poll(0)  # delivers the client's errors to the callback
        return Unavailable(
            f"Kafka at {self._config.brokers} did not return {what}: {error.args[0].str()}; "
            f"{self._errors.last}. Check lake.kafka"
        )


def ends_early(partition: TopicPartition, end: int, begin: int, table: str) -> OutOfRange:
    """Return the error of a partition that ends before what a table has of it."""
    return OutOfRange(
        f"{partition.topic}/{partition.partition} ends at offset {end}, but the next offset of "
        f"table {table} is {begin}: the topic was deleted and created again, or its broker lost "
        "acknowledged records. Fill tables in another namespace (lake.namespace), or send to a "
        "topic with another name"
    )


def count_lost(partition: TopicPartition, begin: int, kept: int, table: str, *, skip: bool) -> None:
    """Count offsets that the broker has removed, and that a table does not have. Raises
    `OutOfRange` unless they may be skipped."""
    lost = f"offsets {begin} up to {kept} of {partition.topic}/{partition.partition}"
    if not skip:
        raise OutOfRange(
            f"Kafka has removed {lost}, which are not in table {table}: retention was "
            "shorter than the time since the table was last filled. They are lost. To continue "
            "without them, run once with --skip-lost (lake.kafka.skip_lost)"
        )
    LOST.add(kept - begin, topic=partition.topic)
    logger.error("kafka removed offsets before the lake read them", extra={"lost": lost})


def _log_failure(group: str, future: Future[Any]) -> None:
    """Runs on the client's own thread, so it must not keep a reference to the client: closing it
    there would deadlock."""
    error = future.exception()
    if error is not None:
        logger.warning(
            "lake watermarks not committed to the kafka consumer group",
            extra={"group": group, "reason": str(error)},
        )

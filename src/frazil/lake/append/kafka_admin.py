"""What the driver asks Kafka: which partitions there are, what they hold, and how safe that is."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.errors import Unavailable
from frazil.lake.append.kafka_reader import QUIET, ClientErrors
from frazil.lake.kafka_config import KafkaConfig

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

logger = logging.getLogger(__name__)

ASK_S = 15.0
"""A broker that has not answered by then is gone."""
REPLICAS_MIN = 3
IN_SYNC_MIN = 2
"""Fewer, and one machine that dies can take acknowledged records with it."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Zero: the broker is too old for ids."""

T = TypeVar("T")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """One that exists."""

    name: str
    identity: str | None
    """Tells it from a later one of the same name. None when the broker does not say."""
    partitions: tuple[int, ...]
    replica_count: int
    """Of the partition that has fewest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOffsets:
    """Offsets that a partition holds."""

    begin: int
    end: int
    """The last stable offset: everything below it is committed or aborted, for good."""


class KafkaAdmin:
    """A client that asks. Belongs to one thread."""

    def __init__(self, config: KafkaConfig) -> None:
        from confluent_kafka.admin import AdminClient

        self._config = config
        self._heard = ClientErrors()
        settings: dict[str, Any] = {
            **QUIET,
            **config.client,
            "bootstrap.servers": config.brokers,
            "error_cb": self._heard.hear,
        }
        self._admin = AdminClient(settings)

    def topics(self, names: Iterable[str]) -> list[KafkaTopic]:
        """Those of these that exist."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=ASK_S)
        found = []
        for name, answer in asked.items():
            try:
                said = answer.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._unavailable(f"topic {name}", error) from error
            identity = str(said.topic_id)
            found.append(
                KafkaTopic(
                    name=name,
                    identity=None if identity == NO_ID else identity,
                    partitions=tuple(sorted(part.id for part in said.partitions)),
                    replica_count=min(len(part.replicas) for part in said.partitions),
                )
            )
        return found

    def extents(self, places: Iterable[Place]) -> dict[Place, KafkaOffsets]:
        """What each partition holds now."""
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        asked = [TopicPartition(topic, partition) for topic, partition in places]
        if not asked:
            return {}
        answers = [
            self._admin.list_offsets(
                dict.fromkeys(asked, spec),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=ASK_S,
            )
            # The end first: what goes meanwhile is missed at the beginning, where it is looked for.
            for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
        ]
        ends, begins = (
            {place: self._answer(answer[place]) for place in asked} for answer in answers
        )
        return {
            (place.topic, place.partition): KafkaOffsets(
                begin=begins[place].offset, end=ends[place].offset
            )
            for place in asked
        }

    def in_sync_min(self, topic: str) -> int | None:
        """How many replicas must have a record before it is acknowledged to whoever asks for all;
        None when the broker does not let us know."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self._admin.describe_configs([resource], request_timeout=ASK_S)
        try:
            return int(asked[resource].result()["min.insync.replicas"].value)
        except KafkaException:
            return None

    def show_progress(self, ends: Mapping[Place, int]) -> None:
        """Tell Kafka's own tools how far the tables are. Nobody waits, and nothing hangs on it."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(topic, part, end) for (topic, part), end in ends.items()]
        request = ConsumerGroupTopicPartitions(self._config.group, places)
        asked = self._admin.alter_consumer_group_offsets([request], request_timeout=ASK_S)
        for answer in asked.values():
            answer.add_done_callback(partial(_hear_progress, self._config.group))

    def _answer(self, asked: Future[T]) -> T:
        from confluent_kafka import KafkaException

        try:
            return asked.result()
        except KafkaException as error:
            raise self._unavailable("offsets", error) from error

    def _unavailable(self, what: str, error: KafkaException) -> Unavailable:
        self._admin.poll(0)  # only now are we told what the client has heard
        return Unavailable(
            f"Kafka at {self._config.brokers} does not tell of {what}: {error.args[0].str()}; "
            f"{self._heard.last}. Check lake.kafka"
        )


def _hear_progress(group: str, answer: Future[Any]) -> None:
    """In the client's own thread; so this must not hold the client, which cannot end in there."""
    error = answer.exception()
    if error is not None:
        logger.warning(
            "kafka does not show how far the tables are",
            extra={"group": group, "reason": str(error)},
        )

"""BrokerAdmin: topics, settings, offsets and groups of a node or a Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.cli.kafka.brokers import Brokers, LastError
from frazil.errors import Unavailable, Unknown
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, OffsetSpec

REQUEST_S = 10.0
"""Timeout of a request."""
NO_OFFSET = -1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSetting:
    """One setting of a topic."""

    name: str
    value: str
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPartition:
    """A partition, and who has it."""

    partition: int
    leader: int
    replicas: Sequence[int]
    in_sync: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a group, and the partitions it has."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group and its members."""

    group: str
    state: str
    assignor: str
    members: Sequence[GroupMember]


class BrokerAdmin:
    """Owned by one thread."""

    def __init__(self, brokers: Brokers) -> None:
        from confluent_kafka.admin import AdminClient

        self._brokers = brokers
        self._last = LastError()
        settings: dict[str, Any] = {**brokers.settings, "error_cb": self._last}
        self._client: AdminClient = AdminClient(settings)

    def topics(self) -> dict[str, list[BrokerPartition]]:
        """Return all topics with their partitions."""
        from confluent_kafka import KafkaException

        try:
            metadata = self._client.list_topics(timeout=REQUEST_S)
        except KafkaException as error:
            self._client.poll(0)  # calls `_last`
            raise self._brokers.failed(error.args[0], self._last.text) from None
        return {
            name: [
                BrokerPartition(
                    partition=each.id, leader=each.leader, replicas=each.replicas, in_sync=each.isrs
                )
                for _, each in sorted(topic.partitions.items())
            ]
            for name, topic in sorted(metadata.topics.items())
        }

    def topic(self, name: str) -> list[BrokerPartition]:
        """Return the partitions of a topic. Raises `Unknown` if there is none."""
        topics = self.topics()
        if name not in topics:
            raise Unknown(f"there is no topic {name}; `frazil topics` lists them")
        return topics[name]

    def create_topic(
        self, name: str, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
    ) -> None:
        from confluent_kafka.admin import NewTopic

        topic = NewTopic(
            name, partitions or -1, replication_factor=replicas or -1, config=dict(configs)
        )
        self._all(self._client.create_topics([topic], request_timeout=REQUEST_S))

    def add_partitions(self, name: str, count: int) -> None:
        from confluent_kafka.admin import NewPartitions

        grown = NewPartitions(name, count)
        self._all(self._client.create_partitions([grown], request_timeout=REQUEST_S))

    def delete_topics(self, names: Sequence[str]) -> None:
        self._all(self._client.delete_topics(list(names), request_timeout=REQUEST_S))

    def settings(self, topics: Sequence[str]) -> dict[str, list[TopicSetting]]:
        """Return the settings of topics, by name."""
        from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

        if not topics:
            return {}
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        found = self._all(self._client.describe_configs(asked, request_timeout=REQUEST_S))
        topic_source = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            resource.name: [
                TopicSetting(
                    name=entry.name,
                    value=entry.value or "",
                    is_default=entry.source != topic_source,
                )
                for _, entry in sorted(entries.items())
            ]
            for resource, entries in found.items()
        }

    def change_settings(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Change settings of a topic; None sets the default."""
        from confluent_kafka.admin import (
            AlterConfigOpType,
            ConfigEntry,
            ConfigResource,
            ResourceType,
        )

        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for name, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._all(self._client.incremental_alter_configs([resource], request_timeout=REQUEST_S))

    def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offsets: what consumers of committed records can read."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.latest())

    def offsets_at(
        self, partitions: Iterable[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the offsets of the first records at a time or later; the end without one."""
        from confluent_kafka.admin import OffsetSpec

        found = self._offsets(partitions, OffsetSpec.for_timestamp(time_ms))
        later = [each for each, offset in found.items() if offset == NO_OFFSET]
        return {**found, **self.end_offsets(later)}

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        from confluent_kafka import IsolationLevel
        from confluent_kafka import TopicPartition as AskedPartition

        asked = {AskedPartition(*each): spec for each in partitions}
        if not asked:
            return {}
        futures = self._client.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_S
        )
        return {
            TopicPartition(each.topic, each.partition): found.offset
            for each, found in self._all(futures).items()
        }

    def group_ids(self) -> list[str]:
        """Return the names of all groups."""
        found = self._result(self._client.list_consumer_groups(request_timeout=REQUEST_S))
        if found.errors:
            raise self._brokers.failed(found.errors[0], self._last.text)
        return sorted(group.group_id for group in found.valid)

    def groups(self, names: Sequence[str]) -> list[GroupDescription]:
        """Describe groups. A group that does not exist has the state DEAD."""
        if not names:
            return []
        futures = self._client.describe_consumer_groups(list(names), request_timeout=REQUEST_S)
        return [
            GroupDescription(
                group=name,
                state=_state(found.state.name),
                assignor=found.partition_assignor,
                members=[_member(each) for each in found.members],
            )
            for name, found in self._all(futures).items()
        ]

    def committed(self, names: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offsets of groups."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        futures = [
            (name, self._client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(name)], request_timeout=REQUEST_S
            )[name])
            for name in names
        ]  # fmt: skip
        return {
            name: {
                TopicPartition(each.topic, each.partition): each.offset
                for each in self._result(future).topic_partitions
                if each.offset >= 0
            }
            for name, future in futures
        }

    def set_committed(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets in the name of a group without members."""
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as AskedPartition

        asked = [AskedPartition(*partition, offset) for partition, offset in offsets.items()]
        futures = self._client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)], request_timeout=REQUEST_S
        )
        for each in self._all(futures)[group].topic_partitions:
            if each.error is not None:
                raise self._brokers.failed(each.error)

    def delete_groups(self, names: Sequence[str]) -> None:
        self._all(self._client.delete_consumer_groups(list(names), request_timeout=REQUEST_S))

    def _all(self, futures: Mapping[Any, Future[T]]) -> dict[Any, T]:
        """Wait for all results. Raises the first error."""
        return {key: self._result(future) for key, future in futures.items()}

    def _result(self, future: Future[T]) -> T:
        from confluent_kafka import KafkaException

        try:
            return future.result(2 * REQUEST_S)
        except KafkaException as error:
            raise self._brokers.failed(error.args[0], self._last.text) from None
        except TimeoutError:
            address = self._brokers.address
            raise Unavailable(f"Kafka at {address} did not answer in {2 * REQUEST_S:g} s") from None


def _state(name: str) -> str:
    """Return the name of a state. librdkafka has none for two that groups have whose partitions the
    server assigns: Assigning, which is short, and Reconciling."""
    return "RECONCILING" if name == "UNKNOWN" else name


def _member(found: Any) -> GroupMember:
    assigned = found.assignment.topic_partitions if found.assignment is not None else ()
    return GroupMember(
        member_id=found.member_id,
        client_id=found.client_id,
        host=found.host,
        instance_id=found.group_instance_id or None,
        partitions=frozenset(TopicPartition(each.topic, each.partition) for each in assigned),
    )

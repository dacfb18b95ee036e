"""Topics are deleted, grow, and change their settings, with admin clients that others wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from tests.kafka.port.opened import OpenedPort, opened

WAIT_S = 30

Futures = Mapping[Any, Future[Any]]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[OpenedPort]:
    with opened(tmp_path) as running:
        yield running


@pytest.fixture
def admin(port: OpenedPort) -> AdminClient:
    client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port.port}"})
    done(client.create_topics([NewTopic("t", 2)]))
    return client


def done(futures: Futures) -> Any:
    (future,) = futures.values()
    return future.result(WAIT_S)


def refused(futures: Futures) -> int:
    with pytest.raises(KafkaException) as caught:
        done(futures)
    code: int = caught.value.args[0].code()
    return code


def alter(admin: AdminClient, topic: str, name: str, value: str | None) -> Futures:
    operation = AlterConfigOpType.SET if value is not None else AlterConfigOpType.DELETE
    entry = ConfigEntry(name, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    return admin.incremental_alter_configs([resource])


def test_a_deleted_topic_is_gone_with_its_offsets(port: OpenedPort, admin: AdminClient) -> None:
    address = {"bootstrap.servers": f"127.0.0.1:{port.port}"}
    first_id = port.log.topic("t").topic_id
    producer = Producer(address)
    producer.produce("t", b"old", partition=0)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({**address, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    done(admin.delete_topics(["t"]))
    assert refused(admin.delete_topics(["t"])) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    done(admin.create_topics([NewTopic("t", 1)]))
    assert port.log.topic("t").topic_id != first_id
    (committed,) = consumer.committed([TopicPartition("t", 0)], WAIT_S)
    assert committed.offset < 0
    consumer.close()


def test_partitions_are_added_never_removed(port: OpenedPort, admin: AdminClient) -> None:
    done(admin.create_partitions([NewPartitions("t", 5)], validate_only=True))
    assert len(port.log.topic("t").partitions) == 2
    done(admin.create_partitions([NewPartitions("t", 5)]))
    assert len(port.log.topic("t").partitions) == 5
    for count in (5, 3, 5_000):
        code = refused(admin.create_partitions([NewPartitions("t", count)]))
        assert code == ErrorCode.INVALID_PARTITIONS
    code = refused(admin.create_partitions([NewPartitions("u", 5)]))
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_absurd_counts_cost_nothing(port: OpenedPort) -> None:
    """Two billion partitions are refused before anything is made of that size, and many names are
    compared once each."""
    port.log.create_topic("v")
    assignment = CreatePartitionsRequest.CreatePartitionsAssignment([1])
    topic = CreatePartitionsRequest.CreatePartitionsTopic("v", 2**31 - 1, [assignment])
    names = [CreatePartitionsRequest.CreatePartitionsTopic(f"u{n}", 5) for n in range(30_000)]
    request = CreatePartitionsRequest(topics=[topic, *names])
    with port.client() as client:
        results = client.ask(CreatePartitionsResponse, request, 3).results
    codes = {each.name: each.error_code for each in results}
    assert codes.pop("v") == ErrorCode.INVALID_PARTITIONS
    assert set(codes.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_settings_are_changed_and_reset(port: OpenedPort, admin: AdminClient) -> None:
    before = port.log.topic("t").config
    done(alter(admin, "t", "retention.ms", "60000"))
    done(alter(admin, "t", "cleanup.policy", "compact"))
    config = port.log.topic("t").config
    assert (config.retention_ms, config.cleanup) == (60_000, "compact")
    done(alter(admin, "t", "retention.ms", None))
    assert port.log.topic("t").config.retention_ms == before.retention_ms
    whole = ConfigResource(ResourceType.TOPIC, "t", {"retention.bytes": "1000000"})
    with pytest.deprecated_call():
        done(admin.alter_configs([whole]))
    config = port.log.topic("t").config
    assert (config.retention_bytes_max, config.cleanup) == (1_000_000, "expire")
    for name, value in (("retention.ms", "soon"), ("no.such", "1"), ("no.such", None)):
        assert refused(alter(admin, "t", name, value)) == ErrorCode.INVALID_CONFIG
    assert port.log.topic("t").config == config


def test_a_list_is_changed_value_by_value(port: OpenedPort, admin: AdminClient) -> None:
    def change(operation: AlterConfigOpType, name: str, value: str) -> Futures:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[entry])
        return admin.incremental_alter_configs([resource])

    append, subtract = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT
    for _ in range(2):  # a value that is there already stays
        done(change(append, "cleanup.policy", "compact"))
        assert port.log.topic("t").config.cleanup == "compact_expire"
    done(change(subtract, "cleanup.policy", "delete"))
    assert port.log.topic("t").config.cleanup == "compact"
    for operation, name in ((subtract, "cleanup.policy"), (append, "retention.ms")):
        assert refused(change(operation, name, "compact")) == ErrorCode.INVALID_CONFIG


def test_records_are_deleted_below_an_offset(port: OpenedPort, admin: AdminClient) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port.port}"})
    for number in range(10):
        producer.produce("t", str(number), partition=1)
    assert producer.flush(WAIT_S) == 0
    assert done(admin.delete_records([TopicPartition("t", 1, 4)])).low_watermark == 4
    assert port.log.partition("t", 1).view.start_offset == 4
    code = refused(admin.delete_records([TopicPartition("t", 1, 11)]))
    assert code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert done(admin.delete_records([TopicPartition("t", 1, -1)])).low_watermark == 10


def test_topics_of_the_node_are_protected(port: OpenedPort, admin: AdminClient) -> None:
    port.log.create_topic("otlp_logs")
    for futures in (
        admin.delete_topics(["otlp_logs"]),
        admin.create_partitions([NewPartitions("otlp_logs", 5)]),
        alter(admin, "otlp_logs", "retention.ms", "1"),
        admin.delete_records([TopicPartition("otlp_logs", 0, -1)]),
    ):
        assert refused(futures) == ErrorCode.TOPIC_AUTHORIZATION_FAILED

"""Spark's Kafka source and sink with a node, as a batch and as a stream."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.node import Node
from tests.live.kafka_port.client_jars import missing

MISSING = missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

WAIT_S = 60
RUN_SECONDS_MAX = 300
PARTITIONS = 2
COUNT = 100


def values(address: str, topic: str) -> list[bytes]:
    """Return the values of a topic, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: list[bytes] = []
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{topic} has no end"
        if message.error():
            ends += 1
        else:
            found.append(message.value() or b"")
    consumer.close()
    return sorted(found)


def test_spark_copies_a_topic(tmp_path: Path) -> None:
    """What was committed is copied once; what was aborted is not there."""
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        address = f"127.0.0.1:{node.kafka_port}"
        admin = AdminClient({"bootstrap.servers": address})
        topics = ["original", "batch", "stream"]
        for created in admin.create_topics(
            [NewTopic(each, PARTITIONS) for each in topics]
        ).values():
            created.result(WAIT_S)
        producer = Producer({"bootstrap.servers": address, "transactional.id": "p"})
        producer.init_transactions(WAIT_S)
        for is_committed in (True, False, True):
            producer.begin_transaction()
            for number in range(COUNT):
                name = "committed" if is_committed else "aborted"
                producer.produce("original", f"{name} {number}", headers={"h": b"v"})
            if is_committed:
                producer.commit_transaction(WAIT_S)
            else:
                producer.abort_transaction(WAIT_S)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.live.kafka_port.spark_program", address, *topics),
                str(tmp_path / "checkpoint"),
            ],
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        wanted = sorted(b"committed %d" % number for number in range(COUNT) for _ in range(2))
        for topic in topics[1:]:
            assert values(address, topic) == wanted

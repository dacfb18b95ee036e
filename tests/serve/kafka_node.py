"""A real node, and librdkafka clients that fill it: topics, transactions, a consumer group."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.node import Node

TOPIC, PARTITIONS = "orders", 3
GROUP = "billing/eu"
"""Any text names a group."""
SETTINGS = (
    *("--set", "lake.enabled=false"),
    *("--set", "kafka.groups.initial_rebalance_delay_ms=0"),
)
WAIT_S = 60
START_MS = 1_700_000_000_000
STEP_MS = 1000


@contextmanager
def kafka_node(folder: Path) -> Iterator[Node]:
    """A node with a Kafka port and no lake."""
    with Node(folder, *SETTINGS) as started:
        yield started


def brokers(node: Node) -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "log_level": 0}


def create(node: Node, topic: str, partitions: int = 1, **config: str) -> None:
    """Create a topic. Names of settings have underscores here."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin = AdminClient(brokers(node))
    [created] = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values()
    created.result(WAIT_S)


def produce_orders(node: Node, first: int, count: int) -> None:
    """One record per order: partition, key, JSON value and time follow from its number."""
    producer = Producer({**brokers(node), "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(
            TOPIC,
            key=f"order-{number}",
            value=order(number),
            partition=number % PARTITIONS,
            timestamp=START_MS + number * STEP_MS,
            headers=[("source", b"shop"), ("raw", b"\x00\xff"), ("none", None)],
        )
    assert producer.flush(WAIT_S) == 0


def order(number: int) -> str:
    return json.dumps({"id": number, "total": number * 1.5, "items": [{"sku": f"A-{number}"}]})


@contextmanager
def billing(node: Node, count: int) -> Iterator[Consumer]:
    """A member of the group that has read and committed so many records, and stays."""
    consumer = Consumer(
        {
            **brokers(node),
            "group.id": GROUP,
            "client.id": "till-1",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    read = 0
    deadline = time.monotonic() + WAIT_S
    while read < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
            read += 1
    assert read == count
    try:
        yield consumer
    finally:
        consumer.close()

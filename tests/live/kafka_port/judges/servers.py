"""Apache Kafka and a node, with the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients.node import Node
from tests.live.kafka.broker import KafkaBroker

PARTITIONS = 4
"""Of a topic that is created without a number: as in the scenarios of librdkafka's tests."""

REBALANCE_DELAY_MS = 3000
"""Kafka's default. Some tests count rebalances of members that start together."""
RETENTION_CHECK_MS = 300_000
"""Kafka's default. Some tests produce records that are years old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The addresses of both brokers."""

    kafka: str
    here: str


@contextmanager
def both(folder: Path, *, creates_topics: bool) -> Iterator[Servers]:
    """Run both. `creates_topics` is whether clients create topics by asking for metadata."""
    is_on = str(creates_topics).lower()
    settings = {
        "allow.everyone.if.no.acl.found": "true",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "auto.create.topics.enable": is_on,
        "group.initial.rebalance.delay.ms": str(REBALANCE_DELAY_MS),
        "log.retention.check.interval.ms": str(RETENTION_CHECK_MS),
        "num.partitions": str(PARTITIONS),
    }
    ours = {
        "lake.enabled": "false",
        "kafka.partitions": str(PARTITIONS),
        "kafka.auto_create_topics": is_on,
        "kafka.groups.initial_rebalance_delay_ms": str(REBALANCE_DELAY_MS),
    }
    options = [word for name, value in ours.items() for word in ("--set", f"{name}={value}")]
    with (
        KafkaBroker(folder / "kafka", settings=settings) as broker,
        Node(folder / "node", *options) as node,
    ):
        yield Servers(kafka=broker.address, here=f"127.0.0.1:{node.kafka_port}")

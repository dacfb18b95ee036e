"""Apache Kafka and a node, with the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.clients.node import Node
from tests.live.kafka.broker import KafkaBroker

PARTITIONS = 4
"""Of a topic that is created without a number: as in the scenarios of librdkafka's tests."""

REBALANCE_DELAY_MS = 3000
"""Kafka's default. Some tests count rebalances of members that start together."""
RETENTION_CHECK_MS = 300_000
"""Kafka's default. Some tests produce records that are years old."""
EVERYBODY, NOBODY = "User:ANONYMOUS", "User:admin"
"""Super users: the tests do not log in."""
WAIT_S = 60
EVERYTHING = [
    AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        "User:*",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    for kind, name in (
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.BROKER, "kafka-cluster"),
    )
]
"""ACLs that allow it to everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The addresses of both brokers."""

    kafka: str
    here: str


@contextmanager
def both(folder: Path, *, creates_topics: bool, has_super_user: bool) -> Iterator[Servers]:
    """Run both, with ACLs. `creates_topics` is whether clients create topics by asking for
    metadata. With a super user there is no ACL at first. Without one everything is allowed to
    everybody by ACLs, so that clients can deny it."""
    is_on = str(creates_topics).lower()
    settings = {
        "super.users": EVERYBODY,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "auto.create.topics.enable": is_on,
        "group.initial.rebalance.delay.ms": str(REBALANCE_DELAY_MS),
        "log.retention.check.interval.ms": str(RETENTION_CHECK_MS),
        "num.partitions": str(PARTITIONS),
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
    }
    ours = {
        "lake.enabled": "false",
        "kafka.partitions": str(PARTITIONS),
        "kafka.auto_create_topics": is_on,
        "kafka.groups.initial_rebalance_delay_ms": str(REBALANCE_DELAY_MS),
        "kafka.acls": "true",
    }
    options = [word for name, value in ours.items() for word in ("--set", f"{name}={value}")]
    super_user = ("--set", f'kafka.super_users=["{EVERYBODY}"]')
    folder.mkdir(parents=True)
    if not has_super_user:
        settings["super.users"] = NOBODY
        settings["allow.everyone.if.no.acl.found"] = "true"  # until there are ACLs
        with Node(folder / "node", *options, *super_user) as node:
            _allow_everything(f"127.0.0.1:{node.kafka_port}")
            node.stop()
        super_user = ("--set", f'kafka.super_users=["{NOBODY}"]')
    with (
        KafkaBroker(folder / "kafka", settings=settings) as broker,
        Node(folder / "node", *options, *super_user) as node,
    ):
        if not has_super_user:
            _allow_everything(broker.address)
        yield Servers(kafka=broker.address, here=f"127.0.0.1:{node.kafka_port}")


def _allow_everything(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for created in admin.create_acls(EVERYTHING).values():
        created.result(WAIT_S)

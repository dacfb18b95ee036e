"""Consumer groups of a real node, with clients that others wrote."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.node import Node

with warnings.catch_warnings():
    # It reads its own schemas by a function of the standard library that is on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer  # type: ignore[import-untyped]

TOPIC, PARTITIONS = "events", 4
WAIT_S = 60
SETTINGS = """
[lake]
enabled = false
[kafka.groups]
initial_rebalance_delay_ms = 100
"""


class Member:
    """A consumer in a thread of its own, which commits after each record."""

    def __init__(self, node: Node, group: str, **settings: Any) -> None:
        self.seen: list[tuple[int | None, int | None]] = []
        self.owned: set[int] = set()
        self.rebalances = 0
        self._is_stopped = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{node.kafka_port}",
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 200,
                "log_level": 0,
                **settings,
            }
        )
        self._consumer.subscribe(
            [TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assigned(self, _: Consumer, partitions: list[Any]) -> None:
        self.rebalances += 1
        self.owned |= {each.partition for each in partitions}

    def _revoked(self, _: Consumer, partitions: list[Any]) -> None:
        self.owned -= {each.partition for each in partitions}

    def _run(self) -> None:
        while not self._is_stopped:
            message = self._consumer.poll(0.1)
            if message is None or message.error():
                continue
            try:
                self._consumer.commit(message=message, asynchronous=False)
            except KafkaException:
                continue  # the record is read again
            self.seen.append((message.partition(), message.offset()))
        self._consumer.close()

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join(WAIT_S)


def until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end_s, f"waited {WAIT_S} s until {what}"
        time.sleep(0.05)


def admin_of(node: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "log_level": 0})


def produce(node: Node, count: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, value=b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("groups")
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    with Node(folder / "data", "--config", str(settings)) as opened:
        admin = admin_of(opened)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(WAIT_S)
        yield opened


def test_a_static_member_comes_back(node: Node) -> None:
    """Its new process gets the same partitions, and the other member sees no rebalance."""
    members = [Member(node, "static", **{"group.instance.id": name}) for name in ("one", "two")]
    until(lambda: all(len(each.owned) == 2 for each in members), "both own two")
    owned, rebalances = set(members[1].owned), members[0].rebalances
    members[1].stop()
    again = Member(node, "static", **{"group.instance.id": "two"})
    until(lambda: again.owned == owned, "it owns what it owned")
    assert members[0].rebalances == rebalances
    admin = admin_of(node)
    described = admin.describe_consumer_groups(["static"])["static"].result(WAIT_S)
    assert {each.group_instance_id for each in described.members} == {"one", "two"}
    again.stop()
    members[0].stop()


def test_a_group_survives_a_kill(node: Node) -> None:
    """Members share, take over, and go on after kill -9 where they were: each record is committed
    by one member, once. Another client library finds the same offsets."""
    more = {"partition.assignment.strategy": "cooperative-sticky"}
    produce(node, 40)
    first = Member(node, "g", **more)
    until(lambda: len(first.seen) == 40, "all is read")
    second = Member(node, "g", **more)
    until(lambda: len(first.owned) == len(second.owned) == 2, "both own two")
    node.kill()
    node.start()
    produce(node, 40)
    until(lambda: len(first.seen) + len(second.seen) >= 80, "they go on")
    second.stop()
    until(lambda: len(first.owned) == PARTITIONS, "the first takes over")
    first.stop()
    seen = first.seen + second.seen
    assert len(seen) == len(set(seen)) == 80
    other = KafkaConsumer(
        bootstrap_servers=f"127.0.0.1:{node.kafka_port}", group_id="g", enable_auto_commit=False
    )
    other.subscribe([TOPIC])
    until(lambda: not other.poll(timeout_ms=200) and len(other.assignment()) == 4, "it joins")
    assert {other.committed(each) for each in other.assignment()} == {20}
    other.close()

"""Groups whose partitions the server assigns (KIP-848), with clients that others wrote."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.node import COMMAND, Node

TOPIC, PARTITIONS = "events", 6
WAIT_S = 90
SETTINGS = """
[lake]
enabled = false
[kafka.groups]
consumer_session_timeout_ms = 4000
consumer_heartbeat_interval_ms = 200
"""


class Member:
    """A member in a process of its own, and what it has said."""

    def __init__(self, node: Node, group: str, subscription: str = TOPIC, *settings: str) -> None:
        address = f"127.0.0.1:{node.kafka_port}"
        module = "tests.live.kafka_port.group_member"
        self.said: list[dict[str, Any]] = []
        self.killed_s: float | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, address, group, subscription, *settings],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    @property
    def owned(self) -> set[int]:
        found: set[int] = set()
        for each in list(self.said):
            if each["what"] == "get":
                found |= set(each["partitions"])
            elif each["what"] in ("give", "lose"):
                found -= set(each["partitions"])
        return found

    @property
    def committed(self) -> list[tuple[int, int]]:
        rows = [each for each in list(self.said) if each["what"] == "commit"]
        return [(row["partitions"][0], row["offset"]) for row in rows]

    def times_of(self, partition: int) -> list[tuple[float, float]]:
        """From when to when it owned a partition."""
        found, since_s = [], None
        for each in self.said:
            if partition in each["partitions"] and each["what"] in ("get", "give", "lose"):
                if each["what"] == "get":
                    since_s = each["time"]
                elif since_s is not None:
                    found.append((since_s, each["time"]))
                    since_s = None
        if since_s is not None:
            found.append((since_s, self.killed_s or time.monotonic()))
        return found

    def kill(self) -> None:
        self.killed_s = time.monotonic()
        self.process.kill()
        self._end()

    def stop(self) -> None:
        self.process.terminate()
        self._end()
        assert self.said[-1]["what"] == "end"

    def _end(self) -> None:
        self.process.wait(WAIT_S)
        self._thread.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end_s, f"waited {WAIT_S} s until {what}"
        time.sleep(0.05)


def produce(node: Node, count: int) -> None:
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "log_level": 0})
    for number in range(count):
        producer.produce(TOPIC, value=b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def groups_of(node: Node) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [*COMMAND, "groups", "--json", "--brokers", f"127.0.0.1:{node.kafka_port}"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=WAIT_S,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["group"]: row for row in rows}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("groups")
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    with Node(folder / "data", "--config", str(settings)) as opened:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{opened.kafka_port}", "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(WAIT_S)
        yield opened


def test_members_and_the_node_are_killed(node: Node) -> None:
    """Every record is committed, and no partition has two owners at any time. One member has
    subscribed by a regular expression, one is static."""
    members = [
        Member(node, "g"),
        Member(node, "g", "^even.*"),
        Member(node, "g", TOPIC, "group.instance.id=static"),
    ]
    try:
        produce(node, 60)
        until(lambda: all(len(each.owned) == 2 for each in members), "each owns two")
        until(lambda: sum(len(each.committed) for each in members) >= 60, "all is read")
        assert groups_of(node)["g"]["members"] == 3
        members[0].kill()
        until(lambda: len(members[1].owned | members[2].owned) == PARTITIONS, "others take over")
        before = [len(each.said) for each in members]
        node.kill()
        node.start()
        produce(node, 60)
        until(lambda: sum(len(set(each.committed)) for each in members) >= 120, "they go on")
        for member, count in zip(members, before, strict=True):
            assert {each["what"] for each in member.said[count:]} <= {"commit", "refused"}
        members.append(Member(node, "g"))
        until(lambda: len(members[3].owned) == 2, "a new one gets its share")
        owned = set(members[2].owned)
        members[2].stop()
        members.append(Member(node, "g", TOPIC, "group.instance.id=static"))
        until(lambda: members[4].owned == owned, "the static one owns what it owned")
        for member in members[1:]:
            if member.process.poll() is None:
                member.stop()
    finally:
        for member in members:
            if member.process.poll() is None:
                member.kill()
    committed = {row for each in members for row in each.committed}
    assert committed == {(p, o) for p in range(PARTITIONS) for o in range(120 // PARTITIONS)}
    for partition in range(PARTITIONS):
        times = sorted(span for each in members for span in each.times_of(partition))
        for (_, end_s), (start_s, _) in pairwise(times):
            assert end_s <= start_s, f"partition {partition} had two owners"
    group = groups_of(node)["g"]
    assert (group["partitions"], group["lag"]) == (PARTITIONS, 0)


def test_offsets_in_a_transaction(node: Node) -> None:
    """They count for a member, and are refused once it has left."""
    address = {"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "log_level": 0}
    produce(node, PARTITIONS)
    consumer = Consumer(
        {**address, "group.id": "t", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    until(lambda: consumer.poll(0.2) is not None and len(consumer.assignment()) > 0, "it reads")
    producer = Producer({**address, "transactional.id": "t"})
    producer.init_transactions(WAIT_S)
    member = consumer.consumer_group_metadata()
    offsets = [TopicPartition(TOPIC, 0, 1)]
    producer.begin_transaction()
    producer.send_offsets_to_transaction(offsets, member, WAIT_S)
    producer.commit_transaction(WAIT_S)
    assert [each.offset for each in consumer.committed(offsets, WAIT_S)] == [1]
    consumer.close()
    producer.begin_transaction()
    with pytest.raises(KafkaException, match=r"member|generation"):
        producer.send_offsets_to_transaction(offsets, member, WAIT_S)
    producer.abort_transaction(WAIT_S)

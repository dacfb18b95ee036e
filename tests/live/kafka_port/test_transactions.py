"""Transactions of a real node, with clients that others wrote."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pyspark
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from frazil.client import Client
from tests.clients.node import Node
from tests.kafka.wire.java import QUICK
from tests.live.kafka.jars import class_path

with warnings.catch_warnings():
    # It reads its own schemas by a function of the standard library that is on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer  # type: ignore[import-untyped]

PARTITIONS = 3
WAIT_S = 60
SETTINGS = """
[lake]
enabled = false
[kafka]
partitions = 3
[kafka.groups]
initial_rebalance_delay_ms = 0
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("transactions")
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    with Node(folder / "data", "--config", str(settings)) as opened:
        yield opened


def address_of(node: Node) -> str:
    return f"127.0.0.1:{node.kafka_port}"


def create(node: Node, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": address_of(node), "log_level": 0})
    for created in admin.create_topics([NewTopic(each, PARTITIONS) for each in topics]).values():
        created.result(WAIT_S)


def started(node: Node, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": address_of(node),
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def read(node: Node, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Return all values: those of each partition in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": address_of(node),
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    ends, end_s = 0, time.monotonic() + WAIT_S
    while ends < PARTITIONS:
        assert time.monotonic() < end_s, f"{topic} has no end"
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error():
            ends += 1
        else:
            found[message.partition() or 0].append(message.value() or b"")
    consumer.close()
    return [value for values in found for value in values]


def rows(node: Node, topic: str) -> list[bytes]:
    """Return what SQL finds, in the same order as `read`."""
    with Client(node.url, token=None, ca_file=None) as client:
        found = client.ask(f"SELECT value FROM topic_{topic} ORDER BY _log_partition, _offset")
    values: list[bytes] = found.column("value").to_pylist()
    return values


def test_librdkafka(node: Node) -> None:
    """Committed, aborted, fenced; and another library in a transaction of its own. Consumers and
    SQL see the same."""
    create(node, "mixed")
    first = started(node, "mixed")
    for name, is_commit in ((b"one", True), (b"two", False), (b"three", True)):
        first.begin_transaction()
        for partition in range(PARTITIONS):
            first.produce("mixed", name, partition=partition)
        first.flush(WAIT_S)
        assert name not in read(node, "mixed")
        assert name not in rows(node, "mixed")
        if is_commit:
            first.commit_transaction(WAIT_S)
        else:
            first.abort_transaction(WAIT_S)
    assert read(node, "mixed") == [b"one", b"three"] * PARTITIONS
    assert len(read(node, "mixed", "read_uncommitted")) == 3 * PARTITIONS
    first.begin_transaction()
    first.produce("mixed", b"zombie", partition=0)
    first.flush(WAIT_S)
    second = started(node, "mixed")
    with pytest.raises(KafkaException, match="fenced"):
        first.commit_transaction(WAIT_S)
    second.begin_transaction()
    second.produce("mixed", b"four", partition=0)
    second.commit_transaction(WAIT_S)
    other = KafkaProducer(bootstrap_servers=address_of(node), transactional_id="python")
    other.init_transactions()
    for value, end in ((b"five", other.commit_transaction), (b"no", other.abort_transaction)):
        other.begin_transaction()
        other.send("mixed", value, partition=0).get(WAIT_S)
        end()
    other.close()
    seen = read(node, "mixed")
    assert seen[:4] == [b"one", b"three", b"four", b"five"]
    end_s = time.monotonic() + WAIT_S
    while (found := rows(node, "mixed")) != seen:
        assert time.monotonic() < end_s, found
        time.sleep(0.1)


class Copier:
    """The program that copies `source` to `target`. A context: it is killed at the end."""

    def __init__(self, node: Node, folder: Path) -> None:
        module = "tests.live.kafka_port.copier"
        self._command = [sys.executable, "-m", module, address_of(node), "source", "target"]
        self._output = (folder / "copier.txt").open("ab")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=self._output, stderr=self._output)

    def __enter__(self) -> Copier:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()


def test_exactly_once_over_kills(node: Node, tmp_path: Path) -> None:
    """Copy a topic while copier and node are killed: each record arrives once, in order."""
    create(node, "source", "target")
    producer = started(node, "source")
    sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for round_number in range(5):
        producer.begin_transaction()
        for number in range(60):
            value = b"%d.%d" % (round_number, number)
            producer.produce("source", value, partition=number % PARTITIONS)
            sent[number % PARTITIONS].append(value)
        producer.commit_transaction(WAIT_S)
        with Copier(node, tmp_path):
            _until_more_is_copied(node, 20)
            if round_number % 2:
                node.kill()
                node.start()
    expected = [value for values in sent for value in values]
    with Copier(node, tmp_path) as copier:
        end_s = time.monotonic() + WAIT_S
        while (found := read(node, "target")) != expected:
            assert time.monotonic() < end_s, f"{len(found)} of {len(expected)}"
            if copier.process.poll() is not None:
                copier.start()
            time.sleep(0.3)


def _until_more_is_copied(node: Node, count: int) -> None:
    begin = len(read(node, "target"))
    end_s = time.monotonic() + WAIT_S
    while len(read(node, "target")) < begin + count:
        assert time.monotonic() < end_s, "nothing is copied"
        time.sleep(0.1)


@contextmanager
def java() -> Iterator[Any]:
    """A JVM with Kafka's own client."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    gateway: Any = JavaGateway.launch_gateway(
        jarpath=str(jar), classpath=class_path(), javaopts=QUICK, die_on_exit=True
    )
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


def test_java(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2 of the protocol: Kafka's client gets a new epoch with each transaction, goes on
    over a kill of the node, and is fenced."""
    # PySpark replaces it in the tests before, and then needs a session to raise an error.
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
    create(node, "java")
    with java() as jvm:
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", address_of(node))
        settings.put("transactional.id", "java")
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer")
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer")
        clients = jvm.org.apache.kafka.clients
        record = clients.producer.ProducerRecord
        admin = clients.admin.Admin.create(settings)
        first = clients.producer.KafkaProducer(settings)
        first.initTransactions()
        offsets = jvm.java.util.HashMap()
        partition = jvm.org.apache.kafka.common.TopicPartition("java", 0)
        epochs = []
        for number in range(4):
            first.beginTransaction()
            for index in range(PARTITIONS):
                first.send(record("java", index, None, f"{number}"))
            offsets.put(partition, clients.consumer.OffsetAndMetadata(number + 1))
            group = clients.consumer.ConsumerGroupMetadata("java")
            first.sendOffsetsToTransaction(offsets, group)
            if number == 2:
                first.flush()
                node.kill()
                node.start()
            if number == 1:
                first.abortTransaction()
            else:
                first.commitTransaction()
            ids = jvm.java.util.List.of("java")
            described = admin.describeTransactions(ids).description("java").get()
            epochs.append(described.producerEpoch())
        assert epochs == [1, 2, 3, 4]
        assert read(node, "java") == [b"0", b"2", b"3"] * PARTITIONS
        committed = admin.listConsumerGroupOffsets("java").partitionsToOffsetAndMetadata().get()
        assert committed.get(partition).offset() == 4
        second = clients.producer.KafkaProducer(settings)
        second.initTransactions()
        first.beginTransaction()
        with pytest.raises(Py4JJavaError, match=r"ProducerFenced|InvalidProducerEpoch"):
            first.send(record("java", 0, None, "zombie")).get()
        second.beginTransaction()
        second.send(record("java", 0, None, "last"))
        second.commitTransaction()
        assert read(node, "java") == [b"0", b"2", b"3", b"last", *[b"0", b"2", b"3"] * 2]
        for each in (first, second, admin):
            each.close(jvm.java.time.Duration.ZERO)

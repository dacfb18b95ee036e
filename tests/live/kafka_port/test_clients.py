"""librdkafka and kafka-python produce and consume, also while the node is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.log import Compression, parse_header
from tests.clients.node import Node
from tests.kafka.port.opened import Client

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the library, against itself
    from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]
    from kafka import TopicPartition as PythonTopicPartition

WAIT_S = 60
COUNT = 500
CODECS = [codec.name.lower() for codec in Compression]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node") / "data"
    with Node(folder, "--set", "lake.enabled=false") as running:
        yield running


def address(node: Node) -> str:
    return f"127.0.0.1:{node.kafka_port}"


class Acks:
    """The outcomes of what was produced."""

    def __init__(self) -> None:
        self.offsets: dict[bytes, int] = {}
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            value = message.value()
            assert isinstance(value, bytes)
            self.offsets[value] = message.offset() or 0


def produced(node: Node, topic: str, values: list[bytes], **settings: Any) -> Acks:
    """Produce with librdkafka; every value must be acknowledged."""
    acks = Acks()
    producer = Producer(
        {"bootstrap.servers": address(node), "enable.idempotence": True, **settings}
    )
    for value in values:
        producer.produce(topic, value, key=b"k", partition=0, on_delivery=acks)
    assert producer.flush(WAIT_S) == 0
    assert not acks.errors
    return acks


def consumed(node: Node, topic: str, count: int, **settings: Any) -> list[tuple[int, bytes]]:
    """Consume offsets and values from the beginning with librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": address(node),
            "group.id": "g",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        messages = consumer.consume(count, WAIT_S)
        assert messages, f"only {len(found)} of {count}"
        for message in messages:
            assert message.error() is None
            found.append((message.offset() or 0, message.value() or b""))
    consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka(node: Node, codec: str) -> None:
    """Records come back in order, each at the offset of its acknowledgement."""
    topic = f"librdkafka-{codec}"
    values = [b"%d " % number * 20 for number in range(COUNT)]
    settings = {"compression.type": codec, "batch.num.messages": 50}
    acks = produced(node, topic, values, **settings)
    found = consumed(node, topic, COUNT, **{"isolation.level": "read_committed"})
    assert [value for _, value in found] == values
    assert {value: offset for offset, value in found} == acks.offsets
    assert stored_codec(node, topic) == codec, (
        "librdkafka sends others uncompressed, and says nothing"
    )


def stored_codec(node: Node, topic: str) -> str:
    """Return how the first batch of a topic is compressed."""
    asked = FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])])
    with Client(node.kafka_port) as client:
        response = client.ask(FetchResponse, request, 11)
    records = response.responses[0].partitions[0].records
    assert records is not None
    return parse_header(bytes(records)).compression.name.lower()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat(node: Node) -> None:
    """A pipe into a topic, and a member of a group that reads it to its end."""
    lines = "".join(f"{number}\n" for number in range(COUNT))

    def run(*words: str, text: str = "") -> str:
        command = ["kcat", "-b", address(node), "-q", *words]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=WAIT_S, check=True
        )
        return done.stdout

    run("-P", "-t", "kcat", "-z", "lz4", "-X", "enable.idempotence=true", text=lines)
    assert run("-C", "-t", "kcat", "-o", "beginning", "-e") == lines
    group = ("-G", "kcat", "-X", "auto.offset.reset=earliest", "-c", str(COUNT), "kcat")
    assert run(*group) == lines
    assert run("-Q", "-t", "kcat:0:-1").split() == ["kcat", "[0]", "offset", str(COUNT)]


def test_the_tools_of_an_administrator(node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": address(node)})
    topic = NewTopic("administered", 3, 1, config={"retention.ms": "1000"})
    for created in admin.create_topics([topic]).values():
        created.result(WAIT_S)
    listed = admin.list_topics(timeout=WAIT_S)
    assert len(listed.topics["administered"].partitions) == 3
    resource = ConfigResource("topic", "administered")
    configs = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert configs["retention.ms"].value == "1000"
    assert admin.describe_cluster().result(WAIT_S).cluster_id == listed.cluster_id


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_kafka_python(node: Node, codec: str | None) -> None:
    topic = f"kafka-python-{codec}"
    producer = KafkaProducer(bootstrap_servers=address(node), compression_type=codec)
    sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(COUNT)]
    offsets = [each.get(WAIT_S).offset for each in sent]
    producer.close()
    assert offsets == list(range(COUNT))
    consumer = KafkaConsumer(
        bootstrap_servers=address(node), consumer_timeout_ms=WAIT_S * 1000, group_id=None
    )
    partition = PythonTopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    values = [next(consumer).value for _ in range(COUNT)]
    assert values == [b"%d" % number for number in range(COUNT)]
    assert consumer.end_offsets([partition]) == {partition: COUNT}
    consumer.close()


def test_a_topic_is_a_table(node: Node) -> None:
    produced(node, "orders", [b'{"id": 1}', b'{"id": 2}'])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "frazil", "sql", "--url", node.url, "--format", "csv"),
            "SELECT count(*), max(_offset) FROM topic_orders",
        ],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "2,1"


def test_a_killed_node_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """An idempotent producer goes on over three kills: each record is there once, in order."""
    acks = Acks()
    is_over = threading.Event()
    sent: list[bytes] = []
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        # Ports must stay the same, and a first commit makes the topic.
        produced(node, "t", [b"first"])
        producer = Producer(
            {
                "bootstrap.servers": address(node),
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "message.timeout.ms": WAIT_S * 1000,
            }
        )

        def send() -> None:
            while not is_over.wait(0.001):
                value = b"%d" % len(sent)
                sent.append(value)
                producer.produce("t", value, partition=0, on_delivery=acks)
                producer.poll(0)

        thread = threading.Thread(target=send)
        thread.start()
        for _ in range(3):
            known = len(acks.offsets)
            while len(acks.offsets) < known + 200 and not acks.errors:
                is_over.wait(0.05)
            node.kill()
            node.start()
        is_over.set()
        thread.join()
        assert producer.flush(WAIT_S) == 0
        assert not acks.errors
        found = consumed(node, "t", len(sent) + 1)
        assert [value for _, value in found] == [b"first", *sent]
        assert acks.offsets == {value: offset for offset, value in found[1:]}

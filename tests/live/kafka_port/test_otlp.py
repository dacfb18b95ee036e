"""OTLP through the Kafka port of a real node: rows in SQL and in the lake, each once."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

import frazil
from frazil.errors import Unavailable
from frazil.lake.catalog.catalog import open_catalog
from frazil.model import Signal
from frazil.settings import LakeConfig
from tests.clients.node import COMMAND, Node
from tests.conformance.cases import NOW_NS, log, logs, metric, metrics, span, spans
from tests.kafka.wire.definitions import KAFKA as JAVA
from tests.kafka.wire.java import QUICK
from tests.live.kafka_port.jars import class_path, missing

WAIT_S = 60
COUNT = 60
"""Requests of each signal and producer; each has two rows."""
NAMES = {"logs": "event_name", "spans": "name", "metrics": "metric_name"}
"""Table -> column with the record's name."""


def request(signal: Signal, name: str) -> bytes:
    number = abs(hash(name)) % 10**9
    if signal is Signal.LOGS:
        return logs(*(log(number, event_name=name) for _ in range(2)))
    if signal is Signal.TRACES:
        return spans(*(span(number, name=name) for _ in range(2)))
    gauge = metric(number)
    gauge.name = name
    for value in range(2):
        gauge.gauge.data_points.add(as_int=value, time_unix_nano=NOW_NS + number)
    return metrics(gauge)


class Sender:
    """A producer that notes which requests were acknowledged and which refused."""

    def __init__(self, node: Node, **settings: Any) -> None:
        self.topics: Mapping[Signal, str] | None = None
        """Topics to send to, if not those of the signals."""
        self.acknowledged: set[str] = set()
        self.errors: list[KafkaError] = []
        address = f"127.0.0.1:{node.kafka_port}"
        self.producer = Producer(
            {"bootstrap.servers": address, "linger.ms": 20, "log_level": 0, **settings}
        )

    def send(self, signal: Signal, name: str, body: bytes | None = None) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acknowledged.add(name)
            else:
                self.errors.append(error)

        value = request(signal, name) if body is None else body
        topic = signal.topic if self.topics is None else self.topics[signal]
        self.producer.produce(topic, value, on_delivery=delivered)

    def flush(self) -> None:
        assert self.producer.flush(WAIT_S) == 0


def ask(node: Node, text: str) -> list[dict[str, Any]]:
    with frazil.connect(node.url) as client:
        return list(client.ask(text).to_pylist())


def rows(node: Node, table: str) -> dict[str, int]:
    """Return how many rows each name has, by SQL."""
    name = NAMES[table]
    found = ask(node, f"SELECT {name} AS name, count(*) AS n FROM {table} GROUP BY 1")
    return {row["name"]: row["n"] for row in found}


def await_rows(node: Node, table: str, wanted: dict[str, int]) -> None:
    deadline = time.monotonic() + WAIT_S
    found = None
    while found != wanted and time.monotonic() < deadline:
        with suppress(Unavailable):  # the node has just started
            found = rows(node, table)
        time.sleep(0.1)
    assert found == wanted


def test_requests_become_rows_once(tmp_path: Path) -> None:
    """Of idempotent and plain producers, in every codec, over a kill, in transactions; not what was
    refused or aborted. In the hot tier, and in Iceberg tables."""
    folder = tmp_path / "data"
    with Node(folder, "--set", "lake.enabled=false") as node:
        senders = [
            Sender(node, **{"compression.type": "zstd", "enable.idempotence": True}),
            Sender(node, **{"compression.type": "lz4"}),
            Sender(node, **{"compression.type": "gzip", "enable.idempotence": True}),
            Sender(node, **{"compression.type": "snappy", "batch.size": 2000}),
        ]
        for number in range(COUNT):
            for which, sender in enumerate(senders):
                for signal in Signal:
                    sender.send(signal, f"{which}-{number}")
            if number == COUNT // 2:
                for sender in senders:
                    sender.producer.poll(0.05)
                node.kill()
                node.start()
        for sender in senders:
            sender.flush()
            assert not sender.errors
        check_garbage(node)
        check_settings(node)
        check_transactions(node)
        names = {f"{which}-{number}" for which in range(4) for number in range(COUNT)}
        names |= check_declared(node)
        wanted = dict.fromkeys(sorted(names | {"good", "committed"}), 2)
        for table in NAMES:
            await_rows(node, table, wanted)
        (dead,) = ask(node, "SELECT reason FROM dead_letters")
        assert "trace_id" in dead["reason"]
        assert node.stop() == 0
    check_lake(folder, wanted)


def check_garbage(node: Node) -> None:
    """A batch with a record that is no request is refused, and nothing of it is written. A log
    record that can never be a row becomes a dead letter; the rest of its request are rows."""
    sender = Sender(node)
    for signal in Signal:
        sender.send(signal, "refused", b"not telemetry")
        sender.send(signal, "refused")
    sender.flush()
    assert {error.code() for error in sender.errors} == {KafkaError.INVALID_RECORD}
    assert len(sender.errors) == 6
    for signal in Signal:
        body = request(signal, "good")
        if signal is Signal.LOGS:
            body += logs(log(1, trace_id=b"short"))
        sender.send(signal, "good", body)
    sender.flush()
    assert sender.acknowledged == {"good"}


def check_settings(node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{node.kafka_port}"})
    topic = ConfigResource(ConfigResource.Type.TOPIC, Signal.LOGS.topic)
    entries = admin.describe_configs([topic])[topic].result(WAIT_S)
    assert entries["message.timestamp.type"].value == "LogAppendTime"


def check_transactions(node: Node) -> None:
    sender = Sender(node, **{"transactional.id": "otlp", "compression.type": "zstd"})
    sender.producer.init_transactions(WAIT_S)
    for name in ("aborted", "committed"):
        sender.producer.begin_transaction()
        for signal in Signal:
            sender.send(signal, name)
        sender.flush()
        if name == "aborted":
            sender.producer.abort_transaction(WAIT_S)
        else:
            sender.producer.commit_transaction(WAIT_S)
    assert not sender.errors


def check_declared(node: Node) -> set[str]:
    """Topics of other names, with several partitions, over a kill, deleted and created again: rows
    as those of the others. Clients see only what was sent to the topic. Returns the names of
    rows."""
    topics = {signal: f"shop.{signal}" for signal in Signal}
    declare(node, topics, 2)
    senders = [Sender(node, **{"enable.idempotence": each}) for each in (True, False)]
    refused = Sender(node)
    for sender in (*senders, refused):
        sender.topics = topics
    names = [f"declared-{number}" for number in range(2 * COUNT)]
    for number, name in enumerate(names):
        for signal in Signal:
            senders[number % 2].send(signal, name)
        if number == COUNT:
            node.kill()
            node.start()
    for sender in senders:
        sender.flush()
        assert not sender.errors
    for signal in Signal:
        refused.send(signal, "refused", b"not telemetry")
    refused.flush()
    assert [error.code() for error in refused.errors] == 3 * [KafkaError.INVALID_RECORD]
    both = Sender(node, **{"transactional.id": "declared"})
    both.producer.init_transactions(WAIT_S)
    for name in ("declared-aborted", "declared-committed"):
        both.producer.begin_transaction()
        for signal in Signal:
            both.topics = topics
            both.send(signal, name)
            both.topics = None  # the signal's own topic, in the same transaction
            both.send(signal, f"{name}-2")
        both.flush()
        if name == "declared-aborted":
            both.producer.abort_transaction(WAIT_S)
        else:
            both.producer.commit_transaction(WAIT_S)
    assert not both.errors
    values = read_all(node, topics[Signal.LOGS], 2)
    found = {log_names(value)[0] for value in values}
    assert len(values) == len(found) and found == {*names, "declared-committed"}
    return found | {"declared-committed-2"} | check_declared_again(node, topics)


def check_declared_again(node: Node, topics: Mapping[Signal, str]) -> set[str]:
    """The topics are deleted; their rows stay."""
    command = [*COMMAND, "topics", "delete", "--yes", "--url", node.url]
    for topic in topics.values():
        subprocess.run([*command, topic], timeout=WAIT_S, check=True, capture_output=True)
    declare(node, topics, 1)
    assert not read_all(node, topics[Signal.LOGS], 1)
    sender = Sender(node)
    sender.topics = topics
    for signal in Signal:
        sender.send(signal, "declared-again")
    sender.flush()
    (value,) = read_all(node, topics[Signal.LOGS], 1)
    assert log_names(value) == 2 * ["declared-again"]
    return {"declared-again"}


def declare(node: Node, topics: Mapping[Signal, str], partitions: int) -> None:
    for signal, topic in topics.items():
        subprocess.run(
            [
                *(*COMMAND, "topics", "create", topic, "--url", node.url),
                *("--partitions", str(partitions), "--setting", f"frazil.otlp={signal}"),
            ],
            timeout=WAIT_S,
            check=True,
            capture_output=True,
        )


def read_all(node: Node, topic: str, partitions: int) -> list[bytes]:
    """Return the committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{node.kafka_port}",
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = [KafkaPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
    consumer.assign(places)
    values: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(WAIT_S)
        assert message is not None
        error, value, partition = message.error(), message.value(), message.partition()
        if error is None:
            assert isinstance(value, bytes)
            values.append(value)
        else:
            assert error.code() == KafkaError._PARTITION_EOF and partition is not None
            ended.add(partition)
    consumer.close()
    return values


def log_names(body: bytes) -> list[str]:
    request = ExportLogsServiceRequest.FromString(body)
    (resource,) = request.resource_logs
    return [each.event_name for scope in resource.scope_logs for each in scope.log_records]


def check_lake(folder: Path, wanted: dict[str, int]) -> None:
    """Fill the Iceberg tables, then read them with another node, whose hot tier has no rows."""
    flushed = subprocess.run(
        [*COMMAND, "flush", "--data", str(folder), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    commits = [json.loads(line) for line in flushed.stdout.splitlines()]
    assert {commit["table"] for commit in commits} >= set(NAMES)
    with closing(open_catalog(LakeConfig(), folder)) as catalog:
        for table, name in NAMES.items():
            found = catalog.load_table(f"frazil.{table}").scan(selected_fields=(name,)).to_arrow()
            counts = found.group_by(name).aggregate([([], "count_all")]).to_pylist()
            assert {row[name]: row["count_all"] for row in counts} == wanted


def test_clients_push_their_metrics(tmp_path: Path) -> None:
    """librdkafka and Kafka's Java client do so by default, if a node subscribes."""
    settings = tmp_path / "frazil.toml"
    settings.write_text(
        '[kafka.telemetry]\nmetrics = ["org.apache.kafka.producer."]\ninterval_ms = 200\n'
        "[lake]\nenabled = false\n"
    )
    with Node(tmp_path / "data", "--config", str(settings)) as node:
        sender = Sender(node, **{"client.id": "shop"})
        wanted = {"shop"}
        if missing() is None:
            wanted.add("producer-1")
            run_java(node)
        deadline = time.monotonic() + WAIT_S
        found: dict[str, Any] = {}
        while set(found) != wanted and time.monotonic() < deadline:
            sender.send(Signal.LOGS, "again")
            sender.producer.poll(0.1)
            query = "SELECT DISTINCT service_name, resource_attributes FROM metrics"
            for row in ask(node, query):
                found[row["service_name"]] = dict(row["resource_attributes"])
        assert set(found) == wanted
        assert found["shop"]["client_software_name"] == "confluent-kafka-python"
        assert found.get("producer-1", {}).get("client_software_version", JAVA) == JAVA


def run_java(node: Node) -> None:
    subprocess.run(
        [
            *("java", *QUICK, "-cp", class_path(JAVA), "org.apache.kafka.tools.VerifiableProducer"),
            *("--bootstrap-server", f"127.0.0.1:{node.kafka_port}", "--topic", "java"),
            *("--max-messages", "200", "--throughput", "100"),
        ],
        capture_output=True,
        timeout=WAIT_S,
        check=True,
    )

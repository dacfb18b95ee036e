"""A worker of Kafka Connect with exactly-once support, killed while its source reads a file."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.node import Node
from tests.kafka.wire.java import QUICK
from tests.live.kafka_port.client_jars import connect_class_path, missing

MISSING = missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

WAIT_S = 180
"""Java on a busy machine needs minutes to start."""
PAUSE_S = 0.2
STOP_SECONDS_MAX = 60
COUNT = 500
WORKER = """\
bootstrap.servers={address}
group.id=connect
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
config.storage.replication.factor=1
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic=connect-status
status.storage.replication.factor=1
status.storage.partitions=1
exactly.once.source.support=enabled
scheduled.rebalance.max.delay.ms=0
session.timeout.ms=6000
heartbeat.interval.ms=500
listeners=http://127.0.0.1:{port}
plugin.discovery=service_load
plugin.path={plugins}
"""
CONNECTOR = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Worker:
    """A worker process on a folder, with the same port after each start. Owned by the test."""

    def __init__(self, folder: Path, address: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "plugins").mkdir()
        self._url = f"http://127.0.0.1:{port}/connectors"
        self._output = folder / "worker.txt"
        self._settings = folder / "worker.properties"
        self._settings.write_text(
            WORKER.format(address=address, port=port, plugins=folder / "plugins")
        )
        self.start()

    def start(self) -> None:
        words = ["org.apache.kafka.connect.cli.ConnectDistributed", str(self._settings)]
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                ["java", *QUICK, "-cp", connect_class_path(), *words],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def ask(self, path: str, body: Any = None) -> Any:
        """Ask the worker, as soon as it responds."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data, {"Content-Type": "application/json"}
        )
        end_s = time.monotonic() + WAIT_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                    return json.loads(response.read())
            except OSError as error:
                said = error.read() if isinstance(error, urllib.error.HTTPError) else error
                assert self.process.poll() is None, self.output()
                assert time.monotonic() < end_s, f"{said!r}: {self.output()}"
                time.sleep(PAUSE_S)

    def output(self) -> str:
        return self._output.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_SECONDS_MAX)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def committed(consumer: Consumer, count: int, worker: Worker) -> list[bytes]:
    """Return the next values that are committed, once there are as many."""
    found: list[bytes] = []
    end_s = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < end_s, f"{len(found)} of {count}: {worker.output()}"
        found += [each.value() or b"" for each in consumer.consume(count, PAUSE_S)]
    return found


def test_a_source_writes_each_line_once(tmp_path: Path) -> None:
    """Its records and the offsets of what it has read are one transaction: after a kill of worker
    and node, perhaps in the middle of one, no line is missing or there twice."""
    lines = [b"%d" % number for number in range(3 * COUNT)]
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(each + b"\n" for each in lines[:COUNT]))
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as node:
        address = f"127.0.0.1:{node.kafka_port}"
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("lines", 1)])["lines"].result(WAIT_S)
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition("lines", 0, 0)])
        with Worker(tmp_path, address) as worker:
            config = {
                "connector.class": CONNECTOR,
                "tasks.max": "1",
                "file": str(file),
                "topic": "lines",
                "exactly.once.support": "required",
            }
            worker.ask("", {"name": "lines", "config": config})
            assert committed(consumer, COUNT, worker) == lines[:COUNT]
            with file.open("ab") as more:
                more.write(b"".join(each + b"\n" for each in lines[COUNT : 2 * COUNT]))
            worker.kill()
            node.kill()
            with file.open("ab") as more:
                more.write(b"".join(each + b"\n" for each in lines[2 * COUNT :]))
            node.start()
            worker.start()
            assert committed(consumer, 2 * COUNT, worker) == lines[COUNT:]
            assert consumer.get_watermark_offsets(TopicPartition("lines", 0))[1] > len(lines), (
                "there are no markers of transactions"
            )
        consumer.close()

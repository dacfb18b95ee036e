"""`frazil appender` as a separate process on Spark, from a real Kafka into tables.

PyIceberg reads the tables; they are compared with what the producers have committed.
"""

from __future__ import annotations

import json
import queue
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from pyiceberg.catalog import Catalog

from frazil.lake.catalog.catalog import open_catalog
from frazil.settings import LakeConfig
from tests.clients.node import COMMAND
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs, span, spans
from tests.live.kafka.broker import ASK_SECONDS_MAX, KafkaBroker

PARTITIONS = {"otlp_logs": 3, "otlp_spans": 2}
TABLES = {"otlp_logs": "logs", "otlp_spans": "spans"}
ROWS = 2
"""Rows per request."""
LINE_SECONDS_MAX = 180
"""Time for Spark to start and code to compile, perhaps on a busy machine."""
SETTINGS = """\
[lake]
flush_age_ms = 300
slice_bytes = 100000
driver_memory_bytes = 536870912
[lake.kafka]
brokers = "{brokers}"
[lake.kafka.client]
"client.id" = "frazil-test"
"""

Position = tuple[str, int, int]
"""Topic, partition, offset."""


class Sender:
    """Sends requests with and without transactions, and keeps the committed ones by position."""

    def __init__(self, broker: KafkaBroker, name: str) -> None:
        common = {"bootstrap.servers": broker.address, "acks": "all", "log_level": 2}
        self._plain = Producer(common)
        self._transactional = Producer({**common, "transactional.id": name})
        self._transactional.init_transactions(ASK_SECONDS_MAX)
        self.committed: dict[Position, int] = {}
        self.aborted_count = 0
        self._count = 0

    def plain(self, count: int, partition: int | None = None) -> None:
        self.committed |= self._send(self._plain, count, partition)

    def commit(self, count: int, partition: int | None = None) -> None:
        self._transactional.begin_transaction()
        sent = self._send(self._transactional, count, partition)
        self._transactional.commit_transaction(ASK_SECONDS_MAX)
        self.committed |= sent

    def abort(self, count: int, partition: int | None = None) -> None:
        self._transactional.begin_transaction()
        self.aborted_count += len(self._send(self._transactional, count, partition))
        self._transactional.abort_transaction(ASK_SECONDS_MAX)

    def _send(self, producer: Producer, count: int, partition: int | None) -> dict[Position, int]:
        """Send to each topic, over all partitions or to one. Return position -> number."""
        sent: dict[Position, int] = {}

        def remember(number: int, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            sent[str(message.topic()), message.partition() or 0, message.offset() or 0] = number

        for number in range(self._count, self._count + count):
            for topic, partitions in PARTITIONS.items():
                producer.produce(
                    topic,
                    request(topic, number),
                    partition=number % partitions if partition is None else partition,
                    on_delivery=partial(remember, number),
                )
        self._count += count
        assert producer.flush(ASK_SECONDS_MAX) == 0
        return sent


def request(topic: str, number: int) -> bytes:
    name = f"request-{number}"
    if topic == "otlp_logs":
        return logs(*(log_record(number, event_name=name) for _ in range(ROWS)))
    return spans(*(span(number, name=name) for _ in range(ROWS)))


class AppenderProcess:
    """A process of `frazil appender` and its output."""

    def __init__(self, folder: Path, broker: KafkaBroker, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "settings.toml"
        settings.write_text(SETTINGS.format(brokers=broker.address), encoding="utf-8")
        self._errors = folder / "errors.txt"
        catalog = f"sqlite:///{folder.parent / 'catalog.db'}"
        where = ["--data", str(folder), "--catalog", catalog]
        where += ["--warehouse", str(folder.parent / "warehouse")]
        self._lines: queue.Queue[str] = queue.Queue()
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, "appender", "--config", str(settings), *where, "--json", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")
        self.process.stdout.close()

    def line(self) -> dict[str, Any]:
        """Return the next commit that it prints."""
        line = self._lines.get(timeout=LINE_SECONDS_MAX)
        assert line, f"the appender has ended: {self.errors()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def errors(self) -> str:
        return self._errors.read_text(errors="replace")

    def wait(self) -> int:
        return self.process.wait(LINE_SECONDS_MAX)

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.wait()

    def __enter__(self) -> AppenderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as made:
        yield made


@pytest.fixture
def topics(broker: KafkaBroker) -> Iterator[None]:
    """Create the topics of the OpenTelemetry Collector for one test."""
    for name, partitions in PARTITIONS.items():
        broker.create_topic(name, partitions)
    yield
    for name in PARTITIONS:
        broker.delete_topic(name)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """The catalog, opened by PyIceberg."""
    config = LakeConfig(
        catalog={"uri": f"sqlite:///{tmp_path / 'catalog.db'}"},
        warehouse=str(tmp_path / "warehouse"),
    )
    opened = open_catalog(config, tmp_path)
    yield opened
    opened.close()


def rows(catalog: Catalog, topic: str) -> list[tuple[str, int, int, int, str]]:
    """Return sorted (topic, partition, offset, row, name) of all rows."""
    named = "event_name" if topic == "otlp_logs" else "name"
    scan = catalog.load_table(f"frazil.{TABLES[topic]}").scan()
    found = scan.select("_log_partition", "_offset", "_row", named).to_arrow().to_pydict()
    columns = (found[column] for column in ("_log_partition", "_offset", "_row", named))
    return sorted((topic, *row) for row in zip(*columns, strict=True))


def check(catalog: Catalog, sender: Sender) -> None:
    """Check that the tables hold each committed row once, at its position, and nothing else.

    So the rows of a partition are in the order in which they were sent.
    """
    for topic in PARTITIONS:
        expected = [
            (*position, row, f"request-{number}")
            for position, number in sender.committed.items()
            if position[0] == topic
            for row in range(ROWS)
        ]
        assert rows(catalog, topic) == sorted(expected)


@pytest.mark.usefixtures("topics")
def test_tables_have_committed_records_exactly_once(
    broker: KafkaBroker, tmp_path: Path, catalog: Catalog
) -> None:
    """In order, without aborted records, also at the end of a partition.

    The appender is killed during its first append and during a later one, under load.
    """
    sender = Sender(broker, "first")
    sender.plain(30)
    sender.commit(40)
    sender.abort(50)
    sender.commit(5, partition=1)
    sender.abort(7, partition=0)
    with producing(sender):
        with AppenderProcess(tmp_path / "a", broker) as appender:
            wait_for_file(tmp_path / "warehouse" / "frazil" / "logs" / "data", appender)
            assert appender.signal(signal.SIGKILL) == -signal.SIGKILL
        with AppenderProcess(tmp_path / "a", broker) as appender:
            for _ in range(3):
                appender.line()
            assert appender.signal(signal.SIGKILL) == -signal.SIGKILL
    sender.commit(3)
    sender.abort(3)
    for topic, partitions in PARTITIONS.items():
        broker.wait_until_decided(topic, partitions)
    with AppenderProcess(tmp_path / "a", broker, "--once") as appender:
        assert {appender.line()["table"], appender.line()["table"]} == {"logs", "spans"}
        assert appender.wait() == 0, appender.errors()
    assert sender.aborted_count > 2 * 60
    check(catalog, sender)
    count = len(catalog.load_table("frazil.logs").metadata.snapshots)
    with AppenderProcess(tmp_path / "a", broker, "--once") as appender:  # finds nothing new
        assert appender.wait() == 0, appender.errors()
    assert len(catalog.load_table("frazil.logs").metadata.snapshots) == count


@contextmanager
def producing(sender: Sender) -> Iterator[None]:
    """Send in a thread during the block."""
    is_done = threading.Event()

    def produce() -> None:
        rand = random.Random(6)
        while not is_done.wait(0.1):
            rand.choice([sender.plain, sender.commit, sender.abort])(rand.randrange(1, 20))

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def wait_for_file(folder: Path, appender: AppenderProcess) -> None:
    """Wait until a task has started to write."""
    deadline = time.monotonic() + LINE_SECONDS_MAX
    while not any(folder.rglob("*.parquet*")):
        assert time.monotonic() < deadline, appender.errors()
        assert appender.process.poll() is None, appender.errors()
        time.sleep(0.005)


@pytest.mark.usefixtures("topics")
def test_the_later_of_two_appenders_continues(
    broker: KafkaBroker, tmp_path: Path, catalog: Catalog
) -> None:
    """The earlier one ends with a message and code 1.

    A stop by SIGTERM gives code 0, and the folder of a running appender is locked.
    """
    sender = Sender(broker, "third")
    with AppenderProcess(tmp_path / "a", broker) as earlier:
        wait_for_owner(catalog, "")
        owner = catalog.load_table("frazil.dead_letters").properties["frazil.appender"]
        with AppenderProcess(tmp_path / "a", broker) as third:
            assert third.wait() == 1
            assert "is in use by process" in third.errors()
        with AppenderProcess(tmp_path / "b", broker) as later:
            wait_for_owner(catalog, owner)
            sender.commit(6)
            assert earlier.wait() == 1
            last = (tmp_path / "a" / "errors.txt").read_text().splitlines()[-1]
            assert last.startswith("frazil: ") and "was taken over by appender" in last
            missing = 6 * ROWS * len(PARTITIONS)
            while missing > 0:
                missing -= later.line()["row_count"]
            assert later.signal(signal.SIGTERM) == 0, later.errors()
    check(catalog, sender)


def wait_for_owner(catalog: Catalog, before: str) -> None:
    """Wait until another appender has taken over the last table."""
    deadline = time.monotonic() + LINE_SECONDS_MAX
    while True:
        if catalog.table_exists("frazil.dead_letters"):
            properties = catalog.load_table("frazil.dead_letters").properties
            if properties.get("frazil.appender", before) != before:
                return
        assert time.monotonic() < deadline, "no appender has taken over the tables"
        time.sleep(0.05)

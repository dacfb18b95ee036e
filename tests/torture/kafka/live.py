"""A real node under librdkafka, killed with SIGKILL, behind a proxy that loses responses.

A transactional producer writes to `source`, an idempotent one to `plain`, and a program copies
`source` to `target` exactly once. At the end Fetch, SQL over hot tier and lake, and the Iceberg
tables must agree with what the producers were told.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from frazil.client import Client
from frazil.errors import FrazilError
from frazil.lake.catalog.catalog import open_catalog
from frazil.model import Rand
from frazil.settings import LakeConfig
from tests.clients.node import Node
from tests.torture.checker import Verdict
from tests.torture.kafka.proxy import KafkaProxy
from tests.torture.report import Report

PARTITIONS = 3
WAIT_S = 120.0
TIMEOUT_S = 20
STUCK_S = 10.0
"""A copier that copies nothing for so long is started again: librdkafka's
send_offsets_to_transaction may never return, whatever its timeout, after the node was killed."""
TOPICS = ("source", "target", "plain")
MUST_FIRE = (
    *("lost_request", "lost_response", "repeated_batch", "repeated_end", "late_response"),
    *("killed", "committed", "aborted", "acknowledged"),
)
SETTINGS = """
[lake]
enabled = {lake}
flush_age_ms = 500
[kafka]
advertised = "127.0.0.1:{port}"
[kafka.groups]
initial_rebalance_delay_ms = 0
[kafka.transactions]
timeout_ms_max = 60000
"""

Values = list[list[bytes]]
"""Of each partition, in order."""


class _Load:
    """The two producers. Their threads end when `is_over` is set."""

    def __init__(self, address: str, rand: Rand) -> None:
        self.committed: list[list[tuple[int, bytes]]] = []
        self.unknown: list[list[tuple[int, bytes]]] = []
        self.aborted: list[list[tuple[int, bytes]]] = []
        self.acknowledged: list[tuple[int, bytes]] = []
        self.fired: Counter[str] = Counter()
        self.is_over = False
        self._address = address
        self._rand = rand
        self._threads = [
            threading.Thread(target=self._transactions),
            threading.Thread(target=self._plain),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.is_over = True
        for thread in self._threads:
            thread.join(WAIT_S)

    def _common(self) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": self._address,
            "log_level": 0,
            "linger.ms": 1,
            "reconnect.backoff.max.ms": 200,
            "socket.timeout.ms": 10_000,
        }

    def _transactions(self) -> None:
        number = 0
        while not self.is_over:
            producer = Producer(
                {**self._common(), "transactional.id": "load", "transaction.timeout.ms": 20_000}
            )
            try:
                _insist(lambda: producer.init_transactions(TIMEOUT_S))  # noqa: B023 - at once
                while not self.is_over:
                    number += 1
                    self._transaction(producer, number)
            except KafkaException:
                self.fired["fatal"] += 1

    def _transaction(self, producer: Producer, number: int) -> None:
        """One transaction. Raises if the producer cannot go on."""
        records = [
            (self._rand.randrange(PARTITIONS), b"%d.%d" % (number, each))
            for each in range(self._rand.choice((1, 5, 30)))
        ]
        producer.begin_transaction()
        for partition, value in records:
            producer.produce("source", value, partition=partition)
        if self._rand.random() < 0.25:
            self.aborted.append(records)
            producer.flush(TIMEOUT_S)
            _insist(lambda: producer.abort_transaction(TIMEOUT_S))
            self.fired["aborted"] += 1
            return
        try:
            _insist(lambda: producer.commit_transaction(TIMEOUT_S))
        except KafkaException as error:
            self.unknown.append(records)
            if not error.args[0].txn_requires_abort():
                raise
            _insist(lambda: producer.abort_transaction(TIMEOUT_S))
            self.aborted.append(self.unknown.pop())
            return
        self.committed.append(records)
        self.fired["committed"] += 1

    def _plain(self) -> None:
        producer = Producer({**self._common(), "enable.idempotence": True})
        number = 0

        def delivered(error: object, message: Message) -> None:
            if error is None:
                self.acknowledged.append((message.partition() or 0, message.value() or b""))
                self.fired["acknowledged"] += 1

        while not self.is_over:
            for _ in range(20):
                number += 1
                value = b"%d" % number
                producer.produce("plain", value, partition=number % PARTITIONS, callback=delivered)
            producer.poll(0.05)
            producer.flush(0.2)
        producer.flush(WAIT_S)


def _insist(call: Callable[[], object]) -> None:
    """Repeat what librdkafka says may be repeated."""
    end_s = time.monotonic() + WAIT_S
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > end_s:
                raise


def run(cycles: int, seed: int, *, has_lake: bool = True) -> Report:
    """Kill the node `cycles` times."""
    report = Report("kafka_live", seed, must_fire=MUST_FIRE)
    rand = Rand(seed)
    proxy = KafkaProxy(Rand(rand.getrandbits(64)))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = folder / "frazil.toml"
        settings.write_text(SETTINGS.format(lake="true" if has_lake else "false", port=proxy.port))
        with Node(folder / "data", "--config", str(settings)) as node:
            proxy.node_port = node.kafka_port
            address = f"127.0.0.1:{proxy.port}"
            _create(address, proxy)
            load = _Load(address, Rand(rand.getrandbits(64)))
            copier = _Copier(address, folder)
            try:
                for _ in range(cycles):
                    time.sleep(rand.choice((0.5, 2.0)))
                    copier.keep_alive(is_killed=rand.random() < 0.3)
                    node.kill()
                    report.faults["killed"] += 1
                    node.start()
                    report.cycles += 1
                time.sleep(1.0)
                load.stop()
                proxy.is_calm = True
                report.verdict.merge(_judge(node, address, load, copier), "")
            finally:
                load.is_over = True
                copier.kill()
            if has_lake and report.verdict.is_valid:
                report.verdict.merge(_judge_tables(node, folder / "data", address), "")
        proxy.close()
    report.faults += proxy.fired + load.fired
    return report


def _create(address: str, proxy: KafkaProxy) -> None:
    proxy.is_calm = True
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for each in admin.create_topics([NewTopic(name, PARTITIONS) for name in TOPICS]).values():
        each.result(WAIT_S)
    proxy.is_calm = False


class _Copier:
    """The program that copies. Started again whenever it has ended."""

    def __init__(self, address: str, folder: Path) -> None:
        module = "tests.live.kafka_port.copier"
        self._command = [sys.executable, "-m", module, address, "source", "target"]
        self._output = (folder / "copier.txt").open("ab")
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=self._output, stderr=self._output)

    def keep_alive(self, *, is_killed: bool = False) -> None:
        if is_killed:
            self._process.kill()
        if is_killed or self._process.poll() is not None:
            self._process.wait()
            self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()


def read(address: str, topic: str) -> Values:
    """Return what librdkafka reads with read_committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: Values = [[] for _ in range(PARTITIONS)]
    ends: set[int] = set()
    end_s = time.monotonic() + WAIT_S
    while len(ends) < PARTITIONS and time.monotonic() < end_s:
        message = consumer.poll(0.5)
        if message is not None and message.error():
            ends.add(message.partition() or 0)
        elif message is not None:
            found[message.partition() or 0].append(message.value() or b"")
    consumer.close()
    return found


def _rows(node: Node, topic: str) -> Values:
    """Return what SQL finds: in the hot tier, the lake, or partly in each."""
    query = f"SELECT _log_partition, value FROM topic_{topic} ORDER BY _log_partition, _offset"
    with Client(node.url, token=None, ca_file=None) as client:
        table = client.ask(query)
    found: Values = [[] for _ in range(PARTITIONS)]
    columns = (table.column(0).to_pylist(), table.column(1).to_pylist())
    for partition, value in zip(*columns, strict=True):
        found[partition].append(value)
    return found


def _judge(node: Node, address: str, load: _Load, copier: _Copier) -> Verdict:
    """Compare what was told with what can be read, once the copier has caught up."""
    verdict = Verdict()
    end_s = time.monotonic() + WAIT_S
    moved_s, before = time.monotonic(), None
    while True:
        source, target = read(address, "source"), read(address, "target")
        now_s = time.monotonic()
        if target == source or now_s > end_s:
            break
        if target != before:
            moved_s, before = now_s, target
        is_stuck = now_s - moved_s > STUCK_S
        copier.keep_alive(is_killed=is_stuck)
        if is_stuck:
            moved_s = now_s
        time.sleep(0.5)
    if target != source:
        counts = [(len(a), len(b)) for a, b in zip(source, target, strict=True)]
        verdict.add("lost", f"source and target differ: {counts}")
    _check_transactions(verdict, load, source)
    plain = read(address, "plain")
    _check_once(verdict, "plain", plain)
    for partition, value in load.acknowledged:
        if value not in plain[partition]:
            verdict.add("lost", f"plain/{partition}: {value!r} was acknowledged")
    for topic, found in (("source", source), ("target", target), ("plain", plain)):
        _check_sql(verdict, node, topic, found)
    return verdict


def _check_transactions(verdict: Verdict, load: _Load, source: Values) -> None:
    _check_once(verdict, "source", source)
    seen = {(at, value) for at, values in enumerate(source) for value in values}
    for records in load.committed:
        if missing := [each for each in records if each not in seen]:
            verdict.add("lost", f"{missing[0]} of a committed transaction")
    for records in load.aborted:
        if found := [each for each in records if each in seen]:
            verdict.add("refused", f"{found[0]} of an aborted transaction")
    for records in load.unknown:
        if 0 < len(seen.intersection(records)) < len(records):
            verdict.add("lost", f"torn: {records}")


def _check_once(verdict: Verdict, topic: str, found: Values) -> None:
    """Check that nothing is there twice, and all is in order."""
    for partition, values in enumerate(found):
        order = [tuple(map(int, value.split(b"."))) for value in values]
        if len(set(order)) != len(order):
            verdict.add("duplicate", f"{topic}/{partition}")
        elif order != sorted(order):
            verdict.add("order", f"{topic}/{partition}")


def _check_sql(verdict: Verdict, node: Node, topic: str, expected: Values) -> None:
    end_s = time.monotonic() + WAIT_S
    found: Values = []
    while time.monotonic() < end_s:
        try:
            found = _rows(node, topic)
        except FrazilError as error:
            found = [[str(error).encode()]]
        if found == expected:
            return
        time.sleep(0.5)
    counts = [len(each) for each in found], [len(each) for each in expected]
    verdict.add("lost", f"SQL of {topic} differs from Fetch: {counts} {found[0][:1]}")


def _judge_tables(node: Node, data: Path, address: str) -> Verdict:
    """Let the lake catch up, and compare its tables."""
    verdict = Verdict()
    with Client(node.url, token=None, ca_file=None) as client:
        client.flush()
    config = LakeConfig()
    for topic in TOPICS:
        expected = read(address, topic)
        with closing(open_catalog(config, data)) as catalog:
            stored = catalog.load_table((config.namespace, f"topic_{topic}"))
            table = stored.scan(selected_fields=("_log_partition", "_offset", "value")).to_arrow()
        rows = sorted(
            zip(
                table.column("_log_partition").to_pylist(),
                table.column("_offset").to_pylist(),
                table.column("value").to_pylist(),
                strict=True,
            )
        )
        found: Values = [[] for _ in range(PARTITIONS)]
        for partition, _, value in rows:
            found[partition].append(value)
        if found != expected:
            counts = [len(each) for each in found], [len(each) for each in expected]
            verdict.add("lost", f"the table of {topic} differs from Fetch: {counts}")
    return verdict

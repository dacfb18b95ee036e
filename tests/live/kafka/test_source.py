"""Ranges of a real Kafka return each committed record once, whatever is at their boundaries."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from pyiceberg.catalog import Catalog

from frazil.errors import Conflict, OutOfRange, Unavailable
from frazil.lake.append import kafka_reader
from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.kafka_reader import KafkaRange
from frazil.lake.append.kafka_source import KafkaSource
from frazil.lake.append.task import WrittenSlice
from frazil.lake.catalog.catalog import open_catalog
from frazil.model import SystemClock
from frazil.model.arrow import ExportRequest, decode
from frazil.settings import KafkaConfig, LakeConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.lake.inline_tasks import run_inline
from tests.live.kafka.broker import ASK_SECONDS_MAX, KafkaBroker

CLOCK = SystemClock()
SMALL = LakeConfig(slice_bytes=2_000)
"""Small, so that an append has several tasks."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as made:
        yield made


@pytest.fixture
def topic(broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """Create a topic with one partition for this test."""
    name = request.node.name.replace("[", ".").replace("]", "")
    broker.create_topic(name)
    return str(name)


def produce(broker: KafkaBroker, topic: str, values: Sequence[bytes | None]) -> None:
    """Produce records without a transaction."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, "log_level": 2})
    for value in values:
        producer.produce(topic, value, key=b"k", headers=[("h", b"1"), ("h", None)], partition=0)
    assert producer.flush(ASK_SECONDS_MAX) == 0


class Transactions:
    """A producer that commits and aborts."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": broker.address, "transactional.id": topic, "log_level": 2}
        )
        self._producer.init_transactions(ASK_SECONDS_MAX)
        self._topic = topic

    def write(self, count: int, partition: int = 0, value: bytes = b"v") -> None:
        """Write records in a new transaction, and leave it open."""
        self._producer.begin_transaction()
        for _ in range(count):
            self._producer.produce(self._topic, value, partition=partition)
        assert self._producer.flush(ASK_SECONDS_MAX) == 0

    def commit(self, count: int = 0) -> None:
        if count:
            self.write(count)
        self._producer.commit_transaction(ASK_SECONDS_MAX)

    def abort(self, count: int = 0) -> None:
        if count:
            self.write(count)
        self._producer.abort_transaction(ASK_SECONDS_MAX)


def ranged(broker: KafkaBroker, topic: str, begin: int, end: int) -> KafkaRange:
    return KafkaRange(
        brokers=broker.address,
        group="frazil",
        client={},
        topic=topic,
        partition=0,
        begin=begin,
        end=end,
    )


def offsets(made: KafkaRange) -> list[int]:
    return [record.offset for records in made.read() for record in records]


def committed_offsets(broker: KafkaBroker, topic: str) -> list[int]:
    """Return the offsets of committed records, as read by a plain consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "reference",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(ASK_SECONDS_MAX)) is not None and message.error() is None:
        found.append(int(message.offset() or 0))
    consumer.close()
    return found


def stable_end(broker: KafkaBroker, topic: str) -> int:
    kafka_source = KafkaSource(KafkaConfig(brokers=broker.address, topics={"logs": topic}))
    (source,) = [source for source in kafka_source.sources() if source.topic == topic]
    return kafka_source.end(source)


def test_slices_have_each_committed_record_once(broker: KafkaBroker, topic: str) -> None:
    """Even if one ends in an aborted transaction, at a marker, or in a committed one."""
    producer = Transactions(broker, topic)
    produce(broker, topic, [b"plain"] * 3)
    producer.commit(4)
    producer.abort(5)
    broker.wait_until_decided(topic)  # its marker comes before the next records
    produce(broker, topic, [b"plain"] * 2)
    producer.commit(1)
    producer.abort(2)
    producer.abort(1)
    broker.wait_until_decided(topic)
    end = stable_end(broker, topic)
    assert end == 3 + 5 + 6 + 2 + 2 + 3 + 2
    committed = committed_offsets(broker, topic)
    assert committed == [0, 1, 2, 3, 4, 5, 6, 14, 15, 16]
    assert offsets(ranged(broker, topic, 0, end)) == committed
    for cut in range(1, end):
        found = [offsets(ranged(broker, topic, *part)) for part in ((0, cut), (cut, end))]
        assert found == [[o for o in committed if o < cut], [o for o in committed if o >= cut]]


def test_a_task_waits_for_a_restarted_broker(broker: KafkaBroker, topic: str) -> None:
    """It continues where it was."""
    produce(broker, topic, [b"x" * 20_000] * 2000)
    reading = ranged(broker, topic, 0, 2000).read()
    found = [record.offset for record in next(reading)]
    assert len(found) < 2000
    broker.kill()
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(lambda: [record.offset for records in reading for record in records])
        broker.start()
        found += rest.result()
    assert found == list(range(2000))


def test_the_prefetch_of_a_task_is_bounded(broker: KafkaBroker, topic: str) -> None:
    """To the client's queue and one fetch."""
    size, count = 60_000, 1500
    produce(broker, topic, [b"x" * size] * count)
    reading = ranged(broker, topic, 0, count).read()
    sizes = [len(next(reading))]
    time.sleep(1.0)  # the client fetches ahead
    sizes += [len(records) for records in reading]
    assert sum(sizes) == count
    assert max(sizes) * size < 24 * 1024 * 1024


def test_open_transactions_are_not_planned(broker: KafkaBroker, topic: str) -> None:
    """The end is the last stable offset, also for records of others after it."""
    producer = Transactions(broker, topic)
    produce(broker, topic, [b"plain"] * 2)
    broker.wait_until_decided(topic)
    producer.write(3)
    produce(broker, topic, [b"plain"] * 2)
    assert stable_end(broker, topic) == 2
    assert offsets(ranged(broker, topic, 0, 2)) == [0, 1]
    producer.abort()
    broker.wait_until_decided(topic)
    assert stable_end(broker, topic) == 8
    assert offsets(ranged(broker, topic, 2, 8)) == [5, 6]


def test_records_have_key_value_headers_and_timestamp(broker: KafkaBroker, topic: str) -> None:
    """The timestamp is that of their arrival."""
    before_ms = CLOCK.wall_ms()
    produce(broker, topic, [b"a", None, b""])
    sent = ranged(broker, topic, 0, 3)
    found = [record for records in sent.read() for record in records]
    assert [record.value for record in found] == [b"a", None, b""]
    assert {record.key for record in found} == {b"k"}
    assert {record.headers for record in found} == {(("h", b"1"), ("h", None))}
    assert all(before_ms <= record.timestamp_ms <= CLOCK.wall_ms() for record in found)


def test_a_range_is_picklable_and_hides_passwords() -> None:
    made = KafkaRange(
        brokers="b:1",
        group="g",
        client={"sasl.password": "open sesame"},
        topic="t",
        partition=0,
        begin=0,
        end=1,
    )
    assert pickle.loads(pickle.dumps(made)) == made
    config = KafkaConfig(brokers="b:1", client={"sasl.password": "open sesame"})
    assert "sesame" not in repr(made) + repr(config) + repr(LakeConfig(kafka=config))


def test_an_unreachable_broker_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the last error of the client."""
    monkeypatch.setattr(kafka_reader, "POLL_S", 0.1)
    monkeypatch.setattr(kafka_reader, "QUIET_POLLS_MAX", 3)
    made = KafkaRange(
        brokers="127.0.0.1:9", group="g", client={}, topic="t", partition=0, begin=0, end=1
    )
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9 sent nothing of t/0.*refused"):
        list(made.read())
    monkeypatch.setattr("frazil.lake.append.kafka_admin.REQUEST_S", 1.0)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9 did not return topic.*refused"):
        KafkaSource(KafkaConfig(brokers="127.0.0.1:9")).sources()


@dataclass(slots=True)
class World:
    broker: KafkaBroker
    topic: str
    catalog: Catalog

    def open(self, *, skip_lost: bool = False) -> Appender:
        kafka = KafkaConfig(
            brokers=self.broker.address, topics={"logs": self.topic}, skip_lost=skip_lost
        )
        return Appender.open(
            KafkaSource(kafka),
            self.catalog,
            SMALL,
            run=run_inline,
            clock=CLOCK,
            rand=random.SystemRandom(),
        )

    def add(self, count: int) -> None:
        produce(self.broker, self.topic, [logs(log_record(n)) for n in range(count)])

    def remove_below(self, offset: int) -> None:
        """Delete records, as retention does."""
        admin = self.broker.admin()
        position = TopicPartition(self.topic, 0, offset)
        admin.delete_records([position])[position].result(ASK_SECONDS_MAX)

    def rows(self) -> list[int]:
        found = self.catalog.load_table("frazil.logs").scan().select("_offset").to_arrow()
        return sorted(found.to_pydict()["_offset"])


@pytest.fixture
def world(broker: KafkaBroker, topic: str, tmp_path: Path) -> Iterator[World]:
    catalog = open_catalog(SMALL, tmp_path)
    yield World(broker=broker, topic=topic, catalog=catalog)
    catalog.close()


def test_each_round_continues_where_the_last_ended(world: World) -> None:
    """Without new records there is no commit. Kafka's tools see the progress."""
    world.add(100)
    appender = world.open()
    rounds = list(appender.append_all())
    assert [(c.begin, c.end) for new in rounds for d in new for c in d.covered] == [(0, 100)]
    assert appender.append() == []
    assert appender.pending_bytes == 0
    world.add(5)
    assert appender.pending_bytes > 0
    list(world.open().append_all())
    assert world.rows() == list(range(105))
    consumer = Consumer({"bootstrap.servers": world.broker.address, "group.id": "frazil"})
    deadline = time.monotonic() + ASK_SECONDS_MAX
    while (seen := consumer.committed([TopicPartition(world.topic, 0)])[0].offset) != 105:
        assert time.monotonic() < deadline, f"the group is at {seen}"
        # Group commits are not awaited, so an earlier one may arrive last.
        world.open()
    consumer.close()


def test_offsets_removed_by_retention_stop_the_appender(world: World) -> None:
    """Until an operator decides."""
    world.add(10)
    list(world.open().append_all())
    world.add(10)
    world.remove_below(15)
    with pytest.raises(OutOfRange, match=r"removed offsets 10 up to 15 of .*They are lost"):
        world.open().append()
    assert world.rows() == list(range(10))
    list(world.open(skip_lost=True).append_all())
    assert world.rows() == [*range(10), *range(15, 20)]
    world.add(1)
    list(world.open().append_all())
    assert world.rows() == [*range(10), *range(15, 21)]


def test_removed_offsets_can_be_skipped(world: World) -> None:
    """With nothing left to read, the table continues after them."""
    world.add(10)
    world.remove_below(10)
    appender = world.open(skip_lost=True)
    (done,) = appender.append()
    assert [(c.begin, c.end) for c in done.covered] == [(0, 10)]
    world.add(1)
    appender.append()
    assert world.rows() == [10]


def test_offsets_removed_after_the_plan_are_an_error(world: World) -> None:
    world.add(10)
    end = stable_end(world.broker, world.topic)
    world.remove_below(5)
    with pytest.raises(OutOfRange, match="removed some of the offsets from 0 up to 10"):
        offsets(ranged(world.broker, world.topic, 0, end))


@pytest.mark.parametrize("count", [3, 30])
def test_a_topic_created_again_is_an_error(world: World, count: int) -> None:
    """Even if it has grown past the table's next offset."""
    world.add(10)
    list(world.open().append_all())
    world.broker.delete_topic(world.topic)
    world.broker.create_topic(world.topic)
    world.add(count)
    with pytest.raises(OutOfRange, match="deleted and created again"):
        world.open().append()
    assert world.rows() == list(range(10))


def test_a_topic_created_again_during_a_round_is_detected(world: World) -> None:
    """Nothing is committed."""
    world.add(10)

    def run_meanwhile(work: Sequence[Work]) -> list[WrittenSlice]:
        written = run_inline(work)
        world.broker.delete_topic(world.topic)
        world.broker.create_topic(world.topic)
        world.add(1)  # waits until the new topic has a leader
        return written

    appender = world.open()
    appender._run = run_meanwhile
    with pytest.raises(Conflict, match="deleted and created again"):
        appender.append()
    assert world.rows() == []


def test_records_of_the_collector_can_be_decoded(world: World) -> None:
    """The Collector's Kafka exporter (`otlp_proto`) writes LogsData, a node writes requests.

    Both have the same bytes and give the same rows.
    """
    request = ExportLogsServiceRequest.FromString(logs(log_record(1), log_record(2)))
    data = LogsData(resource_logs=request.resource_logs).SerializeToString()
    produce(world.broker, world.topic, [data])
    list(world.open().append_all())
    table = world.catalog.load_table("frazil.logs").scan().to_arrow()
    decoded = decode("logs", [ExportRequest(partition=0, offset=0, ingest_time_ms=0, body=data)])
    same = [name for name in table.column_names if name != "ingest_time"]
    expected = pa.Table.from_batches([decoded.batch]).select(same).cast(table.select(same).schema)
    assert table.select(same).sort_by("_row").to_pylist() == expected.to_pylist()
    assert data == request.SerializeToString()


def test_offsets_that_go_back_are_an_error_without_topic_ids(world: World) -> None:
    """From old brokers, or after a broker lost acknowledged records."""
    world.add(10)
    kafka_source = KafkaSource(
        KafkaConfig(brokers=world.broker.address, topics={"logs": world.topic})
    )
    (source,) = [source for source in kafka_source.sources() if source.topic == world.topic]
    with pytest.raises(
        OutOfRange, match="ends at offset 10, but the next offset of table logs is 11"
    ):
        kafka_source.plan(source, 11, None, 1000)

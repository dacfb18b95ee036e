"""Keyed tables that topics of a real Kafka feed: `frazil appender` as a process that is killed.
Then, in this process, what tables go on from, and what stops them.

`make torture KIND=kafka_tables` kills it many times, and reads the tables with Spark, too.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from pyiceberg.catalog import Catalog

from frazil.appender.definitions import read_tables
from frazil.appender.kafka_tables import KafkaTables
from frazil.appender.run import FATAL_ERRORS
from frazil.disk import RealDisk
from frazil.errors import Fenced, Malformed, OutOfRange
from frazil.lake import Appended, FrozenPosition, KafkaChanges, KafkaSource, Lake
from frazil.lake.catalog.catalog import open_catalog
from frazil.model import SystemClock
from frazil.settings import KafkaConfig, LakeConfig, TablesConfig
from tests.lake.keyed.engines import Rows, with_pyiceberg
from tests.live.kafka.broker import ASK_SECONDS_MAX, KafkaBroker
from tests.live.kafka.keyed import (
    PARTITIONS,
    Changes,
    changing,
    check,
    letters_of,
    write_tables,
)
from tests.live.kafka.test_lake import AppenderProcess

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as made:
        yield made


def lake_config(folder: Path, kafka: KafkaConfig | None = None) -> LakeConfig:
    return LakeConfig(
        catalog={"uri": f"sqlite:///{folder / 'catalog.db'}"},
        warehouse=str(folder / "warehouse"),
        kafka=kafka,
    )


@dataclass
class World:
    """A topic with two partitions, and the table that it feeds."""

    broker: KafkaBroker
    folder: Path
    topic: str
    catalog: Catalog

    def config(self, *, skip_lost: bool = False) -> LakeConfig:
        kafka = KafkaConfig(
            brokers=self.broker.address, tables=str(self.folder), skip_lost=skip_lost
        )
        return lake_config(self.folder, kafka)

    def define(self, columns: str = "id BIGINT, name TEXT") -> None:
        text = (
            f"CREATE TABLE t ({columns}, PRIMARY KEY (id)) FROM TOPIC '{self.topic}' FORMAT UPSERT"
        )
        (self.folder / "t.sql").write_text(text, encoding="utf-8")

    def produce(self, key: int, value: dict[str, Any] | bytes | None, partition: int = 0) -> None:
        """Produce a record and wait for it."""
        producer = Producer({"bootstrap.servers": self.broker.address, "log_level": 2})
        text = json.dumps(value).encode() if isinstance(value, dict) else value
        producer.produce(self.topic, text, json.dumps({"id": key}).encode(), partition=partition)
        assert producer.flush(ASK_SECONDS_MAX) == 0

    @contextmanager
    def opened(
        self, data: str = "data", *, skip_lost: bool = False
    ) -> Iterator[tuple[Lake, KafkaTables]]:
        """Open an appender that flushes on request."""
        config, folder = self.config(skip_lost=skip_lost), self.folder / data
        kafka = config.kafka
        assert kafka is not None
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            lake = Lake(
                KafkaSource(kafka),
                folder,
                config,
                clock=CLOCK,
                rand=random.SystemRandom(),
                auto_flush=False,
                fatal_errors=FATAL_ERRORS,
                flush_at_close=False,
                has_queries=False,
            )
            tables = KafkaTables(
                read_tables(kafka),
                KafkaChanges(kafka, {self.topic: "t"}),
                lake,
                RealDisk(folder),
                TablesConfig(),
                clock=CLOCK,
                rand=random.SystemRandom(),
            )
            stack.enter_context(closing(tables))
            lake.freeze_from(tables, is_fatal=True)
            stack.enter_context(lake.start())
            yield lake, tables

    def flush(self, data: str = "data", *, skip_lost: bool = False) -> list[Appended]:
        """Start an appender, have it fill the table, and stop it."""
        with self.opened(data, skip_lost=skip_lost) as (lake, _):
            return lake.flush()

    def rows(self) -> Rows:
        return with_pyiceberg(self.catalog.load_table("frazil.t"))

    def names(self) -> dict[int, str]:
        return {key: row["name"] for key, row in self.rows().items()}

    def remove_below(self, offset: int) -> None:
        """Delete records of the first partition, as retention does."""
        position = TopicPartition(self.topic, 0, offset)
        admin = self.broker.admin()
        admin.delete_records([position])[position].result(ASK_SECONDS_MAX)


@pytest.fixture
def world(broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    topic = str(request.node.name)
    broker.create_topic(topic, 2)
    catalog = open_catalog(lake_config(tmp_path), tmp_path)
    made = World(broker, tmp_path, topic, catalog)
    made.define()
    yield made
    catalog.close()


def test_tables_are_the_fold_of_what_was_committed(broker: KafkaBroker, tmp_path: Path) -> None:
    """After a kill under load, and without the local files; dead letters once."""
    for topic, partitions in PARTITIONS.items():
        broker.create_topic(topic, partitions)
    changes = Changes(broker, random.Random(4), "keyed")
    tables = ["--tables", str(write_tables(tmp_path / "definitions"))]
    for _ in range(5):
        changes.send()
    with closing(open_catalog(lake_config(tmp_path), tmp_path)) as catalog:
        with changing(changes), AppenderProcess(tmp_path / "a", broker, *tables) as appender:
            for _ in range(3):
                assert appender.line()["table"] in PARTITIONS
            assert appender.signal(signal.SIGKILL) == -signal.SIGKILL
        check(catalog, changes)
        shutil.rmtree(tmp_path / "a" / "tables")
        for topic, partitions in PARTITIONS.items():
            broker.wait_until_decided(topic, partitions)
        with AppenderProcess(tmp_path / "a", broker, *tables, "--once") as appender:
            assert appender.wait() == 0, appender.errors()
        assert "keyed table made from the lake" in appender.errors()
        assert changes.aborted_count
        check(catalog, changes, is_whole=True)


def test_what_the_lake_has_need_not_be_in_the_topic(world: World) -> None:
    """With and without the local files; the table goes on where it was."""
    for number in range(10):
        world.produce(number, {"name": f"n{number}"}, number % 2)
    assert [each.row_count for each in world.flush()] == [10]
    world.remove_below(5)
    world.produce(2, {"name": "kept"})
    assert [each.row_count for each in world.flush()] == [1]
    shutil.rmtree(world.folder / "data" / "tables")
    world.remove_below(6)
    world.produce(4, None)
    (done,) = world.flush()
    assert done.row_count == 0
    assert [(part.begin, part.end) for part in done.covered] == [(6, 7)]
    assert world.names() == {
        **{number: f"n{number}" for number in range(10) if number != 4},
        2: "kept",
    }
    assert world.flush() == []


def test_lost_offsets_stop_the_table(world: World) -> None:
    """Until an operator decides to go on without them."""
    world.produce(1, {"name": "a"})
    world.flush()
    world.produce(1, None)
    world.produce(2, {"name": "b"})
    world.remove_below(2)
    with pytest.raises(OutOfRange, match=r"removed offsets 1 up to 2 of .*not in table t: .*lost"):
        world.flush()
    assert world.names() == {1: "a"}
    world.flush(skip_lost=True)
    assert world.names() == {1: "a", 2: "b"}
    world.produce(2, None)
    world.flush()
    assert world.names() == {1: "a"}


@pytest.mark.parametrize("is_local", [True, False])
def test_a_topic_created_again_stops_the_table(
    broker: KafkaBroker, tmp_path: Path, request: pytest.FixtureRequest, is_local: bool
) -> None:
    topic = f"again-{is_local}"
    broker.create_topic(topic, 2)
    with closing(open_catalog(lake_config(tmp_path), tmp_path)) as catalog:
        world = World(broker, tmp_path, topic, catalog)
        world.define()
        world.produce(1, {"name": "a"})
        with world.opened() as (lake, _):
            lake.flush()
            broker.delete_topic(topic)
            broker.create_topic(topic, 2)
            for number in range(3):
                world.produce(number, {"name": "b"})
            with pytest.raises(OutOfRange, match="deleted and created again"):
                lake.flush()
        if not is_local:
            shutil.rmtree(tmp_path / "data" / "tables")
        with pytest.raises(OutOfRange, match="deleted and created again"):
            world.flush()
        assert world.names() == {1: "a"}


def test_a_topic_created_again_before_the_first_commit_is_the_topic(world: World) -> None:
    """The lake has the table, and no offset yet; files have rows of the topic that is gone."""
    with world.opened() as (lake, tables):
        assert lake.flush() == []
        world.produce(1, {"name": "a"})
        positions = dict.fromkeys(range(2), FrozenPosition())
        assert lake.run(lambda: tables.changes("t", positions, 1 << 20))
    world.broker.delete_topic(world.topic)
    world.broker.create_topic(world.topic, 2)
    for number in (2, 3):
        world.produce(number, {"name": "b"})
    world.flush()
    assert world.names() == {2: "b", 3: "b"}


def test_a_partition_that_is_added_stops_the_table(world: World) -> None:
    """Keys may have moved. A table that was dropped begins again."""
    world.produce(1, {"name": "a"})
    with world.opened() as (lake, _):
        lake.flush()
        admin = world.broker.admin()
        admin.create_partitions([NewPartitions(world.topic, 3)])[world.topic].result(
            ASK_SECONDS_MAX
        )
        world.produce(2, {"name": "b"}, 2)
        with pytest.raises(OutOfRange, match="has 3 partitions, and had 2"):
            lake.flush()
    with pytest.raises(OutOfRange, match="has 3 partitions, and had 2"):
        world.flush()
    assert world.names() == {1: "a"}
    world.catalog.drop_table("frazil.t")
    world.flush()
    assert world.names() == {1: "a", 2: "b"}


def test_a_key_in_two_partitions_stops_the_table(world: World) -> None:
    world.produce(1, {"name": "a"}, 0)
    world.flush()
    world.produce(1, {"name": "b"}, 1)
    with pytest.raises(Malformed, match=r"partitions 0 and 1 .* both have the key \{'id': 1\}"):
        world.flush()
    assert world.names() == {1: "a"}


def test_the_later_of_two_appenders_continues(world: World) -> None:
    """From the lake: folders are not shared. The earlier one has applied what it cannot commit."""
    world.produce(1, {"name": "a"})
    with world.opened("a") as (earlier, _):
        earlier.flush()
        with world.opened("b") as (later, _):
            world.produce(1, {"name": "b"})
            later.flush()
            world.produce(2, {"name": "c"})
            with pytest.raises(Fenced, match="was taken over by appender"):
                earlier.flush()
            later.flush()
    assert world.names() == {1: "b", 2: "c"}
    world.produce(1, None)
    world.flush("a")
    assert world.names() == {2: "c"}


def test_dead_letters_of_what_files_have_are_not_forgotten(world: World) -> None:
    """Records were applied and sealed, and a crash came before the commit; each is there once."""
    world.produce(1, {"name": "a"})
    world.produce(2, {"name": 7})
    with world.opened() as (lake, tables):
        definition = lake.run(lambda: tables.tables()[0])
        positions = dict.fromkeys(range(2), FrozenPosition())
        (changes,) = lake.run(lambda: tables.changes(definition.name, positions, 1 << 20))
        assert [record.offset for record, _ in changes.unfit] == [1]
    assert list((world.folder / "data" / "tables" / "t" / "0").glob("*.rows"))
    world.produce(3, b"{")
    (done,) = world.flush()
    assert (done.row_count, done.dead_count) == (1, 2)
    assert letters_of(world.catalog, world.topic) == [(0, 1, b'{"name": 7}'), (0, 2, b"{")]
    world.catalog.drop_table("frazil.t")
    world.flush()
    assert world.names() == {1: "a"}
    assert len(letters_of(world.catalog, world.topic)) == 2


def test_columns_are_added_and_widened(world: World) -> None:
    """With the local definition, and with that of the lake; other changes are refused."""
    world.define("id BIGINT, name TEXT, n INT")
    world.produce(1, {"name": "a", "n": 1})
    world.flush()
    world.define("id BIGINT, more TEXT, name TEXT, n BIGINT")
    world.produce(2, {"name": "b", "n": 2**40, "more": "x"})
    world.flush()
    shutil.rmtree(world.folder / "data" / "tables")
    world.define("id BIGINT, more TEXT, name TEXT, n BIGINT, last DATE")
    world.produce(3, {"last": "2026-01-31"})
    world.flush()
    rows = world.rows()
    assert (rows[1]["n"], rows[1]["more"], rows[2]["n"], rows[2]["more"]) == (1, None, 2**40, "x")
    assert str(rows[3]["last"]) == "2026-01-31"
    for columns, reason in (
        ("id BIGINT, name TEXT, n BIGINT", "it has a column last"),
        ("id TEXT, more TEXT, name TEXT, n BIGINT, last DATE", "column id is part of the key"),
        ("id BIGINT, more TEXT, name TEXT, n INT, last DATE", "cannot change from int64"),
        ("id BIGINT, more TEXT, name TEXT, n BIGINT, last DATE, z INT NOT NULL", "have no z"),
    ):
        world.define(columns)
        with pytest.raises(Malformed, match=reason):
            world.flush()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE VIEW v AS SELECT 1", "keep other definitions elsewhere"),
        ("CREATE TABLE t (id BIGINT PRIMARY KEY)", "keyed tables that topics feed"),
        ("CREATE TABLE logs (id BIGINT PRIMARY KEY) FROM TOPIC 'x' FORMAT UPSERT", "is a table"),
        (
            "CREATE TABLE t (id BIGINT PRIMARY KEY) FROM TOPIC 'otlp_logs' FORMAT UPSERT",
            "one table",
        ),
    ],
)
def test_other_definitions_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "t.sql").write_text(text, encoding="utf-8")
    with pytest.raises(Malformed, match=reason):
        read_tables(KafkaConfig(brokers="b:1", tables=str(tmp_path)))

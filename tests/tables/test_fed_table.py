"""Tables that a topic feeds: rows follow its records, across restarts; what does not fit stops them
with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest

from frazil.errors import Malformed, Rejected, Unavailable, Unknown
from frazil.load.formats.json_values import parse_document, rows_to_table
from frazil.log import Log, Record, append_of_records
from frazil.model import Rand
from frazil.settings import TopicConfig
from frazil.tables import KeyedTables, Operation, SeedRows, TableDefinition, new_definition
from frazil.tables.definition import TableFeed
from frazil.tables.topic_feed import FeedCodec
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk
from tests.tables.build import SMALL, open_log
from tests.tables.test_keyed_tables import rows

CODEC = FeedCodec(parse_document, rows_to_table)
COLUMNS = (("id", "int64"), ("name", "string"))


def definition(
    form: Literal["upsert", "debezium"] = "upsert", topic: str = "orders"
) -> TableDefinition:
    feed = TableFeed(topic=topic, format=form)
    return new_definition("t", COLUMNS, ["id"], rand=Rand(3), feed=feed)


def produce(log: Log, key: Any, value: Any, partition: int = 0, topic: str = "orders") -> None:
    record = Record(
        offset=0,
        timestamp_ms=1,
        key=None if key is None else json.dumps(key).encode(),
        value=None if value is None else json.dumps(value).encode(),
    )
    future = log.append(topic, append_of_records([record]), partition=partition)
    log.writer.step()
    future.result(0)


@contextmanager
def opened(disk: SimDisk) -> Iterator[tuple[Log, KeyedTables]]:
    with open_log(disk) as log:
        tables = KeyedTables(disk, log, SMALL, clock=SimClock(), codec=CODEC)
        yield log, tables
        tables.close()


def test_rows_follow_the_records_of_a_topic() -> None:
    """From the first record that the topic has, past records that do not fit, across a restart."""
    disk = SimDisk()
    with opened(disk) as (log, tables):
        log.create_topic("orders", TopicConfig())
        for number in range(200):
            produce(log, number % 50, {"name": f"{number}" * 20})
        log.delete_records("orders", 0, 40)
        tables.create(definition())
        produce(log, 3, {"name": 7})
        produce(log, 4, None)
        tables.catch_up()
        view = tables.view("t")
        assert view.live_count == 49
        assert view.get(3) == {"id": 3, "name": "153" * 20}
        assert view.get(4) is None
        assert tables.status("t").dead_changes == 1
        origin = tables.origins_at("t", 0, [view.offsets[0] - 1])[0]
        assert origin is not None and origin.by == "topic:orders"
        with pytest.raises(Rejected, match="fed by topic orders"):
            tables.write("t", Operation.UPSERT, rows(1))
    with opened(disk) as (log, tables):
        produce(log, 4, {"name": "back"})
        tables.catch_up()
        assert tables.view("t").live_count == 50
        assert tables.view("t").get(4) == {"id": 4, "name": "back"}
        tables.drop("t")
        assert log.has_topic("orders")


def test_a_truncate_deletes_what_was_there() -> None:
    disk = SimDisk()
    with opened(disk) as (log, tables):
        log.create_topic("orders", TopicConfig())
        tables.create(definition("debezium"))
        for number in range(3):
            produce(log, {"id": number}, {"op": "c", "after": {"id": number, "name": "a"}})
        produce(log, None, {"op": "t"})
        produce(log, {"id": 1}, {"op": "c", "after": {"id": 1, "name": "b"}})
        tables.catch_up()
        view = tables.view("t")
        assert [row for batch in view.batches() for row in batch.to_pylist()] == [
            {"id": 1, "name": "b"}
        ]
        assert view.as_of({0: 3}).live_count == 3


def test_a_key_in_two_partitions_stops_the_table() -> None:
    """Nobody could tell which of the rows is the later one."""
    disk = SimDisk()
    with opened(disk) as (log, tables):
        log.create_topic("orders", TopicConfig(partitions=2))
        tables.create(definition())
        produce(log, 1, {"name": "a"}, partition=0)
        produce(log, 2, {"name": "b"}, partition=1)
        tables.catch_up()
        view = tables.view("t")
        assert view.get(1) == {"id": 1, "name": "a"}
        assert view.get_many([2, 1, 5]).to_pylist() == [
            {"id": 2, "name": "b"},
            {"id": 1, "name": "a"},
        ]
        produce(log, 1, None, partition=0)
        produce(log, 1, {"name": "moved"}, partition=1)
        tables.catch_up()
        assert tables.view("t").get(1) == {"id": 1, "name": "moved"}
        produce(log, 2, {"name": "c"}, partition=0)
        tables.catch_up()
        with pytest.raises(Unavailable, match=r"both have the key \{'id': 2\}"):
            tables.view("t")


def test_a_topic_that_is_created_again_is_another_one() -> None:
    disk = SimDisk()
    with opened(disk) as (log, tables):
        for refused in ("otlp_logs", "__consumer_offsets"):
            with pytest.raises(Malformed, match="not written by clients"):
                tables.create(definition(topic=refused))
        with pytest.raises(Unknown, match="there is no topic"):
            tables.create(definition())
        log.create_topic("orders", TopicConfig())
        tables.create(definition())
        produce(log, 1, {"name": "a"})
        tables.catch_up()
        log.delete_topic("orders")
        log.create_topic("orders", TopicConfig())
        produce(log, 2, {"name": "b"})
        tables.catch_up()
        with pytest.raises(Unavailable, match="deleted and created again"):
            tables.view("t")


def test_rows_of_the_lake_seed_the_partitions_that_a_producer_has_chosen() -> None:
    """Where the topic no longer has the records, and the files are lost."""
    disk = SimDisk()
    with opened(disk) as (log, tables):
        log.create_topic("orders", TopicConfig(partitions=2))
        tables.create(definition())
        for number in range(20):
            produce(log, number, {"name": f"{number}"}, partition=number % 2)
        tables.catch_up()
        view = tables.view("t")
        seeds = [
            SeedRows(list(rows.rows_between(0, rows.row_count)), rows.end_offset, rows.row_count)
            for rows in view.partitions
        ]
        tables.close()
        for number in range(2):
            log.delete_records("orders", number, 5)
            folder = f"tables/t/{number}"
            for name in disk.list(folder):
                disk.unlink(f"{folder}/{name}")
        again = KeyedTables(
            disk, log, SMALL, clock=SimClock(), codec=CODEC, frozen=lambda _, n: seeds[n]
        )
        produce(log, 3, {"name": "new"}, partition=1)
        again.catch_up()
        view = again.view("t")
        assert view.live_count == 20
        assert view.get(3) == {"id": 3, "name": "new"}
        taken = [row for batch in view.take([(4,), (5,)]) for row in batch.to_pylist()]
        assert sorted(str(row["name"]) for row in taken) == ["4", "5"]
        again.close()

"""Random changes of keyed tables in topics of a real Kafka, and the dictionary that the tables must
equal: the fold of what was committed below the offsets of a table.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tests.lake.keyed.engines import Rows, with_pyiceberg
from tests.live.kafka.broker import ASK_SECONDS_MAX, KafkaBroker

PARTITIONS = {"orders": 3, "customers": 2}
"""Of the topics, each of which feeds a table of its name."""
STATEMENTS = """
CREATE TABLE orders (id BIGINT, state TEXT, paid INT, PRIMARY KEY (id))
FROM TOPIC 'orders' FORMAT UPSERT;
CREATE TABLE customers (id BIGINT, name TEXT NOT NULL, note TEXT, PRIMARY KEY (id))
FROM TOPIC 'customers' FORMAT DEBEZIUM;
"""
KEYS = 60
UNAVAILABLE = "__debezium_unavailable_value"

Row = dict[str, Any]
Change = tuple[int, Row | None, bool]
"""Key; the columns to set, None to delete; whether the other columns stay."""


@dataclass(frozen=True, slots=True)
class Made:
    """A record, and what it does: None if it does not fit."""

    key: bytes | None
    value: bytes | None
    changes: tuple[Change, ...] | None


def order(rand: random.Random) -> Made:
    """Return a record of the topic `orders`."""
    number = rand.randrange(KEYS)
    key = json.dumps({"id": number}).encode()
    kind = rand.random()
    if kind < 0.2:
        return Made(key, None, ((number, None, False),))
    if kind < 0.24:
        return Made(key, b'{"paid": "much"}', None)
    if kind < 0.26:
        return Made(key, b"{", None)
    row: Row = {"state": rand.choice(["new", "paid", "ä" * rand.randrange(40), None])}
    if kind < 0.8:
        row["paid"] = rand.choice([None, rand.randint(-(2**31), 2**31 - 1)])
    return Made(key, json.dumps(row).encode(), ((number, {"paid": None, **row}, False),))


def customer(rand: random.Random) -> Made:
    """Return a record of the topic `customers`."""
    number = rand.randrange(KEYS)
    key = json.dumps({"id": number}).encode()
    kind = rand.random()
    if kind < 0.15:
        event: Row = {"op": "d", "before": {"id": number}}
        return Made(key, json.dumps(event).encode(), ((number, None, False),))
    if kind < 0.25:
        return Made(key, None, ())
    if kind < 0.3:
        return Made(key, json.dumps({"op": "u", "after": {"id": number}}).encode(), None)
    row: Row = {"name": f"n{rand.randrange(1000)}", "note": rand.choice([None, "x" * 20])}
    sent = dict(row)
    is_partial = kind < 0.45
    if is_partial:
        sent["note"] = UNAVAILABLE
        del row["note"]
    event = {"op": rand.choice("cru"), "after": {"id": number, **sent}}
    return Made(key, json.dumps(event).encode(), ((number, row, is_partial),))


MAKERS = {"orders": order, "customers": customer}


@dataclass
class Changes:
    """Producers of changes, and what they have committed."""

    broker: KafkaBroker
    rand: random.Random
    name: str
    committed: dict[str, dict[tuple[int, int], Made]] = field(
        default_factory=lambda: {topic: {} for topic in PARTITIONS}
    )
    """By topic, then by partition and offset."""
    aborted_count: int = 0

    def __post_init__(self) -> None:
        common = {"bootstrap.servers": self.broker.address, "acks": "all", "log_level": 2}
        self._plain = Producer(common)
        self._transactional = Producer({**common, "transactional.id": self.name})
        self._transactional.init_transactions(ASK_SECONDS_MAX)

    def send(self) -> None:
        """Send some changes: in a transaction that is committed or aborted, or in none."""
        kind, count = self.rand.randrange(3), self.rand.randrange(1, 40)
        if kind == 0:
            self._take(self._sent(self._plain, count))
            return
        self._transactional.begin_transaction()
        sent = self._sent(self._transactional, count)
        if kind == 1:
            self._transactional.commit_transaction(ASK_SECONDS_MAX)
            self._take(sent)
        else:
            self._transactional.abort_transaction(ASK_SECONDS_MAX)
            self.aborted_count += len(sent)

    def _take(self, sent: dict[tuple[str, int, int], Made]) -> None:
        for (topic, partition, offset), made in sent.items():
            self.committed[topic][partition, offset] = made

    def _sent(self, producer: Producer, count: int) -> dict[tuple[str, int, int], Made]:
        sent: dict[tuple[str, int, int], Made] = {}

        def remember(made: Made, error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            sent[str(message.topic()), message.partition() or 0, message.offset() or 0] = made

        for _ in range(count):
            topic = self.rand.choice(list(PARTITIONS))
            made = MAKERS[topic](self.rand)
            producer.produce(topic, made.value, made.key, on_delivery=partial(remember, made))
        assert producer.flush(ASK_SECONDS_MAX) == 0
        return sent

    def rows(self, topic: str, offsets: dict[int, int]) -> Rows:
        """Return the fold of what was committed below offsets, by partition."""
        rows: Rows = {}
        for (partition, offset), made in sorted(self.committed[topic].items()):
            if offset < offsets.get(partition, 0):
                fold(rows, made.changes or ())
        return rows

    def unfit(self, topic: str, offsets: dict[int, int]) -> list[tuple[int, int, bytes]]:
        """Return partition, offset and value of the records that do not fit."""
        return [
            (partition, offset, made.value or b"")
            for (partition, offset), made in sorted(self.committed[topic].items())
            if made.changes is None and offset < offsets.get(partition, 0)
        ]


@contextmanager
def changing(changes: Changes) -> Iterator[None]:
    """Send changes in a thread during the block."""
    is_done = threading.Event()

    def produce() -> None:
        while not is_done.wait(0.02):
            changes.send()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def fold(rows: Rows, changes: Iterable[Change]) -> None:
    for key, row, is_partial in changes:
        if row is None:
            rows.pop(key, None)
        elif not is_partial:
            rows[key] = {"id": key, **row}
        elif key in rows:
            rows[key] = {**rows[key], **row}


def write_tables(folder: Path) -> Path:
    """Write the definitions. Returns their folder."""
    folder.mkdir(exist_ok=True)
    (folder / "tables.sql").write_text(STATEMENTS, encoding="utf-8")
    return folder


def offsets_of(table: Table, topic: str) -> dict[int, int]:
    """Return the next offset of each partition."""
    offsets = json.loads(table.properties.get("frazil.next-offsets", "{}")).get(topic, {})
    return {int(number): offset for number, offset in offsets.items()}


def check(catalog: Catalog, changes: Changes, *, is_whole: bool = False) -> dict[str, Rows]:
    """Check that each table is the fold of what was committed below its offsets, and that what does
    not fit is a dead letter, once. Returns the rows of the tables."""
    found: dict[str, Rows] = {}
    for topic in PARTITIONS:
        if not catalog.table_exists(f"frazil.{topic}"):
            assert not is_whole
            continue
        table = catalog.load_table(f"frazil.{topic}")
        offsets = offsets_of(table, topic)
        found[topic] = with_pyiceberg(table)
        assert found[topic] == changes.rows(topic, offsets), f"{topic} at {offsets}"
        letters = letters_of(catalog, topic)
        assert len(set(letters)) == len(letters), "a dead letter is there twice"
        expected = changes.unfit(topic, offsets)
        assert [each for each in letters if each[1] < offsets.get(each[0], 0)] == expected
        if is_whole:
            assert letters == expected
            last = dict(sorted(changes.committed[topic]))
            assert all(offsets[number] > offset for number, offset in last.items())
    return found


def letters_of(catalog: Catalog, topic: str) -> list[tuple[int, int, bytes]]:
    """Return partition, offset and payload of the dead letters of a topic, in order."""
    rows = catalog.load_table("frazil.dead_letters").scan().to_arrow().to_pylist()
    return sorted(
        (row["_log_partition"], row["_offset"], row["payload"])
        for row in rows
        if row["topic"] == topic
    )

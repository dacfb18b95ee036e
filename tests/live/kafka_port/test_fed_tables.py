"""A keyed table that a topic of the Kafka port feeds: producers that others wrote, transactions,
kill -9."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

import frazil
from tests.clients.node import Node
from tests.live.kafka_port.test_transactions import SETTINGS, WAIT_S, address_of, create, started
from tests.live.test_processes import eventually

ORDERS = "SELECT id, state FROM orders ORDER BY id"


def put(producer: Producer, key: int, state: str | None) -> None:
    value = None if state is None else json.dumps({"state": state, "note": [1]}).encode()
    producer.produce("orders", value, key=json.dumps({"id": key}).encode())


def rows(node: Node) -> list[Any]:
    with frazil.connect(node.url) as client:
        return list(client.sql(ORDERS).fetchall())


def test_a_table_follows_committed_records(tmp_path: Path) -> None:
    """Of three partitions, as the client spreads keys; aborted records leave no trace."""
    settings = tmp_path / "frazil.toml"
    settings.write_text(SETTINGS)
    with Node(tmp_path / "data", "--config", str(settings)) as node:
        create(node, "orders")
        producer = started(node, "orders")
        producer.begin_transaction()
        for key in range(50):
            put(producer, key, "new")
        producer.commit_transaction(WAIT_S)
        with frazil.connect(node.url) as client:
            client.execute(
                "CREATE TABLE orders (id BIGINT PRIMARY KEY, state TEXT) "
                "FROM TOPIC 'orders' FORMAT UPSERT"
            )
        eventually(lambda: rows(node) == [(key, "new") for key in range(50)])
        producer.begin_transaction()
        put(producer, 1, "aborted")
        put(producer, 2, None)
        producer.abort_transaction(WAIT_S)
        producer.begin_transaction()
        put(producer, 3, "paid")
        put(producer, 4, None)
        producer.commit_transaction(WAIT_S)
        expected = [(key, "paid" if key == 3 else "new") for key in range(50) if key != 4]
        eventually(lambda: rows(node) == expected)
        node.kill()
        node.start()
        eventually(lambda: rows(node) == expected)
        other = Producer({"bootstrap.servers": address_of(node), "log_level": 0})
        put(other, 4, "back")
        assert other.flush(WAIT_S) == 0
        eventually(lambda: (4, "back") in rows(node))
        with frazil.connect(node.url) as client:
            assert client.table("orders").get(3) == {"id": 3, "state": "paid"}

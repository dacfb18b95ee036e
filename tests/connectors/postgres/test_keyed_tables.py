"""Keyed tables that a source feeds are the tables of Postgres."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import frazil
from tests.connectors.postgres.harness import count_of, open_log, running
from tests.connectors.postgres.server import PostgresServer

TABLE = """
CREATE SCHEMA shop; CREATE TYPE shop.state AS ENUM ('new', 'paid');
CREATE TABLE shop.orders (region text, id int, state shop.state, paid numeric(10,2), rate numeric,
  placed timestamptz, day date, seen timestamp, note text, raw bytea, tags text[], ok bool,
  weight float8, PRIMARY KEY (region, id));
ALTER TABLE shop.orders ALTER note SET STORAGE EXTERNAL;
INSERT INTO shop.orders SELECT 'eu', i, 'new', i / 7.0, i / 3.0, '2026-01-31 10:20:30.5+02',
  '2026-01-31', '2026-01-31 10:20:30', repeat(md5(i::text), 100), '\\x00ff', '{a}', i % 2 = 0,
  i / 8.0 FROM generate_series(1, 20) i;
"""
CHANGES = """
UPDATE shop.orders SET state = 'paid' WHERE id < 10; DELETE FROM shop.orders WHERE id = 3;
UPDATE shop.orders SET id = 100 WHERE id = 4; UPDATE shop.orders SET paid = NULL WHERE id = 5;
INSERT INTO shop.orders (region, id) VALUES ('us', 1);
"""
COLUMNS = "region, id, state, paid, rate, placed, day, seen, note, raw, ok, weight"


def test_a_table_of_each_type(server: PostgresServer, tmp_path: Path) -> None:
    """The printed statement creates a table with the key and the types of the one in Postgres, and
    the rows are equal: with large values that did not change, keys that did, deletes."""
    with server.connect() as db:
        db.execute(TABLE)
        log = open_log(tmp_path)
        with running(
            log, server.connection, topic="pg.{table}", tables="shop.*", slot="keyed"
        ) as run:
            run.run_until(lambda: count_of(log, "pg.orders") == 20)
            db.execute(CHANGES)
            run.run_until(lambda: count_of(log, "pg.orders") == 20 + 9 + 2 + 3 + 1 + 1)
        log.close()
        command = [sys.executable, "-m", "frazil.connectors.postgres.keyed_tables", "pg"]
        command += [f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"]
        command += ["--tables", "shop.*", "--topic", "pg.{table}", "--publication", "keyed"]
        statement = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        expected = db.execute(f"SELECT {COLUMNS} FROM shop.orders ORDER BY region, id").fetchall()
        db.execute("SELECT pg_drop_replication_slot('keyed')")
    with frazil.open(tmp_path) as node:
        node.execute(statement.strip().removesuffix(";"))
        rows = node.sql(f"SELECT {COLUMNS} FROM orders ORDER BY region, id").fetchall()
    assert len(rows) == 20
    for row, other in zip(rows, expected, strict=True):
        wanted = [
            str(v) if name == "rate" and v is not None else v
            for name, v in zip(COLUMNS.split(", "), other, strict=True)
        ]
        assert list(row) == wanted

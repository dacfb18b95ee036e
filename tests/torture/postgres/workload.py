"""Writers with random transactions. A trigger notes every change in `audit`, in the same
transaction."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random
from typing import Any

import psycopg

from tests.connectors.postgres.server import PostgresServer

AUDIT = """
CREATE SCHEMA hidden;
CREATE TABLE hidden.audit (id bigserial PRIMARY KEY, tab text, op text, old jsonb, new jsonb);
CREATE FUNCTION hidden.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  INSERT INTO hidden.audit (tab, op, old, new) VALUES (TG_TABLE_NAME, TG_OP,
    CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN to_jsonb(OLD) END,
    CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN to_jsonb(NEW) END);
  RETURN NULL;
END $$;
"""
AUDITED = """
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {0}
  FOR EACH ROW EXECUTE FUNCTION hidden.note();
CREATE TRIGGER note_truncate AFTER TRUNCATE ON {0} EXECUTE FUNCTION hidden.note();
"""
TABLES = {
    "plain": "CREATE TABLE plain (id int PRIMARY KEY, ver bigint, big text, n numeric)",
    "whole": "CREATE TABLE whole (id int, part text, ver bigint, big text, n numeric, "
    "PRIMARY KEY (id, part)); ALTER TABLE whole REPLICA IDENTITY FULL",
    "indexed": "CREATE TABLE indexed (serial bigserial PRIMARY KEY, id int NOT NULL, ver bigint, "
    "big text, n numeric); CREATE UNIQUE INDEX by_id ON indexed (id); "
    "ALTER TABLE indexed REPLICA IDENTITY USING INDEX by_id",
}
EXTERNAL = "ALTER TABLE {0} ALTER big SET STORAGE EXTERNAL"
"""Large values are kept beside their row, even if they could be compressed."""
LATE = "CREATE TABLE {0} (id int PRIMARY KEY, ver bigint, big text, n numeric)"
IDS = 40
BIG_BYTES = 6000
LARGE_ROWS = 400
LATE_MAX = 4


class Workload:
    """Threads that write until told to stop."""

    def __init__(
        self, server: PostgresServer, seed: int, *, writers: int = 4, creates_tables: bool = True
    ) -> None:
        self.done: Counter[str] = Counter()
        self._server = server
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._version = seed * 1_000_000
        self._late = 0
        self._late_max = LATE_MAX if creates_tables else 0
        self._columns = 0
        self._threads = [
            threading.Thread(target=self._write, args=(Random(f"{seed}/{i}"), i == 0), daemon=True)
            for i in range(writers)
        ]

    def prepare(self) -> None:
        with self._server.connect() as connection:
            connection.execute(AUDIT)
            for name, statement in TABLES.items():
                connection.execute(statement)
                connection.execute(AUDITED.format(name) + EXTERNAL.format(name))
            connection.execute(
                "INSERT INTO plain SELECT i, 0, 'before', i FROM generate_series(1000, 1100) i"
            )

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def tables(self) -> list[str]:
        return [*TABLES, *(f"late_{number}" for number in range(self._late))]

    def _write(self, rand: Random, changes_schema: bool) -> None:
        connection: psycopg.Connection[Any] | None = None
        while not self._stop.is_set():
            try:
                if connection is None or connection.closed:
                    connection = self._server.connect()
                    connection.execute("SET lock_timeout = '3s'; SET deadlock_timeout = '200ms'")
                if changes_schema and rand.random() < 0.05:
                    self._change_schema(connection, rand)
                else:
                    self._transaction(connection, rand)
            except psycopg.Rollback:  # the connection broke meanwhile
                self._count("disconnected")
            except psycopg.Error as error:
                self._count("failed" if error.sqlstate else "disconnected")
                if connection is not None and not error.sqlstate:
                    connection.close()
                    connection = None
                    time.sleep(0.05)
        if connection is not None:
            connection.close()

    def _count(self, what: str) -> None:
        with self._lock:
            self.done[what] += 1

    def _next(self) -> int:
        with self._lock:
            self._version += 1
            return self._version

    def _transaction(self, connection: psycopg.Connection[Any], rand: Random) -> None:
        with connection.transaction():
            is_large = rand.random() < 0.02
            for _ in range(rand.choice((1, 1, 2, 5, 20))):
                if rand.random() < 0.1:  # rolled back within the transaction
                    connection.execute("SAVEPOINT s")
                    self._change(connection, rand)
                    connection.execute("ROLLBACK TO SAVEPOINT s")
                    self._count("savepoint")
                else:
                    self._change(connection, rand)
            if is_large:
                self._large(connection, rand)
            if rand.random() < 0.1:
                time.sleep(rand.uniform(0, 0.3))
            if rand.random() < 0.1:
                raise psycopg.Rollback
        self._count("transactions")

    def _change(self, connection: psycopg.Connection[Any], rand: Random) -> None:
        table, key = rand.choice(self.tables()), rand.randrange(IDS)
        big = "".join(rand.choices("abcdefgh\\\t\n'\"é", k=8)) * (BIG_BYTES // 8)
        if rand.random() < 0.5:
            big = big[: rand.randrange(20)]
        values = {
            "id": key,
            "ver": self._next(),
            "big": big,
            "n": rand.choice(("NaN", "1.50", None, "1e20")),
        }
        kind = rand.random()
        if kind < 0.4:
            part = ", part" if table == "whole" else ""
            text = ", 'p'" if table == "whole" else ""
            connection.execute(
                f"INSERT INTO {table} (id, ver, big, n{part}) VALUES (%(id)s, %(ver)s, %(big)s, "
                f"%(n)s{text}) ON CONFLICT DO NOTHING",
                values,
            )
        elif kind < 0.6:
            connection.execute(
                f"UPDATE {table} SET ver = %(ver)s, big = %(big)s, n = %(n)s WHERE id = %(id)s",
                values,
            )
        elif kind < 0.75:  # the large value does not change
            connection.execute(f"UPDATE {table} SET ver = %(ver)s WHERE id = %(id)s", values)
        elif kind < 0.85:
            connection.execute(f"DELETE FROM {table} WHERE id = %(id)s", values)
        elif kind < 0.99:
            values["other"] = rand.randrange(IDS)
            connection.execute(
                f"UPDATE {table} SET id = %(other)s, ver = %(ver)s WHERE id = %(id)s "
                f"AND NOT EXISTS (SELECT FROM {table} WHERE id = %(other)s)",
                values,
            )
            self._count("key_changes")
        else:
            connection.execute(f"TRUNCATE {table}")
            self._count("truncates")

    def _large(self, connection: psycopg.Connection[Any], rand: Random) -> None:
        """Many rows, of which some events do not fit into one batch."""
        connection.execute(
            "INSERT INTO plain SELECT i, %s, repeat(md5(i::text), 200), i "
            "FROM generate_series(10000, %s) i ON CONFLICT (id) DO UPDATE SET ver = excluded.ver",
            (self._next(), 10000 + rand.randrange(LARGE_ROWS)),
        )
        if rand.random() < 0.5:
            connection.execute("DELETE FROM plain WHERE id >= 10000")
        self._count("large")

    def _change_schema(self, connection: psycopg.Connection[Any], rand: Random) -> None:
        """Add, widen or drop a column, or create a table. A change follows in the transaction, so
        that a column which goes and one that comes are never seen at once."""
        kind = rand.choice(("add", "drop", "widen", "table"))
        if kind == "table":
            if self._late >= self._late_max:
                return
            with connection.transaction():
                name = f"late_{self._late}"
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(LATE.format(name))
                connection.execute(AUDITED.format(name) + EXTERNAL.format(name))
            self._late += 1
            self._count("new_tables")
            return
        table = rand.choice(list(TABLES))
        with connection.transaction():
            if kind == "add":
                self._columns += 1
                connection.execute(f"ALTER TABLE {table} ADD COLUMN extra_{self._columns} int")
                connection.execute(f"UPDATE {table} SET extra_{self._columns} = {self._columns}")
            elif kind == "drop":
                found = connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND NOT "
                    "attisdropped AND attname LIKE 'extra%%' LIMIT 1",
                    (table,),
                ).fetchone()
                if found is not None:
                    connection.execute(f"ALTER TABLE {table} DROP COLUMN {found[0]}")
            else:
                connection.execute(f"ALTER TABLE {table} ALTER COLUMN id TYPE bigint")
            connection.execute(f"DELETE FROM {table} WHERE id = -1")
            part = ", part" if table == "whole" else ""
            text = ", 'p'" if table == "whole" else ""
            connection.execute(
                f"INSERT INTO {table} (id, ver{part}) VALUES (-1, {self._next()}{text})"
            )
        self._count(kind)

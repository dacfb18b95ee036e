"""The source against a real server: what is told, and when it stops rather than guess."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frazil.connectors.postgres import source as source_module
from frazil.connectors.postgres.options import PostgresOptions
from frazil.errors import Rejected
from frazil.log import Log
from tests.connectors.postgres.harness import (
    SourceRun,
    count_of,
    events_of,
    fold,
    open_log,
    records_of,
    running,
)
from tests.connectors.postgres.server import PostgresServer
from tests.connectors.supervised import supervised, until

BIG = "repeat(md5(random()::text), 300)"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_log(tmp_path)
    yield log
    log.close()


@pytest.fixture
def db(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection to an empty database; slots are dropped at the end."""
    connection = server.connect()
    connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    yield connection
    for name, _ in connection.execute(
        "SELECT slot_name, active_pid FROM pg_replication_slots"
    ).fetchall():
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
            "WHERE slot_name = %s",
            (name,),
        )
        _retry(lambda name=name: connection.execute("SELECT pg_drop_replication_slot(%s)", (name,)))
    connection.execute("DROP PUBLICATION IF EXISTS frazil_pg")
    connection.close()


def _retry(action: Any) -> None:
    for _ in range(100):
        try:
            action()
        except psycopg.errors.ObjectInUse:
            time.sleep(0.05)
        else:
            return


def has_records(log: Log, topic: str, count: int) -> bool:
    return count_of(log, topic) >= count


def until_told(run: SourceRun, log: Log, topic: str, count: int) -> list[dict[str, Any]]:
    run.run_until(lambda: count_of(log, topic) >= count and len(events_of(log, topic)) >= count)
    events = events_of(log, topic)
    assert len(events) == count, events
    return events


def test_rows_then_changes(server: PostgresServer, db: psycopg.Connection[Any], log: Log) -> None:
    """First the rows, then each change once, in order, over a restart; deletes leave tombstones."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    with running(log, server.connection) as run:
        until_told(run, log, "public.t", 2)
        db.execute("UPDATE t SET v = 'uno' WHERE id = 1")
        until_told(run, log, "public.t", 3)
    db.execute("DELETE FROM t WHERE id = 2; UPDATE t SET id = 3 WHERE id = 1; TRUNCATE t")
    with running(log, server.connection, epoch=2) as run:
        events = until_told(run, log, "public.t", 7)
    assert [(event["op"], event["key"], event["after"]) for event in events] == [
        ("r", {"id": 1}, {"id": 1, "v": "one"}),
        ("r", {"id": 2}, {"id": 2, "v": "two"}),
        ("u", {"id": 1}, {"id": 1, "v": "uno"}),
        ("d", {"id": 2}, None),
        ("d", {"id": 1}, None),
        ("c", {"id": 3}, {"id": 3, "v": "uno"}),
        ("t", None, None),
    ]
    deleted = [r.key for r in records_of(log, "public.t") if r.value is None]
    assert deleted == [b'{"id":2}', b'{"id":1}']
    source = events[2]["source"]
    assert (source["schema"], source["table"], source["snapshot"]) == ("public", "t", "false")
    assert fold(events) == {}


def test_large_values_that_do_not_change(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log
) -> None:
    """They are named, not null; under a full identity, or a new key, they are told."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int, big text)")
    db.execute("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    db.execute(f"INSERT INTO t VALUES (1, 1, {BIG})")
    with running(log, server.connection) as run:
        (first,) = until_told(run, log, "public.t", 1)
        db.execute("UPDATE t SET n = 2; UPDATE t SET id = 5")
        db.execute("ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET n = 3")
        events = until_told(run, log, "public.t", 5)
    big = first["after"]["big"]
    assert len(big) == 9600
    assert events[1]["unchanged"] == ["big"]
    assert events[1]["after"]["big"] == "__debezium_unavailable_value"
    assert [event["after"] and event["after"]["big"] == big for event in events[2:]] == [
        None,
        True,
        True,
    ]
    assert events[4]["before"] == {"id": 5, "n": 2, "big": big}


def test_a_transaction_larger_than_a_batch(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is split, and goes on after a crash in its middle where the topic ends; changes of another
    table come with it."""
    monkeypatch.setattr(source_module, "BATCH_BYTES", 20_000)
    db.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    with running(log, server.connection) as run:
        run.run_until(lambda: log.has_topic("public.u"))
        db.execute(
            "BEGIN; INSERT INTO t SELECT generate_series(1, 3000); INSERT INTO u VALUES (1); "
            "INSERT INTO t SELECT generate_series(3001, 6000); COMMIT"
        )
        run.run_until(lambda: run.records > 100)
        assert run.records < 6001
    for epoch in (2, 3):
        with running(log, server.connection, epoch=epoch) as run:
            events = until_told(run, log, "public.t", 6001)
            assert len(until_told(run, log, "public.u", 2)) == 2
    assert [event["key"]["id"] for event in events[1:]] == list(range(1, 6001))


def test_a_copy_that_was_interrupted(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins anew: rows that are gone meanwhile are gone, and none is there twice."""
    monkeypatch.setattr(source_module, "BATCH_BYTES", 20_000)
    db.execute(
        "CREATE TABLE t AS SELECT generate_series(1, 5000) AS id; "
        "ALTER TABLE t ADD PRIMARY KEY (id)"
    )
    with running(log, server.connection) as run:
        run.run_until(lambda: run.records > 100)
        assert run.records < 5000
    db.execute("DELETE FROM t WHERE id < 50")
    with running(log, server.connection, epoch=2) as run:
        begin = count_of(log, "public.t")
        run.run_until(lambda: count_of(log, "public.t") == begin + 1 + 4951)
        db.execute("INSERT INTO t VALUES (1)")
        run.run_until(lambda: count_of(log, "public.t") == begin + 1 + 4952)
    assert fold(events_of(log, "public.t")).keys() == {
        f'{{"id": {n}}}' for n in (1, *range(50, 5001))
    }


def test_new_and_changed_tables(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table, and one that takes the place of another, are copied; columns come and go; what
    may be a rename stops the source, also over a restart, until it is told what it is."""
    monkeypatch.setattr(source_module, "DISCOVER_S", 0.1)
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    with running(log, server.connection) as run:
        until_told(run, log, "public.t", 1)
        db.execute("CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)")
        assert until_told(run, log, "public.u", 1)[0]["op"] == "r"
        db.execute(
            "INSERT INTO u VALUES (2); DROP TABLE u; CREATE TABLE u (id int PRIMARY KEY, x int)"
        )
        db.execute("INSERT INTO u VALUES (3, 3)")
        run.run_until(lambda: list(fold(events_of(log, "public.u"))) == ['{"id": 3}'])
        assert [e["op"] for e in events_of(log, "public.u")] == ["r", "c", "t", "r"]
        db.execute("ALTER TABLE t ADD w int; INSERT INTO t VALUES (1, 'a', 1)")
        db.execute(
            "ALTER TABLE t DROP w; ALTER TABLE t ALTER id TYPE bigint; "
            "INSERT INTO t VALUES (2, 'b')"
        )
        events = until_told(run, log, "public.t", 3)
    assert [event["after"] for event in events[1:]] == [
        {"id": 1, "v": "a", "w": 1},
        {"id": 2, "v": "b"},
    ]
    db.execute("ALTER TABLE t RENAME v TO y; INSERT INTO t VALUES (3, 'c')")
    stops = pytest.raises(Rejected, match=r"public.t has lost 1 column.*new y.*RENAME='add'")
    with running(log, server.connection, epoch=2) as run, stops:
        run.run_until(lambda: False)
    with running(log, server.connection, epoch=3, rename="add") as run:
        assert until_told(run, log, "public.t", 4)[3]["after"] == {"id": 3, "y": "c"}


def test_a_gap_stops_the_source(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log
) -> None:
    """Changes that the server has forgotten, or a slot that is gone, are told of; another slot
    begins anew."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    with running(log, server.connection) as run:
        until_told(run, log, "public.t", 1)
    db.execute("INSERT INTO t VALUES (2)")
    _retry(
        lambda: db.execute("SELECT pg_replication_slot_advance('frazil_pg', pg_current_wal_lsn())")
    )
    with pytest.raises(Rejected, match="those between are missing"):
        SourceRun(log, server.connection, PostgresOptions(), epoch=2)
    _retry(lambda: db.execute("SELECT pg_drop_replication_slot('frazil_pg')"))
    with pytest.raises(Rejected, match="slot frazil_pg is gone"):
        SourceRun(log, server.connection, PostgresOptions(), epoch=3)
    with running(log, server.connection, epoch=4, slot="other", publication="frazil_pg") as run:
        events = until_told(run, log, "public.t", 4)
    assert [event["op"] for event in events] == ["r", "t", "r", "r"]


def test_the_log_of_an_idle_database_does_not_grow(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tables write, ours rest: the server may forget all the same, and no gap is seen."""
    monkeypatch.setattr(source_module, "PROGRESS_S", 0.2)
    monkeypatch.setattr(source_module, "ASK_S", 0.1)
    db.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE SCHEMA IF NOT EXISTS other")
    db.execute("DROP TABLE IF EXISTS other.x; CREATE TABLE other.x (v text)")
    confirmed = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
    with running(log, server.connection) as run:
        until_told(run, log, "public.t", 1)
        db.execute("INSERT INTO other.x SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
        (written,) = db.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
        run.run_until(lambda: (db.execute(confirmed, (written,)).fetchone() or (False,))[0])
    assert {event["op"] for event in events_of(log, "frazil.pg.progress")} == {"m"}
    db.execute("INSERT INTO t VALUES (1)")
    with running(log, server.connection, epoch=2) as run:
        until_told(run, log, "public.t", 2)


def test_what_a_server_lacks_is_said(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log
) -> None:
    """Refused with what to do: no tables, a table of two, a publication that leaves things out."""
    with pytest.raises(Rejected, match="no table matches TABLES"):
        SourceRun(log, server.connection, PostgresOptions())
    db.execute('CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE "a b" (id int PRIMARY KEY)')
    db.execute("CREATE TABLE a_b (id int PRIMARY KEY)")
    with pytest.raises(Rejected, match="would both go to topic"):
        SourceRun(log, server.connection, PostgresOptions())
    db.execute("ALTER PUBLICATION frazil_pg SET (publish = 'insert')")
    with pytest.raises(Rejected, match="does not publish all of insert, update"):
        SourceRun(log, server.connection, PostgresOptions())


def test_in_a_process_of_its_own(
    server: PostgresServer, db: psycopg.Connection[Any], log: Log, tmp_path: Path
) -> None:
    """Under the supervisor of connectors: killed and started again, each change is there once; what
    must be decided by somebody is the reason why it stopped."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (0)")
    with supervised(
        log, tmp_path, "postgres", {}, name="pg", topic="pg.{table}", connection=server.connection
    ) as source:
        for number in range(1, 4):
            until(partial(has_records, log, "pg.t", number), source.status)
            pid = source.status().pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            db.execute("INSERT INTO t VALUES (%s)", (number,))
        until(lambda: count_of(log, "pg.t") >= 4, source.status)
        db.execute("ALTER TABLE t RENAME v TO y; INSERT INTO t VALUES (4)")
        until(lambda: source.status().word == "failed", source.status)
        assert "that may be a rename" in str(source.status())
    assert [event["key"]["id"] for event in events_of(log, "pg.t")] == [0, 1, 2, 3]

"""Statements of keyed tables: what they change, what they refuse, and what happens in a race."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.definitions import UpdateRows
from frazil.errors import Conflict, FrazilError, Malformed, Rejected, TooLarge, Unknown
from frazil.model import Rand
from frazil.query import table_statements
from frazil.tables import KeyedTables, Operation
from tests.query.build import log, piece_of
from tests.query.keyed import KeyedNode, keyed_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedNode]:
    logs = [log(at, service_name="web" if at % 2 else "cart") for at in range(10)]
    with keyed_node(tmp_path_factory.mktemp("data"), {"logs": [piece_of("logs", logs)]}) as opened:
        yield opened


@pytest.fixture
def orders(node: KeyedNode) -> Iterator[KeyedNode]:
    node.execute(
        "CREATE TABLE orders (id BIGINT, name TEXT NOT NULL, n INT, PRIMARY KEY (id)) PARTITIONS 3"
    )
    yield node
    node.execute("DROP TABLE orders")


def rows(node: KeyedNode) -> list[tuple[Any, ...]]:
    return node.sql("SELECT id, name, n FROM orders ORDER BY id")


def test_rows_are_inserted_replaced_changed_and_deleted(orders: KeyedNode) -> None:
    execute = orders.execute
    (done,) = execute("INSERT INTO orders VALUES (1, 'a', 10), (2, 'b', NULL), (3, 'it''s', -5)")
    assert (done["status"], done["rows"]) == ("inserted 3 rows", 3)
    assert rows(orders) == [(1, "a", 10), (2, "b", None), (3, "it's", -5)]
    with pytest.raises(Conflict, match="has a row with the key id = 3; write UPSERT"):
        execute("INSERT INTO orders (id, name) VALUES (4, 'd'), (3, 'c')")
    assert len(rows(orders)) == 3
    execute("UPSERT INTO orders (name, id) VALUES ('c', 3), ('d', 2 + 2)")
    assert rows(orders)[2:] == [(3, "c", None), (4, "d", None)]
    (done,) = execute("UPDATE orders SET n = coalesce(n, 0) + id, name = upper(name) WHERE id <> 2")
    assert done["rows"] == 3
    assert rows(orders) == [(1, "A", 11), (2, "b", None), (3, "C", 3), (4, "D", 4)]
    execute("UPDATE orders SET n = (SELECT count(*) FROM logs) WHERE name IN ('b')")
    assert rows(orders)[1] == (2, "b", 10)
    assert execute("UPDATE orders SET n = 1 WHERE id = 99")[0]["rows"] == 0
    execute("INSERT INTO orders SELECT id + 100, name, n FROM orders WHERE id < 3")
    execute("INSERT INTO orders (id, name) SELECT _offset + 1000, service_name FROM logs LIMIT 3")
    assert execute("DELETE FROM orders WHERE id > 50")[0]["rows"] == 5
    assert [row[0] for row in rows(orders)] == [1, 2, 3, 4]
    assert execute("DELETE FROM orders")[0]["rows"] == 4
    assert rows(orders) == []


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        ("INSERT INTO orders VALUES ('007', 'a', 1)", Malformed, "a text is not converted"),
        ("INSERT INTO orders VALUES (1.0, 'a', 1)", Malformed, "id is int64"),
        ("INSERT INTO orders VALUES (1, 2, 1)", Malformed, "name is string"),
        ("INSERT INTO orders VALUES (1, 'a', 3000000000)", Malformed, "does not fit"),
        ("INSERT INTO orders VALUES (9223372036854775808, 'a', 1)", Malformed, "does not fit"),
        ("INSERT INTO orders VALUES (1, 'a', 2147483647 + 1)", Malformed, "does not fit column n"),
        ("INSERT INTO orders VALUES (1, 'a', true)", Malformed, "n is int32"),
        ("INSERT INTO orders VALUES (8, 'a', 1), (9, NULL, 1)", Malformed, "name is NOT NULL"),
        ("INSERT INTO orders VALUES (NULL, 'a', 1)", Malformed, "part of the key"),
        ("INSERT INTO orders (name) VALUES ('a')", Malformed, "part of the key"),
        ("INSERT INTO orders VALUES (1, 'a')", Malformed, "2 values, and 3 columns"),
        ("INSERT INTO orders VALUES (1, 'a', 1), (1, 'b', 1)", Malformed, "key id = 1"),
        ("UPSERT INTO orders SELECT 1, body, 2 FROM logs", Malformed, "key id = 1"),
        ("INSERT INTO orders SELECT 1, 2, 3", Malformed, "not converted; write CAST"),
        ("INSERT INTO orders SELECT trace_id, body, 1 FROM logs", Malformed, "not converted"),
        ("INSERT INTO orders SELECT 1", Malformed, "1 columns, and 3 are written"),
        ("INSERT INTO orders (id, nam) VALUES (1, 'a')", Unknown, "no column nam; it has id, name"),
        ("INSERT INTO nowhere VALUES (1)", Unknown, "no keyed table nowhere"),
        ("INSERT INTO logs VALUES (1)", Unknown, "no keyed table logs"),
        ("INSERT INTO orders VALUES ((SELECT body FROM logs), 'a', 1)", Malformed, ""),
        ("UPDATE orders SET id = 7", Malformed, "part of the key, which never changes"),
        ("UPDATE orders SET n = 'x'", Malformed, "n is int32"),
        ("UPDATE orders SET n = n / 2.0 WHERE id = 1", Malformed, "not converted"),
        ("UPDATE orders SET name = NULL WHERE id = 2", Malformed, "NOT NULL"),
        ("INSERT INTO orders (id) VALUES (8)", Malformed, "name is NOT NULL"),
        ("UPDATE orders SET nope = 1", Unknown, "no column nope"),
        ("UPDATE orders SET n = missing", Unknown, "no column missing"),
        ("UPDATE orders SET n = 1 WHERE id = 1; DELETE FROM orders", Malformed, "one at a time"),
        ("UPDATE orders SET n = 1) FROM logs --", Malformed, "the end of the statement"),
        ("DELETE FROM orders WHERE id = 1 RETURNING *", Rejected, ""),
        ("DELETE FROM orders USING logs", Malformed, "the end of the statement"),
        ("DELETE FROM logs", Unknown, "no keyed table logs"),
        ("ALTER TABLE orders ADD COLUMN N TEXT", Conflict, "has a column"),
        ("ALTER TABLE orders ALTER COLUMN n TYPE SMALLINT", Malformed, "cannot change"),
        ("ALTER TABLE orders ALTER COLUMN id TYPE BIGINT", Malformed, "part of the key"),
        ("CREATE TABLE orders (a INT, PRIMARY KEY (a))", Conflict, "orders exists"),
        ("CREATE TABLE IF NOT EXISTS orders (a INT, PRIMARY KEY (a))", Conflict, "another one"),
        ("CREATE TABLE logs (a INT, PRIMARY KEY (a))", Conflict, "name of a table"),
        ("CREATE TABLE topic_x (a INT, PRIMARY KEY (a))", Conflict, "reserved"),
        ("CREATE TABLE x (a DOUBLE, PRIMARY KEY (a))", Malformed, "cannot be part of a key"),
        ("CREATE TABLE x (a INT)", Malformed, "no PRIMARY KEY"),
        ("CREATE VIEW orders AS SELECT 1 AS a", Conflict, "name of a table"),
        ("DROP TABLE nowhere", Unknown, "no table nowhere"),
    ],
)
def test_nothing_changes_in_silence(
    orders: KeyedNode, text: str, error: type[FrazilError], why: str
) -> None:
    """Refused means not written."""
    orders.execute("INSERT INTO orders VALUES (1, 'a', 10), (2, 'b', 20)")
    before = rows(orders), orders.tables.view("orders").offsets
    with pytest.raises(error) as caught:
        orders.execute(text)
    assert why in str(caught.value)
    assert (rows(orders), orders.tables.view("orders").offsets) == before


def test_every_type(node: KeyedNode) -> None:
    """Constants are taken exactly as they are written; queries give them back."""
    node.execute(
        "CREATE TABLE typed (k TINYINT, u BIGINT UNSIGNED, f FLOAT, d DOUBLE PRECISION, "
        "c DECIMAL(38, 10), b BOOLEAN, day DATE, t TIMESTAMP, z TIMESTAMP WITH TIME ZONE, "
        "s VARCHAR, x BINARY, PRIMARY KEY (k))"
    )
    node.execute(
        "INSERT INTO typed VALUES (-128, 18446744073709551615, 16777216, 0.1, "
        "1234567890123456789012345678.0123456789, TRUE, DATE '2026-02-03', "
        "TIMESTAMP '2026-02-03 04:05:06.000007', TIMESTAMP '2026-02-03T04:05:06+02:00', "
        "'ö''\n', X'00ff')"
    )
    assert node.sql("SELECT * FROM typed") == [
        (
            *(-128, 18446744073709551615, 16777216.0, 0.1),
            Decimal("1234567890123456789012345678.0123456789"),
            *(True, date(2026, 2, 3), datetime(2026, 2, 3, 4, 5, 6, 7, UTC).replace(tzinfo=None)),
            datetime(2026, 2, 3, 2, 5, 6, tzinfo=UTC),
            *("ö'\n", b"\x00\xff", 0),
        )
    ]
    node.execute("INSERT INTO typed (k, c, d, z) SELECT k + 1, c, f, z FROM typed")
    node.execute("UPDATE typed SET c = 0.5, z = now(), t = TIMESTAMP '2026-01-01' WHERE k = -127")
    assert node.sql("SELECT c, d, z > t FROM typed WHERE k = -127") == [
        (Decimal("0.5000000000"), 16777216.0, True)
    ]
    for text in (
        "UPDATE typed SET f = 16777217",
        "UPDATE typed SET c = 0.00000000001",
        "UPDATE typed SET f = d",
        "UPDATE typed SET t = z",
        "UPDATE typed SET day = '2026-02-03'",
        "UPDATE typed SET day = t",
        "UPDATE typed SET t = TIMESTAMP '2026-02-03T04:05:06Z'",
        "UPDATE typed SET s = x",
        "UPDATE typed SET u = -1",
        "UPDATE typed SET u = k",
    ):
        with pytest.raises(Malformed):
            node.execute(text)
    node.execute("DROP TABLE typed")


def test_a_table_changes_its_columns(orders: KeyedNode) -> None:
    orders.execute("INSERT INTO orders VALUES (1, 'a', 10)")
    orders.execute("ALTER TABLE orders ADD COLUMN note TEXT")
    orders.execute("ALTER TABLE orders ALTER COLUMN n TYPE BIGINT")
    orders.execute("UPDATE orders SET n = n + 5000000000, note = 'big'")
    assert orders.sql("SELECT n, note FROM orders") == [(5_000_000_010, "big")]
    (shown,) = (row for row in orders.execute("SHOW KEYED TABLES") if row["name"] == "orders")
    assert shown["definition"] == (
        "CREATE TABLE orders (id BIGINT, name VARCHAR NOT NULL, n BIGINT, note VARCHAR, "
        "PRIMARY KEY (id)) PARTITIONS 3"
    )
    assert shown["rows"] == 1 and shown["written"] == shown["indexed"]
    again = shown["definition"].replace("TABLE", "TABLE IF NOT EXISTS", 1)
    assert orders.execute(again) == [{"status": "table orders exists"}]
    assert orders.execute("DROP TABLE IF EXISTS nowhere") == [
        {"status": "there is no table nowhere"}
    ]


def test_limits_are_named(orders: KeyedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_statements, "ROWS_MAX", 2)
    orders.execute("INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 1)")
    orders.execute("INSERT INTO orders VALUES (3, 'a', 1)")
    for text in (
        "DELETE FROM orders",
        "UPDATE orders SET n = 5",
        "UPSERT INTO orders VALUES (1, 'a', 1), (2, 'a', 1), (3, 'a', 1)",
    ):
        with pytest.raises(TooLarge, match="2 rows"):
            orders.execute(text)
    assert orders.sql("SELECT count(*), sum(n) FROM orders") == [(3, 3)]


def test_the_audit_has_no_copy_of_the_rows(orders: KeyedNode) -> None:
    values = ", ".join(f"({i}, 'secret of {i}', {i})" for i in range(100, 160))
    orders.execute(f"INSERT INTO orders VALUES {values}")
    with pytest.raises(Conflict):
        orders.execute(f"INSERT INTO orders VALUES {values}")
    found = orders.sql(
        "SELECT head, statement, outcome FROM statement_audit WHERE head LIKE 'INSERT%' "
        "ORDER BY id DESC LIMIT 2"
    )
    assert [outcome for _, _, outcome in found] == ["conflict", "ok"]
    for _, statement, _ in found:
        assert statement.startswith("INSERT INTO orders VALUES (100,")
        assert statement.endswith("… (60 rows)") and "159" not in statement


class Racing:
    """Tables to which another one writes just before a statement appends."""

    def __init__(self, tables: KeyedTables, times: int) -> None:
        self._tables = tables
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def write(
        self,
        name: str,
        operation: Operation,
        rows: pa.Table,
        *,
        expects: Any = None,
        by: str | None = None,
    ) -> dict[int, int]:
        if self.times:
            self.times -= 1
            one = pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([100], pa.int32())})
            self._tables.write(name, Operation.UPDATE, one)
        return self._tables.write(name, operation, rows, expects=expects)


def test_a_statement_that_lost_a_race_is_evaluated_again(
    orders: KeyedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No increment is lost, and none is applied twice, in whatever partition the other wrote."""
    orders.execute("INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
    statements = table_statements.TableStatements(
        orders.engine,
        Racing(orders.tables, 2),
        Rand(1),
    )
    monkeypatch.setitem(orders.statements._handlers, UpdateRows, statements.update)
    orders.execute("UPDATE orders SET n = n + 1")
    assert rows(orders) == [(1, "a", 101), (2, "b", 3), (3, "c", 4), (4, "d", 5)]
    statements._tables.times = 10**6  # type: ignore[attr-defined]
    with pytest.raises(Conflict, match=f"{table_statements.TRIES_MAX} times"):
        orders.execute("UPDATE orders SET n = n + 1 WHERE id = 1")
    assert rows(orders)[0] == (1, "a", 100)


def test_increments_at_the_same_time_all_count(orders: KeyedNode) -> None:
    orders.execute("INSERT INTO orders VALUES (1, 'a', 0)")
    done: list[int] = []

    def increment() -> None:
        for _ in range(5):
            try:
                orders.execute("UPDATE orders SET n = n + 1 WHERE id = 1")
            except Conflict:
                continue
            done.append(1)

    threads = [threading.Thread(target=increment) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done and rows(orders) == [(1, "a", len(done))]


VALUES = st.none() | st.integers(-(2**31), 2**31 - 1)
KEYS = st.integers(0, 9)


@st.composite
def statements(draw: st.DrawFn) -> tuple[str, int, int | None]:
    return (
        draw(st.sampled_from(["insert", "upsert", "update", "delete"])),
        draw(KEYS),
        draw(VALUES),
    )


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=st.lists(statements(), min_size=1, max_size=10))
def test_statements_equal_a_dictionary(
    node: KeyedNode, some: list[tuple[str, int, int | None]]
) -> None:
    name = f"m{len(node.tables.names())}"
    node.execute(f"CREATE TABLE {name} (k INT, v INT, PRIMARY KEY (k)) PARTITIONS 2")
    model: dict[int, int | None] = {}
    for what, key, value in some:
        written = "NULL" if value is None else value
        if what in ("insert", "upsert"):
            try:
                node.execute(f"{what} INTO {name} VALUES ({key}, {written})")
                assert what == "upsert" or key not in model
                model[key] = value
            except Conflict:
                assert what == "insert" and key in model
        elif what == "update":
            node.execute(f"UPDATE {name} SET v = {written} WHERE k >= {key}")
            model = {k: value if k >= key else v for k, v in model.items()}
        else:
            node.execute(f"DELETE FROM {name} WHERE v IS NULL OR k = {key}")
            model = {k: v for k, v in model.items() if v is not None and k != key}
        assert dict(node.sql(f"SELECT k, v FROM {name}")) == model


def test_tables_are_there_after_a_start(tmp_path: Path) -> None:
    with keyed_node(tmp_path) as node:
        node.execute("CREATE TABLE t (a TEXT, b INT, PRIMARY KEY (a))")
        node.execute("INSERT INTO t VALUES ('x', 1), ('y', 2)")
        node.execute("DELETE FROM t WHERE a = 'x'")
    with keyed_node(tmp_path) as node:
        assert node.sql("SELECT * FROM t") == [("y", 2, 0)]
        node.execute("UPDATE t SET b = b * 2")
        assert node.sql("SELECT a, b FROM t") == [("y", 4)]

"""SQL over keyed tables equals a dictionary's fold of their changes, as of every offset."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.errors import Conflict, Malformed, OutOfRange, Unavailable, Unknown
from frazil.model import Rand
from frazil.query.run.references import SegmentRef
from frazil.query.run.row_segment_cache import FileGone, RowSegmentCache
from frazil.query.scan.keyed_tables import keyed_schema, refuse_bare_names
from frazil.tables import Operation, TableDefinition, new_definition
from tests.query.build import log, piece_of
from tests.query.keyed import KeyedNode, keyed_node
from tests.tables.build import Model, Row

KEYS = st.integers(0, 30)
NAMES = st.sampled_from(["", "a", "b", "ö", "it's"])
Change = tuple[Operation, list[Row]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedNode]:
    logs = [log(at, severity_number=at % 20, body=f"user {at % 7}") for at in range(50)]
    with keyed_node(tmp_path_factory.mktemp("data"), {"logs": [piece_of("logs", logs)]}) as opened:
        yield opened


def new_table(
    node: KeyedNode, columns: list[tuple[str, str]], key: list[str], partitions: int = 1
) -> TableDefinition:
    """Create a table that no other test has."""
    number = len(node.tables.names())
    definition = new_definition(
        f"t{number}", columns, key, rand=Rand(number), partitions=partitions
    )
    node.tables.create(definition)
    return definition


@st.composite
def changes(draw: st.DrawFn) -> list[Change | str]:
    drawn: list[Change | str] = []
    for _ in range(draw(st.integers(1, 12))):
        what = draw(st.sampled_from([*Operation, Operation.UPSERT, "seal"]))
        if not isinstance(what, Operation):
            drawn.append(what)
            continue
        row: dict[str, st.SearchStrategy[object]] = {"id": KEYS}
        if what is not Operation.DELETE:
            row["amount"] = st.none() | st.integers(-5, 5)
        if what is Operation.UPSERT:
            row["name"] = st.none() | NAMES
        rows = draw(st.lists(st.fixed_dictionaries(row), min_size=1, max_size=12))
        drawn.append((what, rows))
    return drawn


def as_tuples(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["id"], row["name"], row["amount"]) for row in rows]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=changes(), wanted=st.lists(KEYS, max_size=4))
def test_rows_equal_the_fold(
    node: KeyedNode, changes: list[Change | str], wanted: list[int]
) -> None:
    columns = [("id", "int64"), ("name", "string"), ("amount", "int32")]
    definition = new_table(node, columns, ["id"])
    table, model = definition.name, Model(definition)
    for change in changes:
        if isinstance(change, str):
            node.tables._find(table).usable().folds[0].seal()
            continue
        node.write(table, *change)
        model.apply(*change)
    now = as_tuples(model.sorted_rows())
    assert node.sql(f"SELECT id, name, amount FROM {table} ORDER BY id") == now
    assert node.sql(f"SELECT count(*), sum(amount) FROM {table}") == [
        (len(now), sum(row[2] for row in now if row[2] is not None) if _any(now) else None)
    ]
    # No column is read.
    assert node.sql(f"SELECT 1 FROM {table}") == [(1,)] * len(now)
    assert node.sql(f"SELECT count(*) FROM {table}, {table} AS o") == [(len(now) ** 2,)]
    for offset in range(len(model.past)):
        at = f"{table} FOR SYSTEM_VERSION AS OF OFFSET {offset}"
        then = as_tuples(model.sorted_rows(offset))
        assert [row[:3] for row in node.sql(f"SELECT * FROM {at} ORDER BY id")] == then
        assert node.sql(f"SELECT count(*) FROM {at}") == [(len(then),)]
    keys = ", ".join(map(str, [*wanted, 99]))
    assert node.sql(f"SELECT id, name, amount FROM {table} WHERE id IN ({keys}) ORDER BY id") == [
        row for row in now if row[0] in wanted
    ]
    for begin in (0, len(model.past) // 2):
        rows = dict(model.past[begin])
        found = node.sql(
            f"SELECT _change, _offset, id, name, amount FROM changes('{table}', {begin})"
        )
        assert all(begin <= row[1] for row in found)
        for kind, _, *row in found:
            if kind == "delete":
                del rows[(row[0],)]
            else:
                rows[(row[0],)] = dict(zip(("id", "name", "amount"), row, strict=True))
        assert rows == model.rows


def _any(rows: list[tuple[Any, ...]]) -> bool:
    return any(row[2] is not None for row in rows)


def test_columns_that_came_later_are_null_and_wider(node: KeyedNode) -> None:
    """Segments keep the columns they were written with; queries see those of now."""
    definition = new_table(node, [("id", "int64"), ("n", "int8")], ["id"])
    table = definition.name
    node.write(table, Operation.UPSERT, [{"id": i, "n": i % 100} for i in range(600)])
    node.tables._find(table).usable().folds[0].seal()
    node.write(table, Operation.DELETE, [{"id": 1}])
    altered = definition.widen_column("n", "int32")
    node.tables.alter(altered)
    node.tables.alter(altered.add_column("note", "string"))
    node.write(table, Operation.UPDATE, [{"id": 2, "n": 70_000, "note": "x"}])
    assert node.sql(f"SELECT * FROM {table} WHERE id < 4 ORDER BY id") == [
        (0, 0, None, 0),
        (2, 70_000, "x", 2),
        (3, 3, None, 0),
    ]
    assert node.sql(f"SELECT count(*), count(note), max(n) FROM {table}") == [(599, 1, 70_000)]
    # A moment from before the change has the columns of now.
    assert node.sql(
        f"SELECT n, note FROM {table} FOR SYSTEM_VERSION AS OF OFFSET 1 t WHERE t.id = 2"
    ) == [(2, None)]


def test_times_and_offsets_of_several_partitions(node: KeyedNode) -> None:
    table = new_table(node, [("id", "string"), ("n", "int64")], ["id"], partitions=3).name
    token = node.write(table, Operation.UPSERT, [{"id": f"k{i}", "n": 1} for i in range(50)])
    time.sleep(0.01)
    then = datetime.now(UTC)
    time.sleep(0.01)
    node.write(table, Operation.UPSERT, [{"id": f"k{i}", "n": 2} for i in range(10, 60)])
    node.write(table, Operation.DELETE, [{"id": "k0"}])
    at = f"TIMESTAMP '{then.isoformat()}'"
    assert node.sql(f"SELECT count(*), sum(n) FROM {table}") == [(59, 109)]
    assert node.sql(f"SELECT count(*), sum(n) FROM {table} FOR SYSTEM_TIME AS OF {at}") == [
        (50, 50)
    ]
    offsets = "'{" + ", ".join(f'"{p}": {offset}' for p, offset in token.items()) + "}'"
    as_of = f"FOR SYSTEM_VERSION AS OF OFFSET {offsets}"
    assert node.sql(f"SELECT count(*), sum(n) FROM {table} {as_of} AS old") == [(50, 50)]
    counted = f"SELECT _change, count(*) FROM changes('{table}', {at}) GROUP BY 1 ORDER BY 1"
    assert node.sql(counted) == [("delete", 1), ("insert", 10), ("update", 40)]
    assert node.sql(f"SELECT count(*) FROM changes('{table}', {offsets}, {at}) AS c") == [(0,)]
    # Now and then in one query.
    assert node.sql(
        f"SELECT count(*) FROM {table} JOIN {table} FOR SYSTEM_TIME AS OF {at} o USING (id) "
        f"WHERE {table}.n <> o.n"
    ) == [(40,)]
    later = '\'{"0": 99, "1": 99, "2": 99}\''
    for text, error in (
        (f"SELECT 1 FROM {table} FOR SYSTEM_VERSION AS OF OFFSET 3", Malformed),
        (f"SELECT * FROM {table} FOR SYSTEM_VERSION AS OF OFFSET {later}", OutOfRange),
        (f"SELECT * FROM {table} FOR SYSTEM_VERSION AS OF 42", Unavailable),
        ("SELECT * FROM changes('logs', 0)", Unknown),
        (f"SELECT * FROM changes('{table}')", Malformed),
        ("SELECT count(*) FROM logs FOR SYSTEM_VERSION AS OF OFFSET 1", Malformed),
    ):
        with pytest.raises(error):
            node.sql(text)


def test_what_is_read_is_explained(node: KeyedNode) -> None:
    """Segments without the key or the offset are skipped; whole keys are looked up."""
    table = new_table(node, [("id", "int64"), ("s", "string")], ["id"]).name
    for begin in range(0, 300, 100):
        rows = [{"id": i, "s": f"s{i}"} for i in range(begin, begin + 100)]
        node.write(table, Operation.UPSERT, rows)
        node.tables._find(table).usable().folds[0].seal()

    def explained(text: str) -> str:
        return str(dict(node.sql(f"EXPLAIN {text}"))["pieces"])

    assert "reads 3 of 3 row segments, 300 of 300" in explained(f"SELECT s FROM {table}")
    assert "reads 1 of 3 row segments" in explained(f"SELECT s FROM {table} WHERE id >= 250")
    assert "reads 1 of 3 row segments" in explained(f"SELECT s FROM {table} WHERE _offset = 1")
    found = explained(f"SELECT s FROM {table} WHERE id = 7 AND s <> 'x'")
    assert "reads 0 of 3 row segments, 1 of 300 rows" in found and "OFFSET 3" in found
    assert node.sql(f"SELECT s FROM {table} WHERE id = 7 OR id = 8 ORDER BY 1") == [
        ("s7",),
        ("s8",),
    ]
    assert node.sql(f"SELECT s FROM {table} WHERE id = 7 AND id = 8") == []


def test_names(node: KeyedNode) -> None:
    """Keyed tables are listed, suggested and protected like others."""
    node.tables.create(new_definition("customers", [("id", "int64")], ["id"], rand=Rand(3)))
    assert ("customers",) in node.sql("SELECT table_name FROM information_schema.tables")
    assert any(row[2] == "customers" for row in node.sql("SHOW TABLES"))
    with pytest.raises(Unknown, match="did you mean customers"):
        node.sql("SELECT * FROM custmers")
    with pytest.raises(Unknown, match="no column idd in customers"):
        node.sql("SELECT idd FROM customers")
    with pytest.raises(Conflict):
        node.engine.check_view("customers", "SELECT 1 AS a")
    with pytest.raises(Conflict, match="keyed or external table"):
        node.engine.check_loaded_name("customers")
    node.execute("CREATE VIEW many AS SELECT id + 1 AS more FROM customers")
    node.write("customers", Operation.UPSERT, [{"id": 1}, {"id": 2}])
    assert node.sql("SELECT sum(more) FROM many WHERE more > 2") == [(3,)]
    with pytest.raises(Unknown, match="nor changes"):
        node.execute("CREATE VIEW v AS SELECT * FROM changes('customers', 0)")


def test_a_segment_file_that_is_gone_is_copied(node: KeyedNode, tmp_path: Path) -> None:
    """A pinned view outlives its files: what is mapped here goes to the worker by memory."""
    table = new_table(node, [("id", "int64"), ("n", "int32")], ["id"]).name
    node.write(table, Operation.UPSERT, [{"id": i, "n": i} for i in range(50)])
    node.tables._find(table).usable().folds[0].seal()
    node.write(table, Operation.DELETE, [{"id": 4}])
    view = node.tables.view(table)
    location = view.partitions[0].parts[0].segment.location
    assert location is not None
    before = node.sql(f"SELECT count(*), sum(n) FROM {table}")
    path = Path(location.path)
    moved = path.rename(tmp_path / path.name)
    result = node.engine.sql(f"SELECT count(*), sum(n) FROM {table}", keyed_views={table: view})
    assert result.fetchall() == before == [(49, 1221)]
    moved.rename(path)
    # A file that took the name later has another check.
    schema = keyed_schema(view.definition)
    ref = SegmentRef(location.path, location.check, 50, 0, None)
    assert RowSegmentCache().part(ref, schema).row_count == 50
    other = msgspec.structs.replace(ref, check=location.check ^ 1)
    with pytest.raises(FileGone):
        RowSegmentCache().part(other, schema)


JOINS = [
    "SELECT count(*), sum(amount), min(name), max(day) FROM orders",
    "SELECT name, count(*) AS n, sum(amount) FROM orders GROUP BY name ORDER BY n DESC, name",
    "SELECT city, sum(amount) FROM orders o JOIN users u ON o.user_id = u.id GROUP BY 1 ORDER BY 1",
    "SELECT u.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id IS NULL ORDER BY 1",
    "SELECT id FROM orders WHERE user_id IN (SELECT id FROM users WHERE city = 'Oslo') ORDER BY 1",
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = user_id) ORDER BY 1",
    "SELECT count(*) FROM logs l JOIN users u ON l.body = concat('user ', u.id)",
    "SELECT u.city, count(*) FROM logs l JOIN users u ON l.body = concat('user ', u.id) "
    "WHERE l.severity_number >= 9 GROUP BY 1 ORDER BY 1",
    "SELECT id, sum(amount) OVER (PARTITION BY user_id ORDER BY id) FROM orders ORDER BY id",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON a.id = b.id + 1 ORDER BY 1 LIMIT 5",
    "SELECT name FROM orders WHERE amount > (SELECT avg(amount) FROM orders) ORDER BY id LIMIT 7",
    "SELECT city FROM users UNION SELECT name FROM orders ORDER BY 1",
    "SELECT day, count(*) FILTER (WHERE amount > 50) FROM orders WHERE day >= DATE '2026-01-05' "
    "GROUP BY day ORDER BY day",
]


def test_joins_equal_duckdb(node: KeyedNode) -> None:
    """The same rows, in the same queries, in DuckDB."""
    rand = Rand(4)
    columns = [("id", "int64"), ("user_id", "int32"), ("name", "string")]
    columns += [("amount", "decimal(10,2)"), ("day", "date")]
    orders = new_definition("orders", columns, ["id"], rand=rand, partitions=2)
    users = new_definition("users", [("id", "int32"), ("city", "string")], ["id"], rand=rand)
    node.tables.create(orders)
    node.tables.create(users)
    rows = {}
    for _ in range(4):
        some = [
            {
                "id": rand.randrange(200),
                "user_id": rand.randrange(12),
                "name": rand.choice(["tea", "milk", "öl"]),
                "amount": rand.randrange(10_000),
                "day": rand.randrange(20_454, 20_470),
            }
            for _ in range(80)
        ]
        last = {row["id"]: row for row in some}
        node.write("orders", Operation.UPSERT, list(last.values()))
        rows.update(last)
        gone = [rand.randrange(200) for _ in range(10)]
        node.write("orders", Operation.DELETE, [{"id": key} for key in gone])
        for key in gone:
            rows.pop(key, None)
        node.tables._find("orders").usable().folds[0].seal()
    people = [{"id": i, "city": rand.choice(["Oslo", "Bonn", None])} for i in range(9)]
    node.write("users", Operation.UPSERT, people)
    with duckdb.connect() as other:
        other.register("orders", pa.Table.from_pylist(list(rows.values()), orders.schema))
        other.register("users", pa.Table.from_pylist(people, users.schema))
        other.register("logs", node.engine.sql("SELECT body, severity_number FROM logs").arrow())
        for text in JOINS:
            assert node.sql(text) == other.execute(text).fetchall(), text


def test_a_dropped_table_is_unknown(node: KeyedNode) -> None:
    table = new_table(node, [("id", "int64")], ["id"]).name
    node.write(table, Operation.UPSERT, [{"id": 1}])
    assert node.sql(f"SELECT id FROM {table}") == [(1,)]
    node.tables.drop(table)
    with pytest.raises(Unknown, match=re.escape(f"no table {table}")):
        node.sql(f"SELECT id FROM {table}")


def test_spark_has_no_rows_of_now() -> None:
    """The bare name is refused on Spark; the Iceberg table, and columns of that name, are not."""
    for text in ("SELECT * FROM frazil.frazil.t JOIN logs ON true", "SELECT t, 't' FROM logs"):
        refuse_bare_names(text, ["t"], "frazil.frazil")
    with pytest.raises(Malformed, match=r"write frazil\.frazil\.t, or leave out"):
        refuse_bare_names("SELECT 1 FROM logs JOIN t ON true", ["t"], "frazil.frazil")

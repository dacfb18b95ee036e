"""What BI tools ask about the server and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from pyarrow import flight

from tests.serve.flight.commands import fetch, field
from tests.serve.flight.opened import connected, flight_node

KEYED = (
    "CREATE TABLE stock (shop TEXT NOT NULL, item TEXT NOT NULL, n INT, PRIMARY KEY (shop, item))"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with flight_node(tmp_path_factory.mktemp("flight") / "data") as (there, port):
        there.embedded.execute(KEYED)
        there.embedded.execute(
            "CREATE VIEW errors AS SELECT * FROM logs WHERE severity_number > 16"
        )
        there.embedded.execute("CREATE VIEW broken AS SELECT item FROM stock")
        there.embedded.execute("DROP TABLE stock")
        there.embedded.execute(KEYED.replace("item", "thing"))
        yield port


@pytest.fixture
def client(port: int) -> Iterator[Any]:
    with flight.connect(f"grpc://127.0.0.1:{port}") as client:
        yield client


@pytest.fixture
def connection(port: int) -> Iterator[adbc.Connection]:
    with connected(port) as connection:
        yield connection


def _tables(client: Any, *fields: bytes) -> dict[str, str]:
    found = fetch(client, "CommandGetTables", b"".join(fields)).to_pylist()
    return {row["table_name"]: row["table_type"] for row in found}


def test_tables_are_found_by_pattern_and_type(client: Any) -> None:
    """Patterns are those of LIKE; a catalog that is not ours has no tables."""
    everything = _tables(client)
    assert everything["logs"] == everything["stock"] == "TABLE"
    assert everything["errors"] == everything["gauges"] == "VIEW"
    assert _tables(client, field(3, "st_c%")) == {"stock": "TABLE"}
    assert _tables(client, field(3, r"st\_c%")) == {}
    assert set(_tables(client, field(4, "VIEW"))) == {
        name for name, kind in everything.items() if kind == "VIEW"
    }
    assert _tables(client, field(1, "datafusion"), field(2, "pub%")) == everything
    assert _tables(client, field(1, "elsewhere")) == {}


def test_columns_are_those_of_queries(connection: adbc.Connection) -> None:
    """Schemas of all tables, as ADBC reads them; a view that cannot be read has no columns."""
    with connection.cursor() as cursor:
        for name in ("logs", "stock", "errors", "spans", "sums"):
            cursor.execute(f"SELECT * FROM {name} LIMIT 0")
            wanted = cursor.fetch_arrow_table().schema
            assert connection.adbc_get_table_schema(name).equals(wanted)
    (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    (schema,) = catalog["catalog_db_schemas"]
    tables = {each["table_name"]: each for each in schema["db_schema_tables"]}
    columns = [column["column_name"] for column in tables["stock"]["table_columns"]]
    assert columns[:3] == ["shop", "thing", "n"]
    assert tables["broken"]["table_columns"] == []


def test_names_that_tools_write_out_are_understood(connection: adbc.Connection) -> None:
    """Tools put catalog and schema before a table's name, in quotes."""
    with connection.cursor() as cursor:
        cursor.execute('SELECT count(*) FROM "datafusion"."public"."logs" AS "l"')
        assert cursor.fetchall() == [(0,)]


def test_keys_are_those_of_keyed_tables(client: Any) -> None:
    """In the order of the key. Other tables have none, and there are no foreign keys."""
    found = fetch(client, "CommandGetPrimaryKeys", field(3, "stock")).to_pylist()
    assert [(row["column_name"], row["key_sequence"]) for row in found] == [
        *(("shop", 1), ("thing", 2)),
    ]
    assert fetch(client, "CommandGetPrimaryKeys", field(3, "logs")).num_rows == 0
    for name in ("Imported", "Exported"):
        assert fetch(client, f"CommandGet{name}Keys", field(3, "stock")).num_rows == 0


def test_the_server_describes_itself(client: Any, connection: adbc.Connection) -> None:
    """A dense union, whole or by number; the types of columns by number, too."""
    everything = fetch(client, "CommandGetSqlInfo")
    everything.validate(full=True)
    assert pa.types.is_union(everything.schema.field("value").type)
    assert not any(field.nullable for field in everything.schema.field("value").type)
    values = {row["info_name"]: row["value"] for row in everything.to_pylist()}
    assert (values[0], values[4], values[504]) == ("Frazil", True, '"')
    # Field 1, packed: 504 and 8.
    some = fetch(client, "CommandGetSqlInfo", field(1, bytes([0xF8, 0x03, 0x08]))).to_pylist()
    assert [row["info_name"] for row in some] == [504, 8]
    assert connection.adbc_get_info()["vendor_name"] == "Frazil"
    types = fetch(client, "CommandGetXdbcTypeInfo").to_pylist()
    assert {"BIGINT", "VARCHAR", "TIMESTAMP"} <= {row["type_name"] for row in types}
    assert [row["data_type"] for row in types] == sorted(row["data_type"] for row in types)
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]

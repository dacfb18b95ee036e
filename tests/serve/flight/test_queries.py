"""Rows, types, parameters, statements, limits and cancellation."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from pyarrow import flight

from frazil.model import SystemClock
from tests.serve.flight.commands import act, command, descriptor, fetch, field
from tests.serve.flight.opened import connected, flight_node
from tests.serve.served import Served, fill

COUNT = 5000
ENDLESS = "SELECT count(*) FROM logs a, logs b, logs c WHERE a._offset + b._row < c._row"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, int]]:
    folder = tmp_path_factory.mktemp("flight") / "data"
    query = {"rows_max": 100_000, "concurrency_max": 2, "queue_timeout_ms": 100}
    with flight_node(folder, query=query) as opened:
        fill(opened[0], COUNT)
        yield opened


@pytest.fixture
def cursor(node: tuple[Served, int]) -> Iterator[adbc.Cursor]:
    with connected(node[1]) as connection, connection.cursor() as cursor:
        yield cursor


@pytest.fixture
def client(node: tuple[Served, int]) -> Iterator[Any]:
    with flight.connect(f"grpc://127.0.0.1:{node[1]}") as client:
        yield client


def rows(cursor: adbc.Cursor, text: str, values: Any = None) -> list[tuple[Any, ...]]:
    cursor.execute(text, values)
    return list(cursor.fetchall())


def test_rows_are_those_of_the_engine(node: tuple[Served, int], cursor: adbc.Cursor) -> None:
    """All columns of a table arrive as the engine has them: maps, times, nested values."""
    text = "SELECT * FROM logs ORDER BY _offset, _row"
    cursor.execute(text)
    found = cursor.fetch_arrow_table()
    assert found.equals(node[0].embedded.sql(text).arrow())
    assert found.num_rows == COUNT


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (7, pa.int64()),
        (-(2**63), pa.int64()),
        (2.5, pa.float64()),
        (True, pa.bool_()),
        ("it's ? $1", pa.string()),
        (b"\x00\xff", pa.binary()),
        (Decimal("12.50"), pa.decimal128(4, 2)),
        (datetime.date(2026, 11, 19), pa.date32()),
    ],
)
def test_a_value_goes_there_and_back(cursor: adbc.Cursor, value: Any, kind: pa.DataType) -> None:
    """A bound value comes back as it was, and nulls are nulls."""
    batch = pa.record_batch([pa.array([value], kind)], names=["0"])
    cursor.execute("SELECT ? AS a, NULL AS b", batch)
    found = cursor.fetch_arrow_table()
    assert found.to_pylist() == [{"a": value, "b": None}]


def test_parameters_have_the_types_of_their_columns(client: Any) -> None:
    """`parameter_schema` says what to bind; a parameter without a type is a text."""
    text = (
        "SELECT body FROM logs WHERE severity_number > ? AND time >= ? AND service_name IN (?) "
        "AND _offset + 1 < ? ORDER BY concat(body, ?) LIMIT ?"
    )
    (result,) = act(
        client,
        "CreatePreparedStatement",
        command("ActionCreatePreparedStatementRequest", field(1, text)),
    )
    schema = _parameter_schema(result)
    assert [str(kind) for kind in schema.types] == [
        *("int32", "timestamp[ms, tz=UTC]", "string", "int64", "string", "int64"),
    ]
    assert schema.names == ["$1", "$2", "$3", "$4", "$5", "$6"]


def _parameter_schema(result: bytes) -> pa.Schema:
    """The third field of the message, found by the marker of an Arrow message."""
    marker = b"\xff\xff\xff\xff"
    return pa.ipc.read_schema(pa.py_buffer(result[result.rindex(marker) :]))


def test_parameters_choose_rows(cursor: adbc.Cursor) -> None:
    """`?`, `$1` and rows of several values: the query runs once for each."""
    text = "SELECT _offset FROM logs WHERE _offset = ? AND _row >= ? ORDER BY _row LIMIT 1"
    assert rows(cursor, text, [2, 0]) == [(2,)]
    numbered = text.replace("?", "$2", 1).replace("?", "$1")
    assert rows(cursor, numbered, [0, 1]) == [(1,)]
    ((newest, count),) = rows(cursor, "SELECT max(time), count(*) FROM logs")
    assert rows(cursor, "SELECT count(*) FROM logs WHERE time <= ?", [newest]) == [(count,)]
    assert rows(cursor, "SELECT count(*) FROM logs WHERE time > $1", [newest]) == [(0,)]
    many = pa.record_batch({"a": [0, 3, 1], "b": [0, 0, 0]})
    cursor.execute(text, many)
    assert cursor.fetchall() == [(0,), (3,), (1,)]


def test_statements_change_tables(node: tuple[Served, int], cursor: adbc.Cursor) -> None:
    """Definitions and changes work as queries and as updates, with values bound; each runs
    once, and says how many rows it has changed."""
    cursor.execute("CREATE TABLE orders (id BIGINT NOT NULL, item TEXT, PRIMARY KEY (id))")
    cursor.adbc_prepare("INSERT INTO orders VALUES (?, ?)")
    cursor.executemany("INSERT INTO orders VALUES (?, ?)", [(1, "tea"), (2, "it's")])
    assert cursor.rowcount == 2
    assert rows(cursor, "SELECT id, item FROM orders ORDER BY id") == [(1, "tea"), (2, "it's")]
    ((status, count, *_),) = rows(cursor, "DELETE FROM orders WHERE id = 1")
    assert (status, count) == ("deleted 1 rows", 1)
    ((who,),) = rows(cursor, "SELECT DISTINCT who FROM statement_audit")
    assert who == "anyone on this machine"


def test_a_ticket_of_a_statement_is_good_once(client: Any) -> None:
    """A client that asks again does not insert again."""
    text = "CREATE VIEW once AS SELECT 1 AS a"
    info = client.get_flight_info(descriptor("CommandStatementQuery", field(1, text)))
    client.do_get(info.endpoints[0].ticket).read_all()
    with pytest.raises(flight.FlightServerError, match="carried out"):
        client.do_get(info.endpoints[0].ticket)


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELEC 1", None, "this is not SQL at line 1, column 1"),
        ("SELECT * FROM nowhere", None, "no table nowhere"),
        ("SELECT body FROM logs WHERE body = ?", None, "no values are bound"),
        ("SELECT ?", [1, 2], "1 parameters, and 2 values"),
        ("SELECT ?, $1", [1], "as \\? and with names"),
        ("SELECT CAST(body AS INT) FROM logs", None, "Cannot cast|cannot be"),
        ("CREATE NONSENSE", None, "NONSENSE"),
        ("SELECT 1; SELECT 2", None, "one"),
        ("SELECT ?", pa.record_batch({"a": [1] * 1001}), "the limit is 1000"),
        ("SELECT ?", ["x" * 2_000_000], "the limit is 1048576"),
        (f"SELECT '{'x' * 2_000_000}'", None, "more than 1048576 bytes"),
        (f"SELECT '{'x' * 300_000}'", None, "query.text_bytes_max"),
    ],
)
def test_errors_say_what_is_wrong(
    cursor: adbc.Cursor, text: str, values: Any, message: str
) -> None:
    """Errors are ours, in words, without a traceback."""
    with pytest.raises(adbc.Error, match=f"(?i){message}") as caught:
        rows(cursor, text, values)
    assert "Traceback" not in str(caught.value)
    assert "site-packages" not in str(caught.value)


def test_a_result_above_the_limit_is_an_error(cursor: adbc.Cursor) -> None:
    """A part of the rows never passes for all of them."""
    with pytest.raises(adbc.Error, match=r"more than 100000 rows.*rows_max"):
        rows(cursor, "SELECT a._row FROM logs a, logs b LIMIT 100001")
    cursor.execute("SELECT a._row FROM logs a, logs b LIMIT 100000")
    assert cursor.fetch_arrow_table().num_rows == 100_000


def test_too_many_queries_wait_in_vain(node: tuple[Served, int], client: Any) -> None:
    """Streams that are not read count as running queries; another one is told to come again."""
    info = client.get_flight_info(
        descriptor("CommandStatementQuery", field(1, "SELECT a.* FROM logs a, logs b LIMIT 90000"))
    )
    held = [client.do_get(info.endpoints[0].ticket) for _ in range(2)]
    with pytest.raises(flight.FlightUnavailableError, match="concurrency_max"):
        client.do_get(info.endpoints[0].ticket).read_all()
    for stream in held:
        stream.cancel()
    _await_slots(node[0], free=2)


def _await_slots(there: Served, *, free: int) -> None:
    clock = SystemClock()
    for _ in range(600):
        if there.embedded.engine._slots._value == free:
            return
        clock.sleep(0.01)
    raise AssertionError(f"there are not {free} free slots")


def test_a_cancelled_query_ends(node: tuple[Served, int], client: Any) -> None:
    """By the action with its ticket: the worker is killed, the slot is free. A query that does not
    run is not cancellable."""
    info = client.get_flight_info(descriptor("CommandStatementQuery", field(1, ENDLESS)))
    request = field(1, info.serialize())
    assert act(client, "CancelFlightInfo", request) == [bytes([1 << 3, 3])]
    errors: list[BaseException] = []

    def read() -> None:
        try:
            client.do_get(info.endpoints[0].ticket).read_all()
        except flight.FlightError as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    _cancel_until_done(client, request)
    reader.join(30)
    assert [str(error)[:23] for error in errors] == ["the query was cancelled"]
    _await_slots(node[0], free=2)


def test_a_dropped_stream_ends_its_query(node: tuple[Served, int], client: Any) -> None:
    """Also one that has no rows yet: nobody waits for them."""
    info = client.get_flight_info(descriptor("CommandStatementQuery", field(1, ENDLESS)))
    stream = client.do_get(info.endpoints[0].ticket)
    _await_slots(node[0], free=1)
    stream.cancel()
    _await_slots(node[0], free=2)


def _cancel_until_done(client: Any, request: bytes) -> None:
    clock = SystemClock()
    for _ in range(600):
        if act(client, "CancelFlightInfo", request) == [bytes([1 << 3, 1])]:
            return
        clock.sleep(0.01)
    raise AssertionError("the query could not be cancelled")


def test_a_closed_handle_is_gone(client: Any) -> None:
    """A prepared statement that was closed, or never was, is named; closing it twice is fine."""
    body = field(1, b"no handle")
    with pytest.raises(flight.FlightServerError, match="prepare it again"):
        fetch(client, "CommandPreparedStatementQuery", body)
    closing = command("ActionClosePreparedStatementRequest", body)
    assert act(client, "ClosePreparedStatement", closing) == []


@pytest.mark.parametrize("body", [b"", b"\xff\xff", b"\x0a\x03abc", command("CommandNothing")])
def test_bytes_that_are_no_command_are_refused(client: Any, body: bytes) -> None:
    """Neither a descriptor nor a ticket of other bytes harms the server."""
    with pytest.raises(flight.FlightServerError, match=r"no command|not supported"):
        client.get_flight_info(flight.FlightDescriptor.for_command(body))
    with pytest.raises(flight.FlightServerError, match=r"no command|not supported"):
        client.do_get(flight.Ticket(body)).read_all()
    assert fetch(client, "CommandStatementQuery", field(1, "SELECT 1 AS a"))["a"].to_pylist() == [1]

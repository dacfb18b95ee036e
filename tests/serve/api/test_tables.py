"""Keyed tables over HTTP: define, write, look up, follow; what is refused changes nothing."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.client import Client, RemoteTable
from frazil.embedded import Embedded
from frazil.errors import Conflict, Malformed, Rejected, Unavailable, Unknown
from frazil.model import MiB
from frazil.results import ARROW, Limits, WriteToken
from frazil.serve.api.table_rows import NDJSON
from frazil.serve.routes import endpoints_of
from frazil.tables import Operation, TableHandle
from tests.serve.served import Said, Served, served

BODY = {
    "columns": [
        {"name": "id", "type": "int64"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "decimal(10,2)"},
        {"name": "at", "type": "timestamptz"},
    ],
    "key": ["id"],
    "partitions": 3,
}
NAMES = itertools.count()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tables") / "data") as opened:
        yield opened


@pytest.fixture
def path(there: Served) -> str:
    """Of a new table."""
    made = f"/api/v1/tables/t{next(NAMES)}"
    assert there.ask("PUT", made, BODY).status == 200
    return made


def lines(*rows: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def post(there: Served, path: str, body: bytes, query: str = "", **headers: str) -> Said:
    return there.ask("POST", f"{path}/rows{query}", body, {"Content-Type": NDJSON, **headers})


def read_back(there: Served, path: str, *keys: int) -> list[Any]:
    """Rows, with all writes so far."""
    rows: list[Any] = there.ask("POST", f"{path}/lookup", {"keys": keys}).json["rows"]
    return rows


def test_rows_from_their_first_write_to_their_end(there: Served, path: str) -> None:
    said = post(there, path, lines({"id": 1, "name": "a", "price": "1.50"}, {"id": 2}))
    assert said.status == 200, said.body
    answer = said.json
    assert (answer["rows"], answer["duplicate"]) == (2, False)
    assert answer["token"]["table"] == path.rpartition("/")[2]
    (row,) = read_back(there, path, 1)
    assert row == {"id": 1, "name": "a", "price": "1.50", "at": None}
    later = lines({"id": 1, "at": "2026-01-02T03:04:05.5Z"})
    assert post(there, path, later, "?operation=update").status == 200
    assert read_back(there, path, 1)[0]["at"] == "2026-01-02T03:04:05.5Z"
    one = there.ask("GET", f"{path}/rows/1").json
    earlier = there.ask("GET", f"{path}/rows/1?as_of={one['offset'] - 1}").json
    assert (one["row"]["at"], earlier["row"]["at"]) == ("2026-01-02T03:04:05.5Z", None)
    history = there.ask("GET", f"{path}/history/1").json["versions"]
    assert [version["_change"] for version in history] == ["insert", "update"]
    now = datetime.datetime.now(datetime.UTC)
    times = [datetime.datetime.fromisoformat(version["_time"]) for version in history]
    assert now - datetime.timedelta(minutes=10) < times[0] <= times[1] <= now
    assert there.ask("DELETE", f"{path}/rows?key=1").status == 200
    gone = there.ask("GET", f"{path}/rows?key=1")
    assert (gone.status, gone.json["error"]["kind"]) == (404, "not_found")
    assert there.ask("DELETE", f"{path}/rows").status == 400
    assert post(there, path, lines({"id": 2}), "?operation=delete").json["rows"] == 1
    assert read_back(there, path, 1, 2) == []


def test_history_says_who(there: Served, path: str) -> None:
    """A token is never stored, only that it was the same one."""
    name, token = path.rpartition("/")[2], "0123456789abcdef"
    post(there, path, lines({"id": 1}), Authorization=f"Bearer {token}")
    post(there, path, lines({"id": 1}))
    there.embedded.table(name).upsert([{"id": 1}])
    there.embedded.execute(f"UPDATE {name} SET name = 'b' WHERE id = 1")
    versions = there.ask("GET", f"{path}/history?key=1").json["versions"]
    digest = hashlib.sha256(token.encode()).hexdigest()
    senders = [
        f"http:token {digest[:8]}",
        "http:anyone on this machine",
        "python",
        "sql:embedded",
    ]
    assert [version["_by"] for version in versions] == senders
    (partition,) = {
        p["partition"] for p in there.ask("GET", path).json["status"]["partitions"] if p["written"]
    }
    found = there.ask("GET", f"{path}/changes?partition={partition}").json["changes"]
    assert [change["_by"] for change in found] == senders


def test_a_small_body_cannot_become_a_large_one(there: Served, path: str) -> None:
    """Compressed, it is measured before anything is allocated for it."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    batch = pa.record_batch({"id": pa.repeat(0, 2 * MiB)})
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    said = post(there, path, sink.getvalue().to_pybytes(), **{"Content-Type": ARROW})
    assert (said.status, said.json["error"]["kind"]) == (413, "too_large")
    assert "serve.rows_bytes_max" in said.message


def test_changes_continue_where_the_last_response_ended(there: Served) -> None:
    path = f"/api/v1/tables/t{next(NAMES)}"
    assert there.ask("PUT", path, {**BODY, "partitions": 1}).status == 200
    for number in range(5):
        post(there, path, lines({"id": 0, "name": str(number)}, {"id": number + 1}))
    assert len(read_back(there, path, 0, 1, 2, 3, 4, 5)) == 6
    found: list[Any] = []
    begin = 0
    while True:
        answer = there.ask("GET", f"{path}/changes?from={begin}&limit=3").json
        found += answer["changes"]
        begin = answer["next"]
        if begin == answer["end"]:
            break
    assert [change["_offset"] for change in found] == sorted(2 * [0, 1, 2, 3, 4])
    assert all(change["_time"] is not None for change in found)
    of_zero = [(change["_change"], change["name"]) for change in found if change["id"] == 0]
    assert of_zero == [("insert", "0"), *(("update", str(n)) for n in range(1, 5))]
    narrow = there.ask("GET", f"{path}/changes?from=1&to=2").json
    assert [change["_offset"] for change in narrow["changes"]] == [1, 1]
    assert there.ask("GET", f"{path}/changes?from=2&to=1").status == 400
    assert there.ask("GET", f"{path}/changes?partition=1").status == 400


def test_a_repetition_is_answered_and_the_same_rows_later_are_written(
    there: Served, path: str
) -> None:
    """Without a key of the sender, equal bodies are two writes: on, off, on ends with on."""
    on, off = lines({"id": 1, "name": "on"}), lines({"id": 1, "name": "off"})
    first = post(there, path, on, **{"Idempotency-Key": "k1"})
    again = post(there, path, on, **{"Idempotency-Key": "k1"})
    assert (first.json["duplicate"], again.json["duplicate"]) == (False, True)
    assert again.json["token"] == first.json["token"]
    other = post(there, path, off, **{"Idempotency-Key": "k1"})
    assert not other.json["duplicate"]  # other rows are no repetition
    for body in (on, off, on):
        assert not post(there, path, body).json["duplicate"]
    assert read_back(there, path, 1)[0]["name"] == "on"
    assert len(there.ask("GET", f"{path}/history/1").json["versions"]) == 5


def test_what_is_refused_changes_nothing(there: Served, path: str) -> None:
    said = post(there, path, lines({"id": 1}, {"id": "2"}))
    assert said.status == 400
    assert "line 2: column id: expected `int`, got `str`" in said.json["error"]["message"]
    refused = [
        post(there, path, b"{}"),
        post(there, path, b""),
        post(there, path, lines({"id": 1}), "?operation=merge"),
        post(there, path, lines({"id": 1}), "?operation=update"),
        post(there, path, lines({"id": 1}), **{"Idempotency-Key": "k" * 300}),
        post(there, path, b"ARROW1", **{"Content-Type": "application/vnd.apache.arrow.stream"}),
        there.ask("GET", f"{path}/rows/x"),
        there.ask("POST", f"{path}/lookup", {"keys": [[1]]}),
        there.ask("PUT", f"{path}x", {**BODY, "key": ["price", "nope"]}),
    ]
    assert [said.status for said in refused] == [400] * len(refused)
    assert post(there, path, b"{}", **{"Content-Type": "text/csv"}).status == 415
    assert post(there, f"{path}x", lines({"id": 1})).status == 404
    assert there.ask("GET", f"{path}x").status == 404
    assert there.ask("PUT", path, {**BODY, "partitions": 2}).status == 409
    assert there.ask("PUT", path, BODY).status == 200  # the same again
    assert there.ask("PUT", "/api/v1/tables/logs", BODY).status == 409
    (table,) = (
        each
        for each in there.ask("GET", "/api/v1/tables").json["tables"]
        if each["table"] == path.rpartition("/")[2]
    )
    assert {part["written"] for part in table["partitions"]} == {0}


def test_a_table_is_dropped_with_its_rows(there: Served, path: str) -> None:
    post(there, path, lines({"id": 1}))
    assert there.ask("DELETE", path).status == 200
    assert there.ask("GET", path).status == 404
    assert there.ask("PUT", path, BODY).status == 200
    assert read_back(there, path, 1) == []


def test_who_writes_needs_a_token_for_statements() -> None:
    """A token for reading does not do; without a file of tokens no one else on the network may."""
    tables = [each for each in endpoints_of() if each.path.startswith("/api/v1/tables")]
    writing = {(each.method, each.path) for each in tables if each.takes_statements}
    reading = {(each.method, each.path) for each in tables if not each.takes_statements}
    assert {method for method, _ in writing} == {"PUT", "POST", "DELETE"}
    assert {path for method, path in reading if method != "GET"} == {
        "/api/v1/tables/{table}/lookup"
    }


@pytest.fixture(params=["open", "connect"])
def asked(there: Served, request: pytest.FixtureRequest) -> Embedded | Client:
    return there.embedded if request.param == "open" else frazil.connect(there.url)


@pytest.fixture
def table(there: Served, asked: Embedded | Client, path: str) -> TableHandle | RemoteTable:
    return asked.table(path.rpartition("/")[2])


ROW = {
    "id": 7,
    "name": "a/b",
    "price": Decimal("9.99"),
    "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
}


def test_python_writes_and_reads_its_own_writes(table: TableHandle | RemoteTable) -> None:
    token = table.upsert([ROW, {"id": 8}])
    assert isinstance(token, WriteToken) and token.table == table.name
    assert table.get(7) == ROW
    table.update([{"id": 7, "name": None}, {"id": 8, "name": "b"}])
    assert table.get_many([8, 9, 7])["name"].to_pylist() == ["b", None]
    table.update([{"id": 8, "price": 12}])  # an integer, exactly
    assert table.get(8) == {"id": 8, "name": "b", "price": Decimal("12.00"), "at": None}
    with pytest.raises(Malformed, match="price does not fit"):
        table.update([{"id": 8, "price": 10**9}])
    table.delete([7])
    assert table.get(7) is None
    table.delete(pa.table({"id": [8]}))
    assert table.get_many([7, 8]).num_rows == 0
    table.upsert(pa.table({"id": range(1000), "name": ["x" * 10_000] * 1000}))
    assert table.get_many(range(1000)).num_rows == 1000


def test_pandas_and_polars_are_written(table: TableHandle | RemoteTable) -> None:
    for number, name in enumerate(("pandas", "polars")):
        library = pytest.importorskip(name)
        frame = library.DataFrame({"id": [number], "name": [name]})
        table.upsert(frame)
        assert table.get(number) == {"id": number, "name": name, "price": None, "at": None}
        wide = library.DataFrame({"id": range(900), "name": [f"{n}" * 5000 for n in range(900)]})
        table.upsert(wide)  # larger than a request may be
        few = library.DataFrame({"id": range(900), "name": ["ab" * 5000, "c"] * 450})
        kind = library.Categorical if name == "polars" else "category"
        column = few["name"].cast(kind) if name == "polars" else few["name"].astype(kind)
        few = few.with_columns(column) if name == "polars" else few.assign(name=column)
        table.upsert(few)
        assert table.get_many([7, 8])["name"].to_pylist() == ["c", "ab" * 5000]


def test_python_is_refused_alike(
    asked: Embedded | Client, table: TableHandle | RemoteTable
) -> None:
    with pytest.raises(Unknown, match="no table nowhere"):
        asked.table("nowhere").get(1)
    for rows in ([{"name": "a"}], [{"id": None}], [{"id": 1, "more": 2}], {"id": 1}, [1], "x"):
        with pytest.raises(Malformed):
            table.upsert(rows)
    with pytest.raises(Malformed, match="row 1 has no name"):
        table.update([{"id": 1, "name": "a"}, {"id": 2}])
    with pytest.raises(Malformed):
        table.delete([(1, 2)])
    with pytest.raises(Rejected):
        table.get("x")
    assert table.get(1) is None


def test_a_query_waits_for_the_writes_it_must_see(
    asked: Embedded | Client, table: TableHandle | RemoteTable
) -> None:
    token = table.upsert([ROW])
    assert asked.sql("SELECT 1", at_least=token).fetchall() == [(1,)]
    assert asked.sql("SELECT 1", at_least=[token, token]).fetchall() == [(1,)]
    later = WriteToken(table=table.name, offsets={0: 1_000})
    limits = Limits(timeout_ms=50)
    with pytest.raises(Unavailable, match="not all below"):
        asked.sql("SELECT 1", at_least=later, limits=limits)
    with pytest.raises(Malformed):
        asked.sql("SELECT 1", at_least=WriteToken(table=table.name, offsets={9: 1}))


def test_conditional_writes_conflict(there: Served, path: str) -> None:
    """As SQL statements use them."""
    name = path.rpartition("/")[2]
    tables = there.embedded.tables
    rows = pa.table({"id": [1]})
    token = tables.write(name, Operation.UPSERT, rows)
    with pytest.raises(Conflict):
        tables.write(name, Operation.UPSERT, rows, expects=dict.fromkeys(token, 0))

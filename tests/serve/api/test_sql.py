"""SQL over HTTP: rows as JSON, CSV and Arrow; a part never passes for the whole."""

from __future__ import annotations

import asyncio
import csv
import gc
import http.client
import io
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.query.engine import QUERIES
from tests.serve.served import Served, fill, served

ROWS = 3000
SLOW = "SELECT sum(length(a.body || b.body)) FROM logs a CROSS JOIN logs b CROSS JOIN logs c"
"""Takes minutes."""
APART = "SELECT count(*) FROM logs a JOIN logs b USING (_offset)"
"""Starts the process that such queries run in, which then waits for the next one."""
LOOKS_MAX = 1000
CLOSE_S_MAX = 60
"""The query takes many times as long."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("sql") / "data") as opened:
        fill(opened, ROWS)
        yield opened


def test_json_has_only_columns_and_rows(there: Served) -> None:
    """The fixed words of scripts."""
    said = there.sql(
        "SELECT body, time_unix_nano % 10 AS n FROM logs ORDER BY time_unix_nano LIMIT 2"
    )
    assert said.status == 200
    assert said.headers["content-type"] == "application/json"
    assert said.json.keys() == {"columns", "rows"}
    assert said.json["columns"] == ["body", "n"]
    assert [row[0] for row in said.json["rows"]] == ["case 0", "case 1"]


def test_an_empty_result_has_columns(there: Served) -> None:
    said = there.sql("SELECT body FROM logs WHERE false")
    assert said.json == {"columns": ["body"], "rows": []}


def test_details_add_types_and_is_cut(there: Served) -> None:
    said = there.sql("SELECT body FROM logs", details=True, rows_max=5)
    assert said.json["is_cut"] is True
    assert said.json["types"] == ["string"]
    assert len(said.json["rows"]) == 5


@pytest.mark.parametrize("how", ["json", "csv", "arrow", "parquet"])
def test_a_cut_result_without_details_is_an_error(there: Served, how: str) -> None:
    """Whoever cannot see that rows are missing gets an error instead."""
    if how == "json":
        said = there.sql("SELECT body FROM logs", rows_max=5)
        assert (said.status, said.json["error"]["kind"]) == (413, "too_large")
        assert "more than 5 rows" in said.message
    else:
        with pytest.raises(http.client.IncompleteRead):
            there.sql("SELECT body FROM logs", rows_max=5, format=how)


def test_csv_round_trips(there: Served) -> None:
    said = there.ask("POST", "/api/v1/sql", {"sql": "SELECT * FROM logs"}, {"Accept": "text/csv"})
    assert said.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(said.body.decode())))
    assert len(rows) == ROWS
    assert {row["body"] for row in rows} == {f"case {number}" for number in range(ROWS)}


def test_arrow_is_readable_by_any_reader(there: Served) -> None:
    said = there.ask(
        "POST",
        "/api/v1/sql",
        {"sql": "SELECT * FROM logs"},
        {"Accept": "application/vnd.apache.arrow.stream"},
    )
    table = pa.ipc.open_stream(said.body).read_all()
    assert table.num_rows == ROWS
    assert pa.types.is_map(table.schema.field("attributes").type)


def test_parquet_round_trips(there: Served) -> None:
    said = there.ask(
        "POST",
        "/api/v1/sql",
        {"sql": "SELECT * FROM logs ORDER BY _offset, _row"},
        {"Accept": "application/vnd.apache.parquet"},
    )
    assert said.headers["content-type"] == "application/vnd.apache.parquet"
    table = pq.read_table(io.BytesIO(said.body))
    assert table.num_rows == ROWS
    assert set(table["body"].to_pylist()) == {f"case {number}" for number in range(ROWS)}


def test_an_empty_result_is_a_parquet_file(there: Served) -> None:
    said = there.sql("SELECT body FROM logs WHERE false", format="parquet")
    assert pq.read_table(io.BytesIO(said.body)).column_names == ["body"]


def test_types_parquet_lacks_are_refused(there: Served) -> None:
    said = there.sql("SELECT INTERVAL '1 month' AS i FROM logs", format="parquet")
    assert (said.status, said.json["error"]["kind"]) == (400, "malformed")
    assert "Parquet" in said.message


def test_parts_describe_what_was_read(there: Served) -> None:
    """In JSON and in the schema of an Arrow stream, only if requested."""
    text = "SELECT body FROM logs"
    [part] = there.sql(text, parts=True).json["parts"]
    assert (part["table"], part["hot_rows"], part["lake_rows"]) == ("logs", ROWS, 0)
    assert part["hot_bytes"] > ROWS
    assert part["hot_pieces"] == part["hot_pieces_all"] > 0
    arrow = pa.ipc.open_stream(there.sql(text, parts=True, format="arrow").body)
    assert json.loads(arrow.schema.metadata[b"frazil.parts"]) == [part]
    plain = there.sql(text, details=True, format="arrow")
    assert pa.ipc.open_stream(plain.body).schema.metadata is None


def test_parts_count_pruned_pieces(there: Served) -> None:
    text = "SELECT body FROM logs WHERE service_name = 'nobody'"
    [part] = there.sql(text, parts=True).json["parts"]
    assert (part["hot_rows"], part["hot_bytes"], part["rows_all"]) == (0, 0, ROWS)
    assert part["skipped"] == {"without the service": part["hot_pieces_all"]}


def test_a_stream_that_fails_is_cut_off(there: Served) -> None:
    """The first rows are on their way when the division fails: no reader may end well."""
    text = "SELECT body, 1 / (time_unix_nano - max(time_unix_nano) OVER ()) FROM logs ORDER BY time"
    said = there.sql(text)
    assert said.status == 400
    assert "divi" in said.message.lower()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"sql": "SELEC 1"}, 400, "this is not SQL at line 1, column 1"),
        ({"sql": "SELECT nope FROM logs"}, 400, "no column nope"),
        ({"sql": "DROP TABLE logs"}, 400, "SQL is read-only"),
        ({"sq": "SELECT 1"}, 400, "known fields: sql"),
        ({}, 400, "missing required field `sql`"),
        ({"sql": 5}, 400, "expected `str`"),
        ({"sql": "SELECT 1", "rows_max": 0}, 400, ">= 1"),
        ({"sql": "SELECT 1", "engine": "flink"}, 400, "spark"),
        ({"sql": "SELECT 1", "engine": "spark"}, 503, "there is no lake"),
        (b"{", 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        ([1], 400, "expected `object`"),
    ],
)
def test_wrong_requests_are_explained(there: Served, body: object, status: int, words: str) -> None:
    headers = {"Content-Type": "application/json"}
    said = there.ask("POST", "/api/v1/sql", body, headers)
    assert said.status == status
    assert words in said.message


def test_content_type_and_accept_are_checked(there: Served) -> None:
    """A page of a stranger can send plain text without asking; JSON it cannot."""
    said = there.ask("POST", "/api/v1/sql", b'{"sql": "SELECT 1"}', {"Content-Type": "text/plain"})
    assert said.status == 415
    said = there.ask("POST", "/api/v1/sql", {"sql": "SELECT 1"}, {"Accept": "application/x-what"})
    assert (said.status, "supported are" in said.message) == (400, True)


ODD = {
    "to_timestamp_micros(9223372036854775807)": (400, 200),
    "to_timestamp(-62135596801)": (400, 400),
    "date '0001-01-01' - INTERVAL '1 day'": (400, 200),
    "arrow_cast(2147483647, 'Date32')": (400, 200),
    "arrow_cast(9223372036854775807, 'Date64')": (400, 200),
    "arrow_cast(9223372036854775807, 'Duration(Second)')": (400, 200),
    "make_array(arrow_cast(2147483647, 'Date32'))": (400, 200),
    "1 / 0": (400, 400),
    "CAST('x' AS INT)": (400, 400),
    "chr(55296)": (400, 400),
    "INTERVAL '1 month 3 days'": (200, 200),
    "arrow_cast(1, 'Timestamp(Nanosecond, None)')": (200, 200),
    "arrow_cast(1, 'Decimal256(76, 0)')": (200, 200),
    "named_struct('a', make_array('NaN'::double), 'b', X'ff00')": (200, 200),
    "map(make_array(1, 2), make_array(now(), NULL))": (200, 200),
    "18446744073709551615": (200, 200),
    "arrow_cast('a', 'Dictionary(Int8, Utf8)')": (200, 200),
    "arrow_cast(X'00', 'BinaryView')": (200, 200),
    "chr(0)": (200, 200),
    "NULL": (200, 200),
}
"""What can be selected -> the status as text (JSON and CSV), and as Arrow."""


@pytest.mark.parametrize("text", ODD)
def test_unusual_values_are_encoded_or_refused(there: Served, text: str) -> None:
    """And nothing of it is a failure of the node, nor a success that has no end."""
    as_text, as_arrow = ODD[text]
    for how, status in (("json", as_text), ("csv", as_text), ("arrow", as_arrow)):
        said = there.sql(f"SELECT {text} AS a", format=how)
        assert said.status == status, (how, said.body)
        if status == 200 and how == "json":
            assert len(said.json["rows"]) == 1
        elif status == 200 and how == "csv":
            assert said.body.startswith(b"a\n")
            assert len(list(csv.reader(io.StringIO(said.body.decode())))) == 2
        elif status == 200:
            assert pa.ipc.open_stream(said.body).read_all().num_rows == 1


def test_an_empty_csv_has_a_header(there: Served) -> None:
    said = there.sql("SELECT body, _row FROM logs WHERE false", format="csv")
    assert (said.status, said.body) == (200, b"body,_row\n")


def test_a_timeout_is_enforced(there: Served) -> None:
    said = there.sql(SLOW, timeout_ms=300)
    assert said.status == 413
    assert "300 ms" in said.message


def test_a_disconnect_cancels_the_query(there: Served) -> None:
    """Abandoned queries must not fill all slots."""
    before = ended()
    for _ in range(12):  # more than may run at a time
        ask_and_leave(there)
    assert there.sql("SELECT 1").status == 200
    await_ended(there, before + 13)


def test_a_disconnect_is_not_an_error(there: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is logged."""
    before = ended()
    assert there.sql(APART).status == 200  # so that the other one runs at once
    ask_and_leave(there, format="arrow")
    await_ended(there, before + 2)
    assert there.sql("SELECT 1").status == 200
    gc.collect()
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("how", ["json", "arrow"])
def test_a_stop_cancels_running_queries(tmp_path: Path, how: str) -> None:
    """The query of a client that is cut off is cancelled, too."""
    with served(tmp_path / "data", query={"timeout_ms": 3_600_000}) as there:
        fill(there, ROWS)
        assert there.sql(APART).status == 200  # so that the other one runs at once
        before = ended()
        body = json.dumps({"sql": SLOW, "format": how})
        with closing(http.client.HTTPConnection("127.0.0.1", there.port)) as asking:
            asking.request("POST", "/api/v1/sql", body, {"Content-Type": "application/json"})
            there.rooms.clock.sleep(0.3)
            close_api(there)
            await_ended(there, before + 1)


def close_api(there: Served) -> None:
    asyncio.run_coroutine_threadsafe(there.api.close(0.1), there.loop).result(CLOSE_S_MAX)


def ask_and_leave(there: Served, **more: str) -> None:
    """Ask for something that takes minutes, and hang up."""
    body = json.dumps({"sql": SLOW, **more}).encode()
    head = (
        f"POST /api/v1/sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", there.port)) as client:
        client.sendall(head + body)
        there.rooms.clock.sleep(0.3)


def await_ended(there: Served, count: float) -> None:
    for _ in range(LOOKS_MAX):
        if ended() == count:
            return
        there.rooms.clock.sleep(0.01)
    raise AssertionError(f"{ended()} queries have ended, of {count}")


def ended() -> float:
    return sum(sample.value for sample in QUERIES.samples())


def test_a_json_response_is_limited(tmp_path: Path) -> None:
    """What is too much for one document is a stream's business."""
    with served(tmp_path / "data", serve={"answer_bytes_max": 2000}) as opened:
        fill(opened, 100)
        said = opened.sql("SELECT * FROM logs")
        assert said.status == 413
        assert "serve.answer_bytes_max" in said.message
        streamed = opened.sql("SELECT * FROM logs", format="arrow")
        assert pa.ipc.open_stream(streamed.body).read_all().num_rows == 100

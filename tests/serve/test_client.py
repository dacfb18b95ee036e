"""`frazil.connect`: what a node answers, with the results of `frazil.open`."""

from __future__ import annotations

import datetime
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import frazil
from frazil.client import KINDS, Client
from frazil.errors import Malformed, TooLarge, Unauthenticated, Unavailable, Unknown
from frazil.query import find_traces, histogram
from frazil.results import Limits
from tests.serve.api.test_sql import SLOW
from tests.serve.served import Served, fill, served

ROWS = 2500


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("remote") / "data") as opened:
        fill(opened, ROWS)
        yield opened


@pytest.fixture
def remote(there: Served) -> Client:
    return frazil.connect(there.url)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM logs ORDER BY _offset, _row",
        "SELECT count(*), max(time) FROM logs",
        "SELECT body FROM logs WHERE false",
        "SELECT NULL AS a, 1.5 AS b, 'x' AS c, true AS d, now() > '2020-01-01' AS e",
        "EXPLAIN SELECT body FROM logs",
        "SELECT table_name FROM information_schema.tables ORDER BY 1",
    ],
)
def test_a_client_gets_the_same_rows_as_embedded(there: Served, remote: Client, text: str) -> None:
    """To the last type and bit."""
    assert remote.sql(text).arrow().equals(there.embedded.sql(text).arrow(), check_metadata=True)


def test_every_way_of_reading_a_result(remote: Client) -> None:
    """As Arrow, rows, data frames, and by the Arrow stream interface."""
    text = "SELECT body, _row FROM logs ORDER BY _offset, _row LIMIT 3"
    assert remote.sql(text).fetchall() == [("case 0", 0), ("case 1", 1), ("case 2", 2)]
    assert len(remote.sql(text).df()) == 3
    assert pl.DataFrame(remote.sql(text)).shape == (3, 2)
    rows = pa.RecordBatchReader.from_stream(remote.sql(text))
    assert duckdb.from_arrow(rows).sum("_row").fetchall() == [(3,)]
    assert "<table" in remote.sql(text)._repr_html_()
    with remote.sql("SELECT * FROM logs") as result:
        assert next(iter(result)).num_rows > 0


def test_a_cut_result_has_is_cut(remote: Client) -> None:
    result = remote.sql("SELECT body FROM logs", limits=Limits(rows_max=7))
    assert sum(batch.num_rows for batch in result) == 7
    assert result.is_cut
    with pytest.raises(TooLarge, match="more than 7 rows"):
        remote.sql("SELECT body FROM logs", limits=Limits(rows_max=7)).arrow()


def test_query_functions_work_with_a_client(remote: Client) -> None:
    bars = histogram(remote.ask, datetime.timedelta(days=1))
    assert sum(bar.count for bar in bars) == ROWS
    assert find_traces(remote.ask) == []


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("SELEC", Malformed, "not SQL"),
        ("SELECT nope FROM logs", Unknown, "no column nope"),
        (SLOW, TooLarge, "200 ms"),
    ],
)
def test_a_client_raises_the_same_errors(
    remote: Client, text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        remote.sql(text, limits=Limits(timeout_ms=200)).arrow()


def test_a_cancel_reaches_the_node(there: Served, remote: Client) -> None:
    """From another thread, while the result is read."""
    with pytest.raises(Unavailable, match="cancelled"):
        result = remote.sql("SELECT a.body FROM logs a CROSS JOIN logs b")
        iterator = iter(result)
        next(iterator)
        cancelling = threading.Thread(target=result.cancel)
        cancelling.start()
        cancelling.join()
        for _ in iterator:
            continue


def test_flush_without_a_lake_says_what_to_do(remote: Client) -> None:
    with pytest.raises(Unavailable, match="no lake on this node"):
        remote.flush()


def test_an_unreachable_node_is_explained(tmp_path: Path) -> None:
    """Every way of not being there is a sentence."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    with pytest.raises(Unavailable, match="start one with `frazil up`"):
        frazil.connect(f"http://127.0.0.1:{port}").sql("SELECT 1")
    with pytest.raises(Malformed, match="not the URL of a node"):
        frazil.connect("ftp://here")
    with pytest.raises(Unavailable, match="cannot be reached"):
        frazil.connect("http://name.invalid:4320").sql("SELECT 1")


def test_another_server_is_detected(there: Served) -> None:
    """The port of OTLP, for one."""
    with pytest.raises(Unavailable, match="check that this is the API port"):
        frazil.connect(f"http://127.0.0.1:{there.rooms.otlp.http_port}").sql("SELECT 1")


def test_a_truncated_stream_is_an_error(there: Served) -> None:
    """A node that dies while it sends must not leave a shorter result behind."""
    whole = there.sql("SELECT * FROM logs", format="arrow").body
    with socket.create_server(("127.0.0.1", 0)) as server:

        def half() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                part = whole[: len(whole) // 2]
                client.sendall(b"%x\r\n%s\r\n" % (len(part), part))

        thread = threading.Thread(target=half)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unavailable, match="did not send all rows"):
            frazil.connect(url).sql("SELECT * FROM logs").arrow()
        thread.join()


def test_a_token_gives_access(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("0123456789abcdef\n")
    tokens = {"token_file": str(tmp_path / "tokens")}
    with served(tmp_path / "data", ingest=tokens) as opened:
        with pytest.raises(Unauthenticated):
            frazil.connect(opened.url).sql("SELECT 1")
        known = frazil.connect(opened.url, token="0123456789abcdef")
        assert known.sql("SELECT 1").fetchall() == [(1,)]


def test_every_error_kind_maps_to_an_exception() -> None:
    assert KINDS["too_large"] is TooLarge
    assert KINDS["unavailable"] is Unavailable

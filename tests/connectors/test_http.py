"""The type `http` with a real server that is slow to accept, refuses, and closes connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from frazil.connectors import OptionValue
from frazil.log import DEAD_LETTERS, Record, append_of_records
from tests.connectors.supervised import TOPIC, opened_log, records_of, supervised, until

Options = dict[str, OptionValue]


class Server(ThreadingHTTPServer):
    """Takes lines, and gives pages of numbers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [503, 0, 429]
        """To the first requests; 0 closes the connection without an answer."""
        self.lines: list[bytes] = []
        self.keys: list[str] = []
        self.last = 25
        self.etag_hits = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if answer == 0:
            self.close_connection = True
            return
        if self.headers["Authorization"] != "Bearer t":
            answer = 401
        elif answer == 200 and b"bad" in body:
            answer = 422
        if answer == 200:
            self.server.lines += body.splitlines()
            self.server.keys.append(self.headers["Idempotency-Key"])
        self._answer(answer, b"{}", {"Retry-After": "0"} if answer == 429 else {})

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/api/pages":
            begin = int(query.removeprefix("since=") or 0)
            numbers = list(range(begin + 1, min(begin + 10, self.server.last) + 1))
            page = {"data": {"items": numbers}, "next": numbers[-1] if numbers else begin}
            self._answer(200, json.dumps(page).encode(), {})
        elif self.headers["If-None-Match"] == '"1"':
            self.server.etag_hits += 1
            self._answer(304, b"", {})
        else:
            self._answer(200, b'[1.0, {"a" : 1}]', {"ETag": '"1"'})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_sink_delivers_in_order_and_sets_aside_what_is_refused(
    tmp_path: Path, server: Server
) -> None:
    """Whatever the server answers: nothing is lost, and a bad record does not hold up others."""
    folder, connection = tmp_path / "data", {"url": server.url, "token": "t"}
    values = [b'{"n":%d}' % n for n in range(100)]
    values[40:40] = [b'"bad"', b"no JSON"]
    with opened_log(folder) as log:
        log.create_topic(TOPIC)
        for value in values:
            records = [Record(offset=0, timestamp_ms=1, key=b"k", value=value)]
            log.append(TOPIC, append_of_records(records)).result()
        options: Options = {"path": "/in", "batch_records": 10}
        with supervised(
            log, folder, "http", options, role="sink", connection=connection
        ) as connector:
            until(lambda: connector.status().lag_offsets == 0, connector.status)
            assert connector.status().refused == 2
        assert list(dict.fromkeys(server.lines)) == [b'{"n":%d}' % n for n in range(100)]
        assert server.keys[0] == "t/0/0-9"
        letters = {r.value: dict(r.headers) for r in records_of(log, DEAD_LETTERS)}
        assert set(letters) == {b'"bad"', b"no JSON"}
        assert letters[b'"bad"']["offset"] == b"40"
        assert b"422" in (letters[b'"bad"']["reason"] or b"")
        lines = len(server.lines)
        with supervised(
            log, folder, "http", options, role="sink", connection=connection
        ) as connector:
            until(lambda: connector.status().lag_offsets == 0, connector.status)
            connector.restart()
            until(lambda: connector.status().starts == 2, connector.status)
        assert len(server.lines) == lines, "progress is kept"


def test_a_sink_without_access_stops(tmp_path: Path, server: Server) -> None:
    """A wrong token is no reason to set records aside."""
    folder = tmp_path / "data"
    server.answers.clear()
    with opened_log(folder) as log:
        log.create_topic(TOPIC)
        log.append(
            TOPIC, append_of_records([Record(offset=0, timestamp_ms=1, key=None, value=b"1")])
        ).result()
        with supervised(
            log, folder, "http", {}, role="sink", connection={"url": server.url, "token": "x"}
        ) as connector:
            until(lambda: connector.status().word == "failed", connector.status)
            assert "401" in connector.status().why
        assert not log.has_topic(DEAD_LETTERS) or not records_of(log, DEAD_LETTERS)


def test_a_source_follows_a_cursor(tmp_path: Path, server: Server) -> None:
    """Every record once, also those that come later, and after a restart."""
    folder = tmp_path / "data"
    options: Options = {
        "path": "/pages",
        "records": "/data/items",
        "cursor": "/next",
        "cursor_parameter": "since",
        "interval_ms": 100,
    }
    connection = {"url": server.url}
    with opened_log(folder) as log:
        with supervised(log, folder, "http", options, connection=connection) as connector:
            until(lambda: connector.status().records == 25, connector.status)
            server.last = 31
            until(lambda: connector.status().records == 31, connector.status)
        server.last = 40
        with supervised(log, folder, "http", options, connection=connection) as connector:
            until(lambda: connector.status().records == 9, connector.status)
        assert [r.value for r in records_of(log)] == [b"%d" % n for n in range(1, 41)]


def test_a_source_takes_a_document_when_it_changes(tmp_path: Path, server: Server) -> None:
    """An ETag is sent back; values stay as they are written."""
    folder = tmp_path / "data"
    with (
        opened_log(folder) as log,
        supervised(
            log, folder, "http", {"interval_ms": 100}, connection={"url": server.url}
        ) as connector,
    ):
        until(lambda: server.etag_hits >= 2, connector.status)
        assert [r.value for r in records_of(log)] == [b"1.0", b'{"a" : 1}']

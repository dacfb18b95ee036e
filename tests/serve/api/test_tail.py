"""A live tail: every row once and in order, also over two connections; bounded in every way."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.metrics import Counter, find
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http
from tests.demo.records import NS_PER_S, START_NS, parse, traffic
from tests.ingest.serving import soon
from tests.serve.events import Event, Events
from tests.serve.served import Served, fill, served

NUMBERS = itertools.count(5)
REQUESTS = 40


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tail") / "data") as opened:
        yield opened


def send(there: Served, count: int, name: str = "") -> list[str]:
    """One request with so many log records; gives their bodies."""
    numbers = [next(NUMBERS) for _ in range(count)]
    body = logs(*[log(number, event_name=name) for number in numbers])
    answer = send_http(there.rooms.otlp.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
    assert answer.status == 200
    return [f"case {number}" for number in numbers]


def bodies(events: list[Event]) -> list[str]:
    return [event.data["body"] for event in events if event.kind == "message"]


def test_every_row_is_sent_once_and_in_order(there: Served) -> None:
    """While rows come in, faster and slower than one looks."""
    fill(there, 5)  # before anybody looks
    wanted: list[str] = []
    with Events(there.port) as events:
        for number in range(REQUESTS):
            wanted += send(there, number % 7 + 1)
        assert bodies(events.until(len(wanted))) == wanted


def test_resuming_neither_skips_nor_repeats_rows(there: Served) -> None:
    """A client that sends its last id gets exactly the rows since then."""
    wanted: list[str] = []
    found: list[Event] = []
    place = None
    for _ in range(5):
        with Events(there.port, last=place) as events:
            wanted += send(there, 3)
            found += events.until(len(wanted) - len(found))
            place = found[-1].place
        wanted += send(there, 4)  # while disconnected
    with Events(there.port, last=place) as events:
        found += events.until(len(wanted) - len(found))
    assert bodies(found) == wanted


def test_rows_above_the_rate_are_counted_as_skipped(there: Served) -> None:
    """The newest are shown, and how many others there were."""
    with Events(there.port, rate=10) as events:
        sent = send(there, 300)
        found = events.until(11)
    assert found[0].kind == "skipped"
    assert found[0].data == {"count": 290}
    assert bodies(found) == sent[-10:]


def test_only_matching_rows_are_sent(there: Served) -> None:
    with Events(there.port, filter="event_name=wanted", search="case") as events:
        send(there, 3, name="other")
        wanted = send(there, 3, name="wanted")
        send(there, 3, name="other")
        wanted += send(there, 2, name="wanted")
        assert bodies(events.until(5)) == wanted


@pytest.mark.parametrize(
    ("query", "headers", "words"),
    [
        ("table=nope", {}, "choose one of: logs, spans, metrics"),
        ("rate=0", {}, "Maximum rows per poll"),
        ("rate=501", {}, "Maximum rows per poll"),
        ("table=spans&search=x", {}, "apply to logs"),
        ("severity=x", {}, "is not a severity"),
        ("filter=x", {}, "write name=value"),
        ("", {"Last-Event-ID": "x"}, "Last-Event-ID"),
        ("", {"Last-Event-ID": "0:1,"}, "Last-Event-ID"),
        ("", {"Last-Event-ID": "0:-1"}, "Last-Event-ID"),
    ],
)
def test_wrong_parameters_are_refused(
    there: Served, query: str, headers: dict[str, str], words: str
) -> None:
    said = there.ask("GET", f"/api/v1/tail?{query}", headers=headers)
    assert said.status == 400
    assert words in said.message


@pytest.mark.parametrize("place", ["0:999999999999999999", "77:5", "0:0", "0:1,0:2,9:9"])
def test_an_unusual_event_id_is_handled(there: Served, place: str) -> None:
    """Any valid id gives existing rows, and the tail continues."""
    with Events(there.port, last=place) as events:
        assert events.status == 200
        send(there, 2)
    assert there.ask("GET", "/api/v1/status").status == 200


def test_concurrent_tails_are_limited(tmp_path: Path) -> None:
    """One more is refused; a disconnect frees a slot."""
    with served(tmp_path / "data", serve={"tails_max": 2}) as opened:
        first, second = Events(opened.port), Events(opened.port)
        said = opened.ask("GET", "/api/v1/tail")
        assert (said.status, said.headers["retry-after"]) == (429, "1")
        assert "serve.tails_max" in said.message
        first.close()

        def is_free() -> bool:
            with Events(opened.port) as third:
                return third.status == 200

        assert soon(is_free)
        assert opened.ask("GET", "/api/v1/status").status == 200
        second.close()


def test_a_stop_ends_tails_at_once(tmp_path: Path) -> None:
    """With the last chunk, so that clients see a regular end."""
    ended = threading.Event()

    def read(events: Events) -> None:
        for _ in events:
            continue
        ended.set()

    with served(tmp_path / "data") as opened:
        events = Events(opened.port)
        thread = threading.Thread(target=read, args=(events,))
        thread.start()
        closing = asyncio.run_coroutine_threadsafe(opened.api.close(60), opened.loop)
        assert ended.wait(30)
        closing.result(30)
        thread.join()
        events.close()


def test_a_tail_reads_no_further_than_its_client(there: Served) -> None:
    """Rows stay in the hot tier; the node polls again only after the client has read."""
    head = b"GET /api/v1/tail?rate=500 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", there.port))
        client.sendall(head)
        assert client.recv(10).startswith(b"HTTP/1.1 2")
        for _ in range(30):
            send(there, 500, name="x" * 200)
            assert there.waiting_bytes() < 4 * 1024 * 1024
        with Events(there.port) as other:
            wanted = send(there, 3)
            found: list[str] = []
            while found[-3:] != wanted:  # rows that became visible after the connect
                found += bodies(other.until(1))


def test_spans_and_metrics_too(there: Served) -> None:
    """Rows as they are, without what is not there; JSON to the last number."""
    with (
        Events(there.port, table="spans") as spans,
        Events(there.port, table="metrics") as metrics,
    ):
        shop = traffic(3, 4)
        exports = [*shop.advance(START_NS + 5 * NS_PER_S), *shop.end()]
        for each in exports:
            answer = send_http(
                there.rooms.otlp.http_port,
                f"/v1/{each.signal}",
                each.body,
                {"Content-Type": PROTOBUF},
            )
            assert answer.status == 200
        sent = parse(exports)
        for events, told, name in (
            (spans, sent.spans, "span_id"),
            (metrics, sent.points, "metric_name"),
        ):
            found = events.until(1)
            skipped = sum(each.data["count"] for each in found if each.kind == "skipped")
            rows = [each.data for each in found if each.kind == "message"]
            assert 0 < len(rows) + skipped <= len(told)
            assert all(None not in row.values() and row[name] for row in rows)
            assert json.dumps(rows, allow_nan=False)


def test_many_tails_of_the_same_rows_share_their_queries(there: Served) -> None:
    """Each gets every row once; a resuming one catches up by itself, then joins."""
    queries = find("frazil.query.queries")
    assert isinstance(queries, Counter)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Events(there.port))
        early = send(there, 2)
        place = first.until(2)[-1].place
        missed = send(there, 3)
        first.until(3)
        before = queries.total()
        others = [stack.enter_context(Events(there.port)) for _ in range(30)]
        late = stack.enter_context(Events(there.port, last=place))
        wanted: list[str] = []
        for _ in range(4):
            wanted += send(there, 2)
        for events in (first, *others):
            assert bodies(events.until(len(wanted))) == wanted
        assert bodies(late.until(3 + len(wanted))) == [*missed, *wanted]
        assert early
    assert queries.total() - before <= 4 + 2, "31 tails were polled one by one"

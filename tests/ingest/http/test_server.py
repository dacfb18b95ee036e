"""OTLP/HTTP: responses, what is stored, keep-alive, shutdown and CORS."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from frazil.errors import Unavailable
from frazil.httpd import PREFLIGHT_AGE_S
from frazil.httpd.auth import Auth
from frazil.httpd.head import HEADERS_MAX
from frazil.ingest.admission import IN_FLIGHT
from frazil.ingest.http.server import OtlpHttp
from frazil.ingest.receiver import REFUSED_REQUESTS
from frazil.model import KiB, Signal
from frazil.settings import IngestConfig
from tests.conformance.cases import log, logs
from tests.ingest.raw_http import JSON, PROTOBUF, RawClient, chunked, connected, head, post
from tests.ingest.serving import Serving, inside, serving, soon

LOGS = Signal.LOGS
NUMBERS = itertools.count(1_000_000)

CONFIG = IngestConfig(
    grpc_port=0,
    http_port=0,
    body_bytes_max=256 * KiB,
    cors_origins=("http://localhost:*", "https://shop.example"),
)

INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT.value[0]
RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED.value[0]
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE.value[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data"), CONFIG) as both:
        yield both


@pytest.fixture
def client(served: Serving) -> Iterator[RawClient]:
    with connected(served.otlp.http_port) as raw:
        yield raw


def fresh() -> bytes:
    """Return a valid request that no other test sends."""
    return logs(log(next(NUMBERS)))


def connections(served: Serving) -> int:
    """Return the number of open connections."""
    return served.on_loop(lambda: len(served.otlp._http._port._connections.active))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request without a body, and its response. `code` is that of the Status in the body."""

    status: int
    code: int
    method: str = "POST"
    path: str = "/v1/logs"
    content_type: str | None = PROTOBUF
    headers: dict[str, str] = field(default_factory=dict)
    answer_type: str = PROTOBUF
    answered: dict[str, str] = field(default_factory=dict)
    says: str = ""


REFUSED = {
    "another path": Case(status=404, code=UNIMPLEMENTED, path="/v2/logs", says="/v1/traces"),
    "a path that ends in a slash": Case(status=404, code=UNIMPLEMENTED, path="/v1/logs/"),
    "GET": Case(
        status=405,
        code=UNIMPLEMENTED,
        method="GET",
        content_type=None,
        answer_type=JSON,
        answered={"allow": "POST"},
    ),
    "OPTIONS that is no preflight": Case(
        status=405, code=UNIMPLEMENTED, method="OPTIONS", answered={"allow": "POST"}
    ),
    "no type": Case(
        status=415,
        code=INVALID_ARGUMENT,
        content_type=None,
        answer_type=JSON,
        says="application/x-protobuf or application/json",
    ),
    "two types": Case(
        status=415,
        code=INVALID_ARGUMENT,
        headers={"content-type": PROTOBUF},
        answer_type=JSON,
    ),
    "text": Case(
        status=415, code=INVALID_ARGUMENT, content_type="text/plain", answer_type=JSON, says="text"
    ),
    "an unknown encoding": Case(
        status=415,
        code=INVALID_ARGUMENT,
        headers={"Content-Encoding": "br"},
        answered={"accept-encoding": "gzip, zstd, deflate"},
        says="'br'",
    ),
    "an unknown encoding, in JSON": Case(
        status=415,
        code=INVALID_ARGUMENT,
        content_type=JSON,
        headers={"Content-Encoding": "br"},
        answer_type=JSON,
    ),
    "two encodings": Case(
        status=400, code=INVALID_ARGUMENT, headers={"Content-Encoding": "gzip, gzip"}
    ),
    "two encodings in two headers": Case(
        status=400,
        code=INVALID_ARGUMENT,
        headers={"Content-Encoding": "gzip", "content-encoding": "zstd"},
    ),
    "gzip of nothing at all": Case(
        status=400, code=INVALID_ARGUMENT, headers={"Content-Encoding": "gzip"}
    ),
    "JSON of nothing at all": Case(
        status=400, code=INVALID_ARGUMENT, content_type=JSON, answer_type=JSON
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_carries_a_status_in_the_type_of_the_request(
    name: str, client: RawClient, served: Serving
) -> None:
    """JSON for unsupported types. The connection is kept, because nothing was left unread."""
    case, before = REFUSED[name], served.end_offset(LOGS)
    client.send(head(case.method, case.path, content_type=case.content_type, headers=case.headers))
    reply = client.reply()
    code, message = reply.error()
    assert (reply.status, code) == (case.status, case.code)
    assert reply.headers["content-type"] == case.answer_type
    assert case.answered.items() <= reply.headers.items()
    assert case.says in message
    assert not reply.is_last
    assert "retry-after" not in reply.headers
    assert served.stored_since(LOGS, before) == []
    body = fresh()
    client.send(post(body))
    assert client.reply().status == 200
    assert served.stored_since(LOGS, before) == [body]


@pytest.mark.parametrize("signal", Signal)
@pytest.mark.parametrize(
    ("content_type", "answer_type", "body", "answer"),
    [
        (PROTOBUF, PROTOBUF, b"", b""),
        ("application/protobuf", PROTOBUF, b"", b""),
        ("APPLICATION/JSON;charset=utf-8", JSON, b"{}", b"{}"),
    ],
)
def test_success_is_the_response_message_in_the_type_of_the_request(
    signal: Signal,
    content_type: str,
    answer_type: str,
    body: bytes,
    answer: bytes,
    client: RawClient,
) -> None:
    """The only extra header is the date."""
    client.send(post(body, signal.path, content_type=content_type))
    reply = client.reply()
    assert (reply.status, reply.body) == (200, answer)
    assert reply.headers.keys() == {"date", "content-type", "content-length"}
    assert reply.headers["content-type"] == answer_type


def test_json_is_stored_as_protobuf(client: RawClient, served: Serving) -> None:
    before, number = served.end_offset(LOGS), next(NUMBERS)
    record = {"timeUnixNano": str(number), "body": {"stringValue": "x"}}
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    client.send(post(json.dumps(request).encode(), content_type=JSON))
    assert client.reply().body == b"{}"
    wanted = log(0, time_unix_nano=number)
    wanted.body.string_value = "x"
    assert served.stored_since(LOGS, before) == [logs(wanted)]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_rejected_records_are_reported_as_partial_success(
    content_type: str, client: RawClient, served: Serving
) -> None:
    before = served.end_offset(LOGS)
    bodies = {
        PROTOBUF: logs(log(next(NUMBERS), trace_id=b"short"), log(next(NUMBERS))),
        JSON: json.dumps(
            {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": str(2**63)}]}]}]}
        ).encode(),
    }
    client.send(post(bodies[content_type], content_type=content_type))
    reply = client.reply()
    assert reply.status == 200
    if content_type == JSON:
        partial = json.loads(reply.body)["partialSuccess"]
        assert (partial["rejectedLogRecords"], bool(partial["errorMessage"])) == ("1", True)
    else:
        assert b"\x08\x01" in reply.body
    assert len(served.stored_since(LOGS, before)) == (content_type == PROTOBUF)


# Bodies.


@pytest.mark.parametrize(
    "trailer", [b"", b"Content-Encoding: gzip\r\nAuthorization: Bearer x\r\n"], ids=["", "trailer"]
)
def test_a_chunked_body_is_one_body(trailer: bytes, client: RawClient, served: Serving) -> None:
    """Trailers are not taken for headers."""
    before, body = served.end_offset(LOGS), fresh()
    data = chunked(*(body[i : i + 1] for i in range(len(body))))
    client.send(head(headers={"Transfer-Encoding": "Chunked"}) + data[:-2] + trailer + b"\r\n")
    assert client.reply().status == 200
    assert served.stored_since(LOGS, before) == [body]


def test_a_body_of_the_largest_size_is_accepted(client: RawClient, served: Serving) -> None:
    before = served.end_offset(LOGS)
    body = logs(log(next(NUMBERS), event_name="x" * (CONFIG.body_bytes_max - 100)))
    assert 0 <= CONFIG.body_bytes_max - len(body) < 100
    client.send(post(body))
    assert client.reply().status == 200
    assert served.stored_since(LOGS, before) == [body]


def test_received_and_decompressed_bytes_are_both_in_flight(
    client: RawClient, served: Serving
) -> None:
    body = logs(log(next(NUMBERS), event_name="x" * 100 * KiB))
    packed = gzip.compress(body)
    with served.log.writer._turn:  # so that it is not answered yet
        client.send(post(packed, headers={"Content-Encoding": "gzip"}))
        assert soon(lambda: IN_FLIGHT.value() == len(packed) + len(body))
    assert client.reply().status == 200
    assert soon(lambda: IN_FLIGHT.value() == 0)


def test_a_content_length_above_the_limit_is_refused_unread(
    client: RawClient, served: Serving
) -> None:
    """The response comes before the body, and closes the connection."""
    before = served.end_offset(LOGS)
    client.send(head(headers={"Content-Length": str(CONFIG.body_bytes_max + 1)}))
    reply = client.reply()
    assert (reply.status, reply.error()[0], reply.is_last) == (413, RESOURCE_EXHAUSTED, True)
    assert "retry-after" not in reply.headers
    client.send(bytes(CONFIG.body_bytes_max + 1))  # is dropped
    assert client.is_closed()
    assert served.stored_since(LOGS, before) == []


def test_chunks_above_the_limit_are_refused(client: RawClient, served: Serving) -> None:
    """A body without a length is counted while it arrives."""
    before = served.end_offset(LOGS)
    client.send(head(headers={"Transfer-Encoding": "chunked"}))
    piece = bytes(CONFIG.body_bytes_max // 4)
    client.send(chunked(*[piece] * 5)[:-5])  # without the last chunk
    reply = client.reply()
    assert (reply.status, reply.error()[0], reply.is_last) == (413, RESOURCE_EXHAUSTED, True)
    assert client.is_closed()
    assert (served.stored_since(LOGS, before), inside(served)) == ([], 0)


def test_a_refused_body_is_never_taken_for_a_request(client: RawClient, served: Serving) -> None:
    before, hidden = served.end_offset(LOGS), post(fresh())
    client.send(post(hidden, content_type="text/plain")[: -len(hidden)])
    reply = client.reply()
    assert (reply.status, reply.is_last) == (415, True)
    client.send(hidden)
    assert client.is_closed()
    assert served.stored_since(LOGS, before) == []


def test_100_continue_is_sent_once_the_request_is_admitted(
    client: RawClient, served: Serving
) -> None:
    before, body = served.end_offset(LOGS), fresh()
    expecting = {"Expect": "100-continue", "Content-Length": str(len(body))}
    client.send(head(headers=expecting))
    assert client.reply().status == 100
    client.send(body)
    assert client.reply().status == 200
    assert served.stored_since(LOGS, before) == [body]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (413, {"Content-Length": "999999999"}),
        (415, {"Content-Length": "5", "Content-Encoding": "br"}),
    ],
)
def test_a_refused_request_gets_no_100_continue(
    status: int, headers: dict[str, str], client: RawClient
) -> None:
    client.send(head(headers={"Expect": "100-continue", **headers}))
    reply = client.reply()
    assert (reply.status, reply.is_last) == (status, True)
    assert client.is_closed()


# Connections.


def test_a_connection_serves_many_requests(client: RawClient, served: Serving) -> None:
    """With responses of every kind in between."""
    before, bodies = served.end_offset(LOGS), [fresh() for _ in range(20)]
    for body in bodies:
        client.send(post(body))
        reply = client.reply()
        assert (reply.status, reply.is_last) == (200, False)
        client.send(post(b"\xff"))
        reply = client.reply()
        assert (reply.status, reply.error()[0], reply.is_last) == (400, INVALID_ARGUMENT, False)
    assert served.stored_since(LOGS, before) == bodies


@pytest.mark.parametrize(
    ("version", "headers"),
    [("1.0", {}), ("1.1", {"Connection": "close"}), ("1.0", {"Connection": "keep-alive"})],
)
def test_the_connection_is_closed_after_http_1_0_or_connection_close(
    version: str, headers: dict[str, str], client: RawClient, served: Serving
) -> None:
    before, body = served.end_offset(LOGS), fresh()
    client.send(post(body, version=version, headers=headers))
    reply = client.reply()
    assert (reply.status, reply.is_last) == (200, True)
    assert client.is_closed()
    assert served.stored_since(LOGS, before) == [body]


def test_an_idle_connection_holds_no_body(client: RawClient, served: Serving) -> None:
    """A body that was refused unread is released with its response."""
    client.send(post(bytes(4 * KiB), content_type="text/plain"))
    reply = client.reply()
    assert (reply.status, reply.is_last) == (415, False)
    assert soon(lambda: connections(served) == 1)  # those of other tests are gone

    def held() -> list[int]:
        known = served.otlp._http._port._connections.active
        return [0 if each.exchange is None else len(each.exchange.body) for each in known]

    assert served.on_loop(held) == [0]


@pytest.mark.parametrize("connection", ["Upgrade, HTTP2-Settings", "upgrade, close"])
def test_an_upgrade_offer_is_ignored(connection: str, client: RawClient, served: Serving) -> None:
    """Java's client offers HTTP/2 with its first request; its body must not be lost."""
    before, body = served.end_offset(LOGS), fresh()
    offer = {"Connection": connection, "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAB"}
    request = post(body, headers=offer)
    client.send(request[:-5])
    assert served.stored_since(LOGS, before) == []
    client.send(request[-5:])
    reply = client.reply()
    assert (reply.status, reply.is_last) == (200, "close" in connection)
    assert served.stored_since(LOGS, before) == [body]


def test_one_header_above_the_limit_is_refused(client: RawClient) -> None:
    """The limit is the last count that is allowed."""
    many = {f"X-{number}": "x" for number in range(HEADERS_MAX - 3)}
    client.send(post(b"", headers=many))  # and Host, Content-Type, Content-Length
    assert client.reply().status == 200
    client.send(post(b"", headers={**many, "X-More": "x"}))
    reply = client.reply()
    assert (reply.status, reply.error()[0], reply.is_last) == (431, RESOURCE_EXHAUSTED, True)


# Disconnects and shutdown.


def test_an_incomplete_body_stores_nothing(served: Serving) -> None:
    """Its slot is released when the connection ends."""
    before, request = served.end_offset(LOGS), post(fresh())
    with connected(served.otlp.http_port) as client:
        client.send(request[:-1])
        assert soon(lambda: inside(served) == 1)
    assert soon(lambda: inside(served) == 0)
    assert served.stored_since(LOGS, before) == []


def test_a_complete_request_is_stored_though_its_client_leaves(served: Serving) -> None:
    before, body = served.end_offset(LOGS), fresh()
    with served.log.writer._turn:  # nothing becomes durable meanwhile
        with connected(served.otlp.http_port) as client:
            client.send(post(body))
            assert soon(lambda: inside(served) == 1)
        assert soon(lambda: connections(served) == 0)
        assert inside(served) == 1
    assert soon(lambda: served.stored_since(LOGS, before) == [body])
    assert soon(lambda: inside(served) == 0)


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Serving]:
    """A server that the test may stop or break."""
    with serving(tmp_path, CONFIG) as both:
        yield both


def test_a_stopping_server_answers_admitted_requests(private: Serving) -> None:
    """Idle connections are closed, and new ones refused."""
    port, body = private.otlp.http_port, fresh()
    http = private.otlp._http
    with connected(port) as idle, connected(port) as busy:
        idle.send(post(b""))
        assert idle.reply().status == 200
        with private.log.writer._turn:
            busy.send(post(body))
            assert soon(lambda: inside(private) == 1)
            closing = asyncio.run_coroutine_threadsafe(http.close(60), private.loop)
            assert idle.is_closed()
            assert not closing.done()
        reply = busy.reply()
        assert (reply.status, reply.is_last) == (200, True)
        assert busy.is_closed()
        closing.result(60)
    with pytest.raises(ConnectionError), connected(port):
        pass
    assert private.stored_since(LOGS, 0) == [body]


def test_a_stopping_server_cuts_off_requests_after_the_grace_period(private: Serving) -> None:
    with connected(private.otlp.http_port) as client:
        client.send(post(fresh())[:-1])
        assert soon(lambda: inside(private) == 1)
        asyncio.run_coroutine_threadsafe(private.otlp._http.close(0.01), private.loop).result(60)
        assert client.is_closed()
    assert (inside(private), private.stored_since(LOGS, 0)) == (0, [])


def test_a_draining_server_answers_503_with_a_hint(private: Serving) -> None:
    """Before the body is read."""
    private.on_loop(private.otlp._gate.drain)
    with connected(private.otlp.http_port) as client:
        client.send(head(headers={"Content-Length": "10"}))
        reply = client.reply()
        assert (reply.status, reply.error()[0], reply.is_last) == (503, UNAVAILABLE, True)
        assert int(reply.headers["retry-after"]) >= 1


def test_a_full_server_answers_429_with_a_hint(tmp_path: Path) -> None:
    """A client that has sent its whole body keeps its connection."""
    config = IngestConfig(grpc_port=0, http_port=0, requests_max=1)
    with serving(tmp_path, config) as full, connected(full.otlp.http_port) as first:
        first.send(post(fresh())[:-1])
        assert soon(lambda: inside(full) == 1)
        with connected(full.otlp.http_port) as second:
            second.send(post(fresh()))
            reply = second.reply()
            assert (reply.status, reply.error()[0], reply.is_last) == (429, UNAVAILABLE, False)
            assert int(reply.headers["retry-after"]) >= 1


def test_an_unexpected_error_is_503_and_logged_once(
    client: RawClient,
    served: Serving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = {"signal": "logs", "transport": "http", "reason": "unavailable"}
    before = REFUSED_REQUESTS.value(**refused)
    monkeypatch.setattr("frazil.ingest.http.exports.response_of", lambda *_: 1 / 0)
    with caplog.at_level(logging.INFO):
        client.send(post(fresh()))
        reply = client.reply()
    assert (reply.status, reply.error()[0], reply.is_last) == (503, UNAVAILABLE, False)
    assert reply.headers["retry-after"] == "1"
    assert b"ZeroDivisionError" not in reply.body
    assert [record.message for record in caplog.records] == ["request failed"]
    assert REFUSED_REQUESTS.value(**refused) == before + 1
    monkeypatch.undo()
    client.send(post(fresh()))
    assert client.reply().status == 200


def test_a_port_in_use_is_named_in_the_error(served: Serving) -> None:
    config = IngestConfig(grpc_port=0, http_port=served.otlp.http_port)

    async def open_again() -> None:
        await OtlpHttp.open(config, Auth(), served.otlp._receiver)

    with pytest.raises(Unavailable, match=rf"port {config.http_port}: .*ingest\.http_port"):
        asyncio.run(open_again())


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_ipv6_loopback_can_be_listened_on(tmp_path: Path) -> None:
    with (
        serving(tmp_path, IngestConfig(host="::1", grpc_port=0, http_port=0)) as six,
        socket.create_connection(("::1", six.otlp.http_port), timeout=30) as connection,
    ):
        client = RawClient(connection)
        client.send(post(b""))
        assert client.reply().status == 200


# Browsers.

CORS = ("access-control-allow-origin", "access-control-expose-headers")
PREFLIGHT = (
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
)
ORIGINS = {
    "http://localhost": True,
    "http://localhost:3000": True,
    "http://localhost:3000.evil.example": False,
    "http://localhost:": False,
    "http://localhost.evil.example": False,
    "https://localhost:3000": False,
    "https://shop.example": True,
    "https://shop.example:444": False,
    "http://shop.example": False,
    "https://evil.example": False,
    "null": False,
    "*": False,
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_preflight_is_answered_by_origin(origin: str, client: RawClient) -> None:
    """Allowed origins learn what they may send, without a token."""
    wanted = "content-type,authorization,x-custom"
    asks = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": wanted,
    }
    client.send(head("OPTIONS", content_type=None, headers=asks))
    reply = client.reply()
    assert (reply.status, reply.body, reply.is_last) == (204, b"", False)
    assert reply.headers["vary"] == "Origin"
    assert reply.headers.get(CORS[0]) == (origin if ORIGINS[origin] else None)
    assert tuple(map(reply.headers.get, PREFLIGHT)) == ("POST", wanted, str(PREFLIGHT_AGE_S))
    assert "content-length" not in reply.headers


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("body", [b"", b"\xff"], ids=["200", "400"])
def test_allowed_origins_can_read_responses(origin: str, body: bytes, client: RawClient) -> None:
    """Also errors and retry hints. Other pages are refused: nothing they send is stored."""
    client.send(post(body, headers={"Origin": origin}))
    reply = client.reply()
    assert reply.status == ((400 if body else 200) if ORIGINS[origin] else 403)
    assert reply.headers["vary"] == "Origin"
    allowed = (origin, "Retry-After") if ORIGINS[origin] else (None, None)
    assert tuple(map(reply.headers.get, CORS)) == allowed


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4318", ""])
def test_a_foreign_host_name_is_refused(host: str, client: RawClient) -> None:
    """DNS rebinding: the name of a foreign page that resolves to this machine."""
    client.send(post(fresh()).replace(b"Host: localhost", b"Host: " + host.encode()))
    reply = client.reply()
    assert reply.status == 403
    assert b"use localhost or 127.0.0.1" in reply.body


def test_a_star_allows_every_origin(tmp_path: Path) -> None:
    config = IngestConfig(grpc_port=0, http_port=0, cors_origins=("*",))
    with serving(tmp_path, config) as open_to_all, connected(open_to_all.otlp.http_port) as client:
        client.send(post(b"", headers={"Origin": "https://any.example"}))
        assert client.reply().headers[CORS[0]] == "https://any.example"


def test_a_preflight_echoes_only_valid_header_names(client: RawClient) -> None:
    asks = {
        "Origin": "http://localhost",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-(evil)",
    }
    client.send(head("OPTIONS", content_type=None, headers=asks))
    assert PREFLIGHT[1] not in client.reply().headers

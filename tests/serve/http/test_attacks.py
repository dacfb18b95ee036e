"""Attacks on the API: each has a bounded cost, gets a response and harms no other client."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil.errors import Malformed, Unauthenticated, Unavailable
from frazil.model import KiB, MiB
from tests.ingest.certificates import Certificates, make_certificates
from tests.ingest.raw_http import JSON, RawClient, chunked, connected, head, post
from tests.ingest.serving import soon
from tests.serve.served import Served, fill, served

ROWS = 2000
MANY = "SELECT a.*, b.event_name FROM logs a CROSS JOIN logs b"
"""Some gigabytes of rows."""
ASKED = post(json.dumps({"sql": "SELECT 1"}).encode(), "/api/v1/sql", content_type=JSON)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("attacks") / "data") as opened:
        fill(opened, ROWS)
        assert opened.sql(f"{MANY} LIMIT 1").status == 200  # starts the worker
        yield opened


@pytest.fixture
def client(there: Served) -> Iterator[RawClient]:
    with connected(there.port) as raw:
        yield raw


UNREADABLE = {
    "length and chunks": head(headers={"Content-Length": "5", "Transfer-Encoding": "chunked"}),
    "a length below zero": head(headers={"Content-Length": "-4"}),
    "a header without a name": b"GET /livez HTTP/1.1\r\n: a\r\n\r\n",
    "an unknown method": b"FETCH /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
    "nothing but zeros": bytes(100),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_ambiguous_requests_are_refused(name: str, client: RawClient) -> None:
    """In the words of this API, and what follows is never a request."""
    client.send(UNREADABLE[name] + ASKED)
    reply = client.reply()
    assert (reply.status, reply.is_last) == (400, True)
    assert json.loads(reply.body)["error"]["message"]
    assert client.is_closed()


def test_a_connection_is_reused_without_pipelining(client: RawClient) -> None:
    """A connection is reused, also after an error. A client that does not wait for its response
    gets only that one."""
    wrong = post(b"{}", "/api/v1/sql", content_type=JSON)
    lone = head("GET", "/livez", content_type=None)
    parts = head("POST", "/api/v1/sql", content_type=JSON, headers={"Transfer-Encoding": "chunked"})
    whole = parts + chunked(b'{"sql":', b'"SELECT 1"}')
    statuses = []
    for request in (ASKED, wrong, lone, whole, ASKED):
        client.send(request)
        statuses.append(client.reply().status)
    assert statuses == [200, 400, 200, 200, 200]
    client.send(ASKED + lone)
    reply = client.reply()
    assert (reply.status, reply.is_last) == (200, True)
    assert json.loads(reply.body)["rows"] == [[1]]
    assert client.is_closed()


def test_a_slow_body_times_out(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.serve.http.request.BODY_TIMEOUT_S", 0.2)
    client.send(ASKED[:-3])
    reply = client.reply()
    assert (reply.status, json.loads(reply.body)["error"]["kind"]) == (408, "request_timeout")
    assert client.is_closed()


@pytest.mark.parametrize("how", ["arrow", "csv"])
def test_rows_are_produced_only_while_the_client_reads(there: Served, how: str) -> None:
    """A slow reader holds a piece or two, which are released on disconnect."""
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(slow_reader(there, how))
        for _ in range(20):
            there.rooms.clock.sleep(0.01)
            assert there.waiting_bytes() < 2 * 8 * MiB
        assert there.sql("SELECT 1").json["rows"] == [[1]]
    assert soon(lambda: there.waiting_bytes() == 0)


@contextlib.contextmanager
def slow_reader(there: Served, how: str) -> Iterator[socket.socket]:
    body = json.dumps({"sql": MANY, "format": how, "details": True}).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KiB)
        client.settimeout(60)
        client.connect(("127.0.0.1", there.port))
        client.sendall(post(body, "/api/v1/sql", content_type=JSON))
        assert client.recv(12) == b"HTTP/1.1 200"
        yield client


def test_a_client_that_never_reads_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query is cancelled, too."""
    monkeypatch.setattr("frazil.serve.server.FETCH_TIMEOUT_S", 0.3)
    with served(tmp_path / "data") as opened:
        fill(opened, 500)
        assert opened.sql(f"{MANY} LIMIT 1").status == 200
        with slow_reader(opened, "arrow"):
            assert soon(lambda: not opened.api._port._connections.active)


def test_excess_connections_get_an_error(tmp_path: Path) -> None:
    """Those that are open are served on; one more is told to come back, in words of the API."""
    with served(tmp_path / "data", serve={"connections_max": 4}) as opened:
        with contextlib.ExitStack() as stack:
            first = [stack.enter_context(connected(opened.port)) for _ in range(4)]
            for each in first:
                each.send(ASKED)
                assert each.reply().status == 200
            with connected(opened.port) as fifth:
                reply = fifth.reply()
                assert (reply.status, reply.is_last) == (503, True)
                assert "serve.connections_max" in json.loads(reply.body)["error"]["message"]
            for each in first:
                each.send(ASKED)
                assert each.reply().status == 200
        assert soon(lambda: opened.sql("SELECT 1").status == 200)


# TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_a_node_with_tls(tmp_path: Path, certificates: Certificates) -> None:
    """Clients that trust the certificate connect; others get an explanation."""
    (tmp_path / "tokens").write_text("correct-horse-battery-staple\n")
    ingest = {
        "tls_certificate_file": certificates.server_certificate,
        "tls_key_file": certificates.server_key,
        "token_file": str(tmp_path / "tokens"),
    }
    with served(tmp_path / "data", ingest=ingest) as opened:
        fill_tls = f"https://127.0.0.1:{opened.port}"
        known = {"token": "correct-horse-battery-staple", "ca_file": certificates.authority}
        remote = frazil.connect(fill_tls, **known)
        assert remote.sql("SELECT 1 AS a, 'x' AS b").fetchall() == [(1, "x")]
        assert remote.get("/api/v1/logs")["logs"] == []
        with pytest.raises(Unauthenticated):
            frazil.connect(fill_tls, ca_file=certificates.authority).sql("SELECT 1")
        with pytest.raises(Unavailable, match="certificate"):
            frazil.connect(fill_tls).sql("SELECT 1")
        with pytest.raises(Unavailable, match="cannot be reached"):
            frazil.connect(f"http://127.0.0.1:{opened.port}").sql("SELECT 1")
    with pytest.raises(Malformed, match="no PEM certificates"):
        frazil.connect("https://127.0.0.1:1", ca_file=str(tmp_path / "absent"))


def test_client_certificates_are_required(tmp_path: Path, certificates: Certificates) -> None:
    """Where the node wants one, the API wants it as OTLP does."""
    ingest = {
        "tls_certificate_file": certificates.server_certificate,
        "tls_key_file": certificates.server_key,
        "tls_client_ca_file": certificates.authority,
    }
    anonymous = ssl.create_default_context(cafile=certificates.authority)
    known = ssl.create_default_context(cafile=certificates.authority)
    known.load_cert_chain(certificates.client_certificate, certificates.client_key)
    with served(tmp_path / "data", ingest=ingest) as opened:
        with contextlib.suppress(ssl.SSLError), connected(opened.port, anonymous) as client:
            client.send(ASKED)
            assert client.is_closed()
        with connected(opened.port, known) as client:
            client.send(ASKED)
            assert client.reply().status == 200

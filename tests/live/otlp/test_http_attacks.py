"""OTLP/HTTP under attack: each attack costs little and affects no other client."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import re
import ssl
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import zstandard

from frazil.httpd.auth import PAUSED_MAX
from frazil.httpd.connection import REFUSED
from frazil.httpd.head import HEAD_BYTES_MAX
from frazil.ingest.http.server import TARGET_BYTES_MAX
from frazil.model import GiB, KiB, MiB, Signal
from frazil.settings import IngestConfig
from tests.conformance.cases import log, logs
from tests.ingest.certificates import Certificates, make_certificates
from tests.ingest.raw_http import JSON, RawClient, chunked, connected, head, post
from tests.ingest.serving import Serving, inside, serving, soon

LOGS = Signal.LOGS
NUMBERS = itertools.count(2_000_000)
TOKEN = "correct-horse-battery-staple"

INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT.value[0]
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED.value[0]
DEADLINE_EXCEEDED = grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE.value[0]

CONFIG = IngestConfig(grpc_port=0, http_port=0, body_bytes_max=256 * KiB)


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


def check_service(served: Serving) -> None:
    """Check that another client is served."""
    before, body = served.end_offset(LOGS), fresh()
    with connected(served.otlp.http_port) as other:
        other.send(post(body))
        assert other.reply().status == 200
    assert served.stored_since(LOGS, before) == [body]


# Ambiguous and invalid requests.

HIDDEN = post(fresh())
"""What an attacker wants the server to take for a second request."""
CHUNKED = "Transfer-Encoding: chunked\r\n"
GOOD_END = "0\r\n\r\n"


def lines(*headers: str, first: str = "POST /v1/logs HTTP/1.1", body: str = "") -> bytes:
    return f"{first}\r\n{''.join(headers)}\r\n{body}".encode("latin-1")


UNREADABLE = {
    "length and chunks": lines("Content-Length: 5\r\n", CHUNKED, body=GOOD_END),
    "chunks and length": lines(CHUNKED, "Content-Length: 5\r\n", body=GOOD_END),
    "two lengths": lines("Content-Length: 4\r\n", "Content-Length: 5\r\n"),
    "the same length twice": lines("Content-Length: 4\r\n", "Content-Length: 4\r\n"),
    "a list of lengths": lines("Content-Length: 4, 4\r\n"),
    "a length with a sign": lines("Content-Length: +4\r\n"),
    "a length below zero": lines("Content-Length: -4\r\n"),
    "a length in hexadecimal": lines("Content-Length: 0x4\r\n"),
    "a length that is empty": lines("Content-Length: \r\n"),
    "a length above 64 bits": lines("Content-Length: 18446744073709551616\r\n"),
    "a header on two lines": lines("X-A: b\r\n c\r\n", "Content-Length: 0\r\n"),
    "chunks on two lines": lines("Transfer-Encoding:\r\n chunked\r\n", body=GOOD_END),
    "a space before the colon": lines("Content-Length : 4\r\n"),
    "a header without a name": lines(": value\r\n"),
    "a header without a colon": lines("Content-Length\r\n"),
    "lines that end in LF": b"POST /v1/logs HTTP/1.1\nContent-Length: 0\n\n",
    "a CR within a header": lines("X-A: b\rContent-Length: 4\r\n"),
    "a NUL in a header": lines("X-A: b\0\r\n"),
    "a chunk of no number": lines(CHUNKED, body="zz\r\n"),
    "a chunk below zero": lines(CHUNKED, body="-1\r\n"),
    "a chunk above 64 bits": lines(CHUNKED, body="10000000000000000\r\n"),
    "a chunk longer than it says": lines(CHUNKED, body="1\r\nxx\r\n"),
    "a chunk that ends in LF": lines(CHUNKED, body="1\nx\n0\n\n"),
    "an unknown transfer coding": lines("Transfer-Encoding: magic\r\n"),
    "a coding before chunks": lines("Transfer-Encoding: gzip, chunked\r\n", body=GOOD_END),
    "a coding after chunks": lines("Transfer-Encoding: chunked, gzip\r\n", body=GOOD_END),
    "chunks twice": lines(CHUNKED, CHUNKED, body=GOOD_END),
    "chunks in HTTP/1.0": lines(CHUNKED, first="POST /v1/logs HTTP/1.0", body=GOOD_END),
    "HTTP/0.9": b"GET /v1/logs\r\n\r\n",
    "HTTP/1.2": lines(first="POST /v1/logs HTTP/1.2"),
    "HTTP/2.0": lines(first="POST /v1/logs HTTP/2.0"),
    "HTTP/2, as gRPC speaks it": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
    "an unknown method": lines(first="FETCH /v1/logs HTTP/1.1"),
    "no path": lines(first="POST  HTTP/1.1"),
    "a path outside ASCII": lines(first="POST /v1/lögs HTTP/1.1"),
    "nothing but zeros": bytes(100),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_ambiguous_request_is_refused_and_closes_the_connection(
    name: str, client: RawClient, served: Serving
) -> None:
    """What follows it is never taken for a request."""
    before = served.end_offset(LOGS)
    client.send(UNREADABLE[name] + HIDDEN)
    reply = client.reply()
    code, message = reply.error()
    assert (reply.status, code, reply.is_last) == (400, INVALID_ARGUMENT, True)
    assert reply.headers["content-type"] == JSON
    assert message
    assert client.is_closed()
    assert served.stored_since(LOGS, before) == []
    assert inside(served) == 0


def test_connect_is_refused(client: RawClient) -> None:
    client.send(lines(first="CONNECT example.org:80 HTTP/1.1") + HIDDEN)
    reply = client.reply()
    assert (reply.status, reply.headers["allow"], reply.is_last) == (405, "POST", True)
    assert client.is_closed()


@pytest.mark.parametrize(
    "more",
    [post(fresh()), post(fresh()) * 1000, b"garbage\r\n\r\n", b"\0", bytes(300 * KiB)],
    ids=["another", "a thousand", "garbage", "a zero", "many zeros"],
)
def test_pipelined_requests_are_refused(more: bytes, client: RawClient, served: Serving) -> None:
    """The first is answered, and nothing is queued."""
    before, body = served.end_offset(LOGS), fresh()
    client.send(post(body) + more)
    reply = client.reply()
    assert (reply.status, reply.is_last) == (200, True)
    assert client.is_closed()
    assert served.stored_since(LOGS, before) == [body]


def test_empty_lines_between_requests_are_ignored(client: RawClient, served: Serving) -> None:
    """Old clients send one too many."""
    before, bodies = served.end_offset(LOGS), [fresh(), fresh()]
    for body in bodies:
        client.send(post(body) + b"\r\n")
        reply = client.reply()
        assert (reply.status, reply.is_last) == (200, False)
    assert served.stored_since(LOGS, before) == bodies


# Endless heads.

ENDLESS = {
    "a header": (431, head()[:-2] + b"X-A: " + b"a" * (HEAD_BYTES_MAX + 1)),
    "the name of a header": (431, head()[:-2] + b"a" * (HEAD_BYTES_MAX + 1)),
    "headers": (431, head()[:-2] + b"X-A: 12345678\r\n" * 5000),
    "large headers": (431, head(headers={f"X-{n}": "a" * 8000 for n in range(5)})),
    "a path": (414, b"POST /" + b"a" * (TARGET_BYTES_MAX + 1)),
    "a query": (414, b"POST /v1/logs?" + b"a" * TARGET_BYTES_MAX + b" HTTP/1.1\r\n\r\n"),
    "empty lines": (431, b"\r\n" * (HEAD_BYTES_MAX // 2 + 1)),
    "a trailer": (
        431,
        head(headers={"Transfer-Encoding": "chunked"}) + b"0\r\nX-A: " + b"a" * 2 * HEAD_BYTES_MAX,
    ),
    "trailers": (
        431,
        head(headers={"Transfer-Encoding": "chunked"}) + b"0\r\n" + b"X-A: 1234567\r\n" * 5000,
    ),
    "what stands behind the length of a chunk": (
        431,
        head(headers={"Transfer-Encoding": "chunked"}) + b"1;" + b"a" * 2 * HEAD_BYTES_MAX,
    ),
}


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_head_that_is_too_long_is_refused(
    name: str, pieces: int, client: RawClient, served: Serving
) -> None:
    """Whatever can be made long without being a body is refused once it is too long."""
    status, data = ENDLESS[name]
    size = -(-len(data) // pieces)
    for begin in range(0, len(data), size):
        client.send(data[begin : begin + size])
        served.on_loop(lambda: None)  # so that it is read before more is sent
    if client.says_nothing(0.2):  # Excess in one read with useful bytes is forgiven once.
        client.send(b"a" * (HEAD_BYTES_MAX + 1))
    reply = client.reply()
    assert (reply.status, reply.error()[0], reply.is_last) == (status, RESOURCE_EXHAUSTED, True)
    assert client.is_closed()
    assert inside(served) == 0


# Slow clients.


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """A server with short timeouts."""
    monkeypatch.setattr("frazil.httpd.connection.HEAD_TIMEOUT_S", 0.3)
    monkeypatch.setattr("frazil.ingest.http.server.FETCH_TIMEOUT_S", 0.3)
    monkeypatch.setattr("frazil.httpd.connection.IDLE_TIMEOUT_S", 0.3)
    monkeypatch.setattr("frazil.httpd.port.HANDSHAKE_TIMEOUT_S", 0.3)
    config = IngestConfig(grpc_port=0, http_port=0, body_timeout_ms=300)
    with serving(tmp_path, config) as both:
        yield both


def drip(client: RawClient, data: bytes) -> None:
    """Send a byte at a time until the server responds or closes."""
    with contextlib.suppress(ConnectionError):
        for position in range(len(data)):
            client.send(data[position : position + 1])
            if not client.says_nothing(0.02):
                return
    raise AssertionError("the server listens for ever")


def test_slow_headers_time_out(impatient: Serving) -> None:
    """However many bytes arrive meanwhile."""
    with connected(impatient.otlp.http_port) as client:
        drip(client, head() * 100)
        reply = client.reply()
        assert (reply.status, reply.error()[0], reply.is_last) == (408, DEADLINE_EXCEEDED, True)
        assert client.is_closed()
    check_service(impatient)


def test_slow_headers_of_a_later_request_time_out(impatient: Serving) -> None:
    with connected(impatient.otlp.http_port) as client:
        client.send(post(fresh()))
        assert client.reply().status == 200
        drip(client, head() * 100)
        assert client.reply().status == 408
        assert client.is_closed()


@pytest.mark.parametrize("is_used", [False, True], ids=["never used", "used"])
def test_silent_connections_are_closed_without_a_response(
    is_used: bool, impatient: Serving
) -> None:
    with connected(impatient.otlp.http_port) as client:
        if is_used:
            client.send(post(fresh()))
            assert client.reply().status == 200
        assert client.is_closed()


@pytest.mark.parametrize("is_chunked", [False, True])
def test_slow_bodies_time_out(is_chunked: bool, impatient: Serving) -> None:
    """Nothing is stored, and the slot is released."""
    framing = {"Transfer-Encoding": "chunked"} if is_chunked else {"Content-Length": "9999"}
    with connected(impatient.otlp.http_port) as client:
        client.send(head(headers=framing))
        drip(client, chunked(*[b"a"] * 999) if is_chunked else bytes(999))
        reply = client.reply()
        code, message = reply.error()
        assert (reply.status, code, reply.is_last) == (408, DEADLINE_EXCEEDED, True)
        assert "ingest.body_timeout_ms" in message
        assert client.is_closed()
    assert (inside(impatient), impatient.stored_since(LOGS, 0)) == (0, [])
    check_service(impatient)


def test_an_unread_response_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory is released."""
    monkeypatch.setattr("frazil.ingest.http.server.FETCH_TIMEOUT_S", 0.2)
    with serving(tmp_path, CONFIG) as both, connected(both.otlp.http_port) as client:
        connections = both.otlp._http._port._connections.active
        client.send(post(fresh()))
        assert client.reply().status == 200

        def write() -> None:
            (connection,) = connections
            connection.transport.write(bytes(64 * MiB))

        both.on_loop(write)
        assert soon(lambda: not connections)


def test_a_refused_connection_is_closed_in_bounded_time(impatient: Serving) -> None:
    with connected(impatient.otlp.http_port) as client:
        client.send(b"garbage\r\n\r\n")
        assert client.reply().status == 400
        assert soon(lambda: not impatient.otlp._http._port._connections.active)


def test_slow_bodies_are_evicted_when_reads_are_crowded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.ingest.admission.SLOW_S", 0.0)
    config = IngestConfig(grpc_port=0, http_port=0, requests_max=5)
    slow = head(headers={"Content-Length": "9999", "Expect": "100-continue"})
    with serving(tmp_path, config) as both, contextlib.ExitStack() as stack:
        port = both.otlp.http_port
        clients = [stack.enter_context(connected(port)) for _ in range(20)]
        for client in clients:
            client.send(slow)
            assert client.reply().status == 100
            check_service(both)
        for client in clients[:-1]:
            reply = client.reply()
            assert (reply.status, reply.error()[0], reply.is_last) == (429, UNAVAILABLE, True)
            assert int(reply.headers["retry-after"]) >= 1
        assert inside(both) == 1


# Too many connections.


def small_house(tmp_path: Path) -> contextlib.AbstractContextManager[Serving]:
    return serving(tmp_path, IngestConfig(grpc_port=0, http_port=0, connections_max=4))


def test_a_connection_above_the_limit_is_answered_503(tmp_path: Path) -> None:
    """Open connections are still served."""
    with small_house(tmp_path) as both, contextlib.ExitStack() as stack:
        port = both.otlp.http_port
        first = [stack.enter_context(connected(port)) for _ in range(4)]
        for client in first:
            client.send(post(fresh()))
            assert client.reply().status == 200
        with connected(port) as fifth:
            reply = fifth.reply()
            assert (reply.status, reply.error()[0], reply.is_last) == (503, UNAVAILABLE, True)
            assert int(reply.headers["retry-after"]) >= 1
            fifth.send(post(fresh()))
            assert fifth.is_closed()
        for client in first:
            client.send(post(fresh()))
            assert client.reply().status == 200
        stack.close()
        assert soon(lambda: not both.otlp._http._port._connections.active)
        check_service(both)


def test_far_too_many_connections_are_closed_without_a_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.httpd.connection.REFUSED_CONNECTIONS_MAX", 2)
    with small_house(tmp_path) as both, contextlib.ExitStack() as stack:
        port = both.otlp.http_port
        for _ in range(4):
            stack.enter_context(connected(port)).send(post(b"")[:-1])
        clients = [stack.enter_context(connected(port)) for _ in range(20)]
        assert soon(lambda: len(both.otlp._http._port._connections.active) == 6)
        assert [client.reply().status for client in clients[:2]] == [503, 503]
        assert all(client.is_closed() for client in clients[2:])


@pytest.mark.parametrize("is_used", [False, True], ids=["never used", "used"])
def test_idle_connections_are_closed_for_new_ones(
    is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times the limit, all silent or slow, keep no client out."""
    monkeypatch.setattr("frazil.httpd.connection.IDLE_MIN_S", 0.0)
    evicted = REFUSED.value(reason="crowded")
    with small_house(tmp_path) as both, contextlib.ExitStack() as stack:
        port = both.otlp.http_port
        clients = []
        for _ in range(40):
            clients.append(stack.enter_context(connected(port)))
            if is_used:
                clients[-1].send(post(b""))
                assert clients[-1].reply().status == 200
        for number, client in enumerate(clients[-4:]):
            client.send(head()[:number])
        check_service(both)
        assert all(client.is_closed() for client in clients[:37])
        assert REFUSED.value(reason="crowded") == evicted + 37


# Bombs.

NODE = """
import sys
from pathlib import Path
from tests.ingest.serving import serving

with serving(Path(sys.argv[1])) as both:
    print(both.otlp.http_port, flush=True)
    sys.stdin.read()
"""


def deflate_bomb() -> bytes:
    """Return a block that expands to one mebibyte of zeros, repeated a thousand times."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(bytes(MiB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (GiB // MiB)


def zstd_bomb() -> bytes:
    packer = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=25)
    ).compressobj()
    return b"".join(packer.compress(bytes(MiB)) for _ in range(GiB // MiB)) + packer.flush()


BOMBS = {
    "gzip": gzip.compress(b"")[:10] + deflate_bomb(),
    "deflate": deflate_bomb(),
    "zstd": zstd_bomb(),
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Start a server process; return its id and port."""
    process = subprocess.Popen(
        [sys.executable, "-c", NODE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.communicate()
    assert process.returncode == 0


def peak_bytes(pid: int) -> int:
    """Return the peak memory of a process."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * KiB


def test_bombs_take_no_more_than_twice_the_limit(node: tuple[int, int]) -> None:
    """A mebibyte that expands to a gibibyte is refused at the limit."""
    pid, port = node
    limit = IngestConfig().body_bytes_max
    with connected(port) as client:
        client.send(post(logs(log(1, event_name="x" * MiB))))
        assert client.reply().status == 200
        before = peak_bytes(pid)
        for encoding, bomb in BOMBS.items():
            client.send(post(bomb, headers={"Content-Encoding": encoding}))
            reply = client.reply()
            assert (reply.status, reply.error()[0]) == (413, RESOURCE_EXHAUSTED), encoding
        client.send(post(gzip.compress(b"") * 10_000, headers={"Content-Encoding": "gzip"}))
        assert client.reply().status == 400
    assert peak_bytes(pid) - before <= 2 * limit + 8 * MiB


# Tokens and TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tokens").write_text(f"another-token-of-another\n{TOKEN}\n")
    config = IngestConfig(grpc_port=0, http_port=0, token_file=str(folder / "tokens"))
    with serving(folder, config) as both:
        yield both


@pytest.mark.parametrize(
    "authorization",
    [None, "", TOKEN, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}",
     f"Bearer {TOKEN}, Bearer {TOKEN}", "Bearer \xff\xfe"],
)  # fmt: skip
def test_a_wrong_token_is_refused_before_the_body_is_read(
    authorization: str | None, guarded: Serving
) -> None:
    """And without a 100 Continue."""
    headers = {"Content-Length": "1000", "Expect": "100-continue"}
    if authorization is not None:
        headers["Authorization"] = authorization
    with connected(guarded.otlp.http_port) as client:
        client.send(head(headers=headers))
        reply = client.reply()
        assert (reply.status, reply.error()[0], reply.is_last) == (401, UNAUTHENTICATED, True)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert TOKEN.encode() not in reply.body
        assert client.is_closed()
    assert guarded.stored_since(LOGS, 0) == []


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_valid_token_is_accepted(scheme: str, guarded: Serving) -> None:
    before, body = guarded.end_offset(LOGS), fresh()
    with connected(guarded.otlp.http_port) as client:
        client.send(post(body, headers={"Authorization": f"{scheme} {TOKEN}"}))
        assert client.reply().status == 200
    assert guarded.stored_since(LOGS, before) == [body]


def test_a_preflight_needs_no_token(guarded: Serving) -> None:
    asks = {"Origin": "http://localhost:1", "Access-Control-Request-Method": "POST"}
    with connected(guarded.otlp.http_port) as client:
        client.send(head("OPTIONS", content_type=None, headers=asks))
        assert client.reply().status == 204


def test_wrong_tokens_are_limited_and_delay_no_valid_one(guarded: Serving) -> None:
    with contextlib.ExitStack() as stack:
        guesses = [
            stack.enter_context(connected(guarded.otlp.http_port)) for _ in range(2 * PAUSED_MAX)
        ]
        for client in guesses:
            client.send(post(b"", headers={"Authorization": "Bearer guess"}))
        test_a_valid_token_is_accepted("Bearer", guarded)
        statuses = [client.reply().status for client in guesses]
    assert set(statuses) == {401, 429}
    assert statuses.count(401) >= PAUSED_MAX


def tls_config(certificates: Certificates, **more: str) -> IngestConfig:
    return IngestConfig(
        grpc_port=0,
        http_port=0,
        tls_certificate_file=certificates.server_certificate,
        tls_key_file=certificates.server_key,
        **more,  # type: ignore[arg-type]
    )


def test_tokens_keep_alive_and_refusals_work_over_tls(
    tmp_path: Path, certificates: Certificates
) -> None:
    (tmp_path / "tokens").write_text(TOKEN)
    config = tls_config(certificates, token_file=str(tmp_path / "tokens"))
    tls = ssl.create_default_context(cafile=certificates.authority)
    right = {"Authorization": f"Bearer {TOKEN}"}
    bodies = [fresh(), fresh()]
    with serving(tmp_path, config) as both:
        with connected(both.otlp.http_port, tls) as client:
            for body in bodies:
                client.send(post(body, headers=right))
                assert client.reply().status == 200
            client.send(head(headers={"Content-Length": str(GiB), **right}))
            reply = client.reply()
            assert (reply.status, reply.is_last) == (413, True)
        with connected(both.otlp.http_port, tls) as client:
            client.send(post(fresh()))
            assert client.reply().status == 401
        assert both.stored_since(LOGS, 0) == bodies


def test_clear_text_on_a_tls_port_closes_the_connection(
    tmp_path: Path, certificates: Certificates
) -> None:
    with serving(tmp_path, tls_config(certificates)) as both:
        with connected(both.otlp.http_port) as client:
            client.send(post(fresh()))
            assert client.is_closed()
        assert both.stored_since(LOGS, 0) == []


def test_tls_before_1_2_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    tls = ssl.create_default_context(cafile=certificates.authority)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        tls.minimum_version = ssl.TLSVersion.TLSv1
        tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving(tmp_path, tls_config(certificates)) as both:
        with pytest.raises(ssl.SSLError), connected(both.otlp.http_port, tls):
            pass
        tls = ssl.create_default_context(cafile=certificates.authority)
        with connected(both.otlp.http_port, tls) as client:
            client.send(post(b""))
            assert client.reply().status == 200


def test_client_certificates_must_be_signed_by_our_authority(
    tmp_path: Path, certificates: Certificates
) -> None:
    config = tls_config(certificates, tls_client_ca_file=certificates.authority)
    body = fresh()
    with serving(tmp_path, config) as both:
        port = both.otlp.http_port
        anonymous = ssl.create_default_context(cafile=certificates.authority)
        stranger = ssl.create_default_context(cafile=certificates.authority)
        stranger.load_cert_chain(certificates.stranger_certificate, certificates.stranger_key)
        for tls in (anonymous, stranger):
            with contextlib.suppress(ssl.SSLError), connected(port, tls) as client:
                client.send(post(fresh()))
                assert client.is_closed()
        tls = ssl.create_default_context(cafile=certificates.authority)
        tls.load_cert_chain(certificates.client_certificate, certificates.client_key)
        with connected(port, tls) as client:
            client.send(post(body))
            assert client.reply().status == 200
        assert both.stored_since(LOGS, 0) == [body]


def test_an_unfinished_tls_handshake_times_out(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.httpd.port.HANDSHAKE_TIMEOUT_S", 0.2)
    with (
        serving(tmp_path, tls_config(certificates)) as both,
        connected(both.otlp.http_port) as client,
    ):
        assert client.is_closed()

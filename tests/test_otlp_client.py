"""OtlpClient: TLS, servers that are not OTLP receivers, partial success."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from frazil.errors import Malformed, Unavailable, Unknown
from frazil.otlp_client import JSON, OtlpClient, OtlpTarget
from tests.ingest.certificates import make_certificates
from tests.sim.clock import SimClock


class Page(BaseHTTPRequestHandler):
    """Responds to everything with a status and a body."""

    protocol_version = "HTTP/1.1"
    status, body = 200, b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def serving(status: int, body: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    page = type("Said", (Page,), {"status": status, "body": body})
    with HTTPServer(("127.0.0.1", 0), page) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_only_certificates_of_the_ca_file_are_trusted(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.server_certificate, files.server_key)
    with serving(200, b"", tls) as port:
        url = f"https://127.0.0.1:{port}"
        client = OtlpClient(OtlpTarget(url=url, ca_file=files.authority), clock=SimClock())
        assert client.send("logs", b"").refused is None
        client.close()
        with pytest.raises(Unavailable, match="--ca-file"):
            OtlpClient(OtlpTarget(url=url), clock=SimClock()).send("logs", b"")
    with pytest.raises(Malformed, match="--ca-file"):
        OtlpClient(OtlpTarget(url=url, ca_file="nowhere"), clock=SimClock()).send("logs", b"")


@pytest.mark.parametrize("content_type", ["application/x-protobuf", JSON])
@pytest.mark.parametrize(("status", "body"), [(404, b"no"), (200, b"<html>"), (405, b"")])
def test_another_server_is_not_an_acknowledgement(
    status: int, body: bytes, content_type: str
) -> None:
    with serving(status, body) as port:
        client = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{port}"), clock=SimClock())
        with pytest.raises(Unknown, match="right port"):
            client.send("traces", b"", content_type)
        client.close()


def test_rejected_counts_in_json_may_be_strings() -> None:
    with serving(200, b'{"partialSuccess":{"rejectedDataPoints":"3"}}') as port:
        client = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{port}"), clock=SimClock())
        assert client.send("metrics", b"{}", JSON).rejected_count == 3
        client.close()


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "ftp://a", "http://"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(Malformed, match="is not a URL"):
        OtlpClient(OtlpTarget(url=url), clock=SimClock())

"""OtlpClient: whom it trusts, and what it says of those who are no receivers of OTLP."""

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
    """Answers everything with a status and a body."""

    protocol_version = "HTTP/1.1"
    status, body = 200, b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test is quiet."""


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


def test_whom_it_trusts(tmp_path: Path) -> None:
    """A node with a certificate of an authority that was named, and no other."""
    files = make_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.server_certificate, files.server_key)
    with serving(200, b"", tls) as port:
        url = f"https://127.0.0.1:{port}"
        trusting = OtlpClient(OtlpTarget(url=url, ca_file=files.authority), clock=SimClock())
        assert trusting.send("logs", b"").refused is None
        trusting.close()
        with pytest.raises(Unavailable, match="--ca-file"):
            OtlpClient(OtlpTarget(url=url), clock=SimClock()).send("logs", b"")
    with pytest.raises(Malformed, match="--ca-file"):
        OtlpClient(OtlpTarget(url=url, ca_file="nowhere"), clock=SimClock()).send("logs", b"")


@pytest.mark.parametrize("content_type", ["application/x-protobuf", JSON])
@pytest.mark.parametrize(("status", "body"), [(404, b"no"), (200, b"<html>"), (405, b"")])
def test_a_stranger_is_told_from_a_node(status: int, body: bytes, content_type: str) -> None:
    """Whatever else listens there, it is not taken for an acknowledgement."""
    with serving(status, body) as port:
        sender = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{port}"), clock=SimClock())
        with pytest.raises(Unknown, match="right port"):
            sender.send("traces", b"", content_type)
        sender.close()


def test_what_was_rejected_in_json() -> None:
    """Long integers may be text there."""
    with serving(200, b'{"partialSuccess":{"rejectedDataPoints":"3"}}') as port:
        sender = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{port}"), clock=SimClock())
        assert sender.send("metrics", b"{}", JSON).rejected_count == 3
        sender.close()


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "ftp://a", "http://"])
def test_addresses(url: str) -> None:
    """What is none is a wrong use."""
    with pytest.raises(Malformed, match="is no address"):
        OtlpClient(OtlpTarget(url=url), clock=SimClock())

"""A raw HTTP client, for input that no proper client sends."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from google.rpc.status_pb2 import Status

TIMEOUT_S = 30
"""Longer than any response takes; a test that waits this long fails."""

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_last(self) -> bool:
        """Does the server announce that it closes the connection?"""
        return self.headers.get("connection") == "close"

    def error(self) -> tuple[int, str]:
        """Return code and message of the `google.rpc.Status` that every refusal carries."""
        if self.headers["content-type"] == JSON:
            status = json.loads(self.body)
            return status["code"], status["message"]
        status = Status.FromString(self.body)
        return status.code, status.message


class RawClient:
    """A connection on which a test sends any bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = b""

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def reply(self) -> Reply:
        """Return the next response."""
        head = self._read_until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers, f"{name} comes twice"
            headers[name.lower()] = value
        body = self._read_exactly(int(headers.get("content-length", "0")))
        return Reply(status=int(first.split(" ")[1]), headers=headers, body=body)

    def says_nothing(self, wait_s: float) -> bool:
        """Return whether the server sends nothing and keeps the connection open."""
        self._connection.settimeout(wait_s)
        try:
            self._read += self._connection.recv(65536)
            return False
        except TimeoutError:
            return True
        finally:
            self._connection.settimeout(TIMEOUT_S)

    def is_closed(self) -> bool:
        """Wait for the server to close; return whether it did without sending more."""
        try:
            return not self._read and self._connection.recv(1) == b""
        except ConnectionError:
            return True

    def _read_until(self, end: bytes) -> bytes:
        while end not in self._read:
            self._receive()
        position = self._read.index(end) + len(end)
        return self._read_exactly(position)

    def _read_exactly(self, length: int) -> bytes:
        while len(self._read) < length:
            self._receive()
        taken, self._read = self._read[:length], self._read[length:]
        return taken

    def _receive(self) -> None:
        data = self._connection.recv(65536)
        assert data, f"the server has closed; it said {self._read!r}"
        self._read += data


@contextmanager
def connected(port: int, tls: ssl.SSLContext | None = None) -> Iterator[RawClient]:
    """Open a connection to a server on this machine."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain:
        if tls is None:
            yield RawClient(plain)
            return
        with tls.wrap_socket(plain, server_hostname="localhost") as secure:
            yield RawClient(secure)


def head(
    method: str = "POST",
    path: str = "/v1/logs",
    *,
    version: str = "1.1",
    content_type: str | None = PROTOBUF,
    headers: dict[str, str] | None = None,
) -> bytes:
    """Return a request without its body."""
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def post(
    body: bytes,
    path: str = "/v1/logs",
    *,
    version: str = "1.1",
    content_type: str | None = PROTOBUF,
    headers: dict[str, str] | None = None,
) -> bytes:
    """Return a whole request."""
    length = {"Content-Length": str(len(body))}
    first = head(
        path=path, version=version, content_type=content_type, headers=length | (headers or {})
    )
    return first + body


def chunked(*chunks: bytes) -> bytes:
    """Return a chunked body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))

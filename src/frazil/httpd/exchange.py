"""Exchange: one request and its response, as the application sees them: ASGI's HTTP messages.

If the request offers a WebSocket (`scope["websocket"]`), the application may send `SOCKET_ACCEPT`
instead of a response, then `SOCKET_TEXT` and `SOCKET_PING`, and at the end `SOCKET_CLOSE`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from frazil.httpd.responses import STATUS_LINES, Receive, Scope, Send, encode_headers
from frazil.httpd.transport import PatientTransport
from frazil.httpd.websocket import (
    CLOSE,
    CLOSE_NORMAL,
    PING,
    PONG,
    TEXT,
    ClientFrames,
    FrameError,
    accept_of,
    encode_close,
    encode_frame,
)

logger = logging.getLogger(__name__)

App = Callable[[Scope, Receive, Send], Awaitable[None]]

UNREAD_BYTES_MAX = 64 * 1024
"""When more of a body waits for the application, the socket is not read."""

CUT = "frazil.cut"
"""Sent by an application that cannot finish its response. What is under way is delivered, then the
connection ends, so that the client does not take a part for the whole."""

SOCKET_ACCEPT = "frazil.socket.accept"
SOCKET_TEXT = "frazil.socket.text"
SOCKET_PING = "frazil.socket.ping"
SOCKET_CLOSE = "frazil.socket.close"

LAST = (b"connection", b"close")
"""Header of a response that is the last one of its connection."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Exchange:
    """One request and its response. Owned by the event loop."""

    __slots__ = (
        "_bytes_left",
        "_date",
        "_expects_continue",
        "_frames",
        "_is_chunked",
        "_is_head",
        "_is_started",
        "_news",
        "_on_complete",
        "_transport",
        "body",
        "has_more_body",
        "is_complete",
        "is_disconnected",
        "keep_alive",
        "scope",
    )

    def __init__(
        self,
        scope: Scope,
        transport: PatientTransport,
        *,
        keep_alive: bool,
        expects_continue: bool,
        date: bytes,
        on_complete: Callable[[], None],
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = b""
        """What has arrived and the application has not received yet."""
        self.has_more_body = True
        self.is_complete = False
        """Has the whole response been written?"""
        self.is_disconnected = False
        self._transport = transport
        self._expects_continue = expects_continue
        self._date = date
        self._on_complete = on_complete
        self._news = asyncio.Event()
        self._is_head = scope["method"] == "HEAD"
        self._is_started = False
        self._is_chunked = False
        self._bytes_left = 0
        self._frames: ClientFrames | None = None

    @property
    def is_socket(self) -> bool:
        """Are the client's further bytes frames of a WebSocket?"""
        return self._frames is not None

    async def run(self, app: App) -> None:
        """Have the application serve the request."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception:  # top of loop: one request fails, the others go on
            logger.exception("request failed", extra={"path": self.scope["path"]})
        if not self.is_complete and not self.is_disconnected:
            if not self._is_started:
                self._transport.write(FAILED)
            self._transport.close()

    def feed(self, body: bytes) -> None:
        """Take a part of the body from the parser."""
        if not self.body:
            self.body = body  # spares a copy
        else:
            if isinstance(self.body, bytes):
                self.body = bytearray(self.body)
            self.body += body
        if len(self.body) > UNREAD_BYTES_MAX:
            self._transport.pause_reading()
        self._news.set()

    def feed_frames(self, data: bytes) -> None:
        """Take bytes of a WebSocket. Only pings and the end are answered."""
        assert self._frames is not None
        try:
            for frame in self._frames.feed(data):
                if frame.opcode == PING:
                    self._transport.write(encode_frame(PONG, frame.payload))
                elif frame.opcode == CLOSE:
                    self._end_socket(CLOSE_NORMAL, "")
                    return
        except FrameError as error:
            self._end_socket(error.code, str(error))

    def _end_socket(self, code: int, reason: str) -> None:
        """Say why, read nothing more, and close."""
        if not self.is_disconnected:
            self._transport.write(encode_close(code, reason))
            self.disconnect()
        self._transport.is_unread = True
        self._transport.close()

    def end_body(self) -> None:
        self.has_more_body = False
        self._news.set()

    def disconnect(self) -> None:
        """Let the application receive no more, and write nothing of what it sends."""
        self.is_disconnected = True
        self._news.set()

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body; after the last one, wait for the end."""
        if self._expects_continue and not self._transport.is_closing():
            self._transport.write(CONTINUE)
            self._expects_continue = False
        if not self.is_disconnected and not self.is_complete:
            self._transport.resume_reading()
            await self._news.wait()
            self._news.clear()
        if self.is_disconnected or self.is_complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""
        return {"type": "http.request", "body": bytes(body), "more_body": self.has_more_body}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write a part of the response. Waits while the client does not read."""
        if self.has_more_body:  # The rest of the body must not be taken for the next request.
            self.keep_alive = False
            self._transport.is_unread = True
        if message["type"] == CUT:
            self.is_disconnected = True
            self._transport.close()
            return
        if self._transport.is_write_paused:
            await self._transport.drain()
        if self.is_disconnected:
            return
        if message["type"] == SOCKET_ACCEPT:
            self._accept()
        elif message["type"] == SOCKET_TEXT:
            self._transport.write(encode_frame(TEXT, message["text"]))
        elif message["type"] == SOCKET_PING:
            self._transport.write(encode_frame(PING, b""))
        elif message["type"] == SOCKET_CLOSE:
            self._end_socket(message["code"], message["reason"])
        elif message["type"] == "http.response.start":
            self._start(message["status"], message["headers"])
        else:
            self._write(message["body"], has_more=message.get("more_body", False))

    def _accept(self) -> None:
        headers = [
            (b"upgrade", b"websocket"),
            (b"connection", b"Upgrade"),
            (b"sec-websocket-accept", accept_of(self.scope["websocket"])),
        ]
        lines = [STATUS_LINES[HTTPStatus.SWITCHING_PROTOCOLS], self._date, encode_headers(headers)]
        self._is_started = True
        self.keep_alive = False
        self._frames = ClientFrames()
        self._transport.write(b"".join((*lines, b"\r\n")))

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._expects_continue = False
        if LAST in headers:
            self.keep_alive = False
            headers = [header for header in headers if header != LAST]
        lines = [STATUS_LINES[status], self._date, encode_headers(headers)]
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        length = next((value for name, value in headers if name == b"content-length"), None)
        if length is not None:
            self._bytes_left = 0 if self._is_head else int(length)
        elif not self._is_head and status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self._is_chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join((*lines, b"\r\n"))
        if len(head.splitlines()) != len(headers) + len(lines):
            raise ValueError("a response header contains a line break")
        self._is_started = True
        self._transport.write(head)

    def _write(self, body: bytes, *, has_more: bool) -> None:
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._transport.write(chunk if has_more else chunk + b"0\r\n\r\n")
        elif not self._is_head:
            self._bytes_left -= len(body)
            if self._bytes_left < 0 or (self._bytes_left and not has_more):
                raise ValueError("the response is not as long as its content-length")
            self._transport.write(body)
        if has_more:
            return
        self.is_complete = True
        self.body = b""  # it may have been refused unread
        self._news.set()
        if not self.keep_alive:
            self._transport.close()
        self._on_complete()

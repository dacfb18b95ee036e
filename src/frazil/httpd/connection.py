"""HttpConnection: one client's connection, parsed by httptools, with a limit on everything.

Limited are the size and duration of headers (`head`), the number of connections, and requests to
one at a time. A request that cannot be read to its end is the last one of its connection: none of
its bytes are ever taken for the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

import httptools

from frazil.errors import FrazilError, Malformed, Unavailable
from frazil.httpd.exchange import App, Exchange
from frazil.httpd.head import (
    HEADER_EXTRA_BYTES,
    check_head,
    check_size,
    check_target,
    without_upgrade,
)
from frazil.httpd.responses import Headers, HttpError, Response, encode_last, reason_of
from frazil.httpd.transport import PatientTransport
from frazil.httpd.websocket import websocket_key
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 10.0
"""From the opening of a connection, or the first byte of a later request, to its last header."""
IDLE_TIMEOUT_S = 60
"""Between a response and the next request; exporters send every few seconds."""
IDLE_MIN_S = 1.0
"""At the limit of connections, one that has served no request for this long is closed for a new
one."""
REFUSED_CONNECTIONS_MAX = 256
"""Connections above the limit that get a response saying so; more are closed without one."""

REFUSED = Counter(
    "frazil.ingest.connection.refusals",
    "Connections closed before a request could be served, by reason.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of a port's connections."""

    count_max: int
    count_setting: str
    target_bytes_max: int
    """Path and query string of a request."""
    fetch_timeout_s: float
    """How long a client may leave a response unread, before and after the connection is closed."""
    response_of: Callable[[FrazilError | HttpError], Response]
    """The response to input that cannot be read as a request."""


@dataclass(slots=True, kw_only=True)
class Connections:
    """What the connections of a port share. Owned by the event loop."""

    app: App
    limits: ConnectionLimits
    date: bytes
    """The `Date` header of responses, updated every second."""
    active: set[HttpConnection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    idle: dict[HttpConnection, float] = field(default_factory=dict)
    """Connections that serve no request, and since when; longest first."""

    def make_room(self, now_s: float) -> None:
        """At the limit, close the connection that has been idle longest."""
        if len(self.active) < self.limits.count_max or not self.idle:
            return
        connection, since_s = next(iter(self.idle.items()))
        if now_s - since_s >= IDLE_MIN_S:
            REFUSED.add(reason="crowded")
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection. Owned by the event loop."""

    transport: PatientTransport

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._parser = _parser(self)
        self.exchange: Exchange | None = None
        """The request that is being served."""
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection is closed on both sides."""
        self._target = b""
        self._headers: Headers = []
        self._socket_key: bytes | None = None  # of a request that offers a WebSocket
        self._expects_continue = False
        self._is_in_head = False
        self._has_advanced = False  # did the last input complete a head or carry a body?
        self._idle_bytes = 0  # received since the last input that did
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None  # for a head, or for the next request
        self._is_timing_head = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        shared, limits = self._shared, self._shared.limits
        shared.make_room(self._loop.time())
        shared.active.add(self)
        self.transport = PatientTransport(transport, self._loop, limits.fetch_timeout_s)
        self._set_idle()
        excess = len(shared.active) - limits.count_max
        if excess <= 0:
            self._begin_head()
        elif excess > REFUSED_CONNECTIONS_MAX:
            self.abort()
        else:
            limit = f"{limits.count_setting} ({limits.count_max})"
            self.refuse(Unavailable(f"too many connections are open, the limit is {limit}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.on_lost()
        self._shared.active.discard(self)
        self._shared.idle.pop(self, None)
        self._end_timer()
        if self.exchange is not None:
            self.exchange.disconnect()
        self.lost.set_result(None)

    def eof_received(self) -> None:
        self.transport.close()

    def pause_writing(self) -> None:
        self.transport.pause_writing()

    def resume_writing(self) -> None:
        self.transport.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_unread:
            return
        if self.exchange is not None and self.exchange.is_socket:
            self.exchange.feed_frames(data)
            return
        if not self._is_timing_head:
            self._end_timer()
        self._has_advanced = False
        try:
            self._feed(data)
            self._idle_bytes = 0 if self._has_advanced else self._idle_bytes + len(data)
            check_size(self._idle_bytes, header_count=0)
        except httptools.HttpParserError as error:
            cause = error.__context__
            if not isinstance(cause, FrazilError | HttpError):
                cause = Malformed(f"this is not an HTTP/1.1 request: {error}")
            self.refuse(cause)
        except HttpError as refusal:
            self.refuse(refusal)
        else:
            if self._timer is None and self.exchange is None:
                self._begin_head()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Serve a request that offers another protocol as if it did not; only a WebSocket may be
        accepted later.

        The parser takes such a request for one without a body, and the body would be lost. Java's
        client makes the offer with its first request. So it is parsed again, without the offer.
        """
        version, method = self._parser.get_http_version(), self._parser.get_method()
        self._socket_key = websocket_key(method, self._headers)
        self._parser = _parser(self)
        self._feed(without_upgrade(version, method, self._target, self._headers) + rest)

    # Called by the parser. Errors raised here come out of `feed_data`.

    def on_message_begin(self) -> None:
        if self.exchange is not None:
            raise Malformed("send one request at a time: wait for the response before the next")
        self._target = b""
        self._headers = []
        self._expects_continue = False
        self._is_in_head = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._target += url
        check_target(self._target, self._shared.limits.target_bytes_max)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + HEADER_EXTRA_BYTES
        check_size(self._head_bytes, len(self._headers) + 1)
        if not self._is_in_head:
            return  # A trailer must not be taken for a header.
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._has_advanced = True
        self._end_timer()
        parser = self._parser
        version, method = parser.get_http_version(), parser.get_method()
        check_head(version, method, self._headers)
        if parser.should_upgrade():
            return  # `_ignore_upgrade` follows
        url = httptools.parse_url(self._target)
        path = url.path.decode("ascii")
        scope = {
            "type": "http",
            "method": method.decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode("latin-1"),
            "query_string": url.query or b"",
            "headers": self._headers,
            "websocket": self._socket_key,
        }
        self._socket_key = None
        self.exchange = Exchange(
            scope,
            self.transport,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects_continue=self._expects_continue,
            date=self._shared.date,
            on_complete=self._on_response_complete,
        )
        self._shared.idle.pop(self, None)
        task = self._loop.create_task(self.exchange.run(self._shared.app))
        self._shared.tasks.add(task)
        task.add_done_callback(self._shared.tasks.discard)

    def on_body(self, body: bytes) -> None:
        self._has_advanced = True
        if self.exchange is not None:
            self.exchange.feed(body)

    def on_message_complete(self) -> None:
        self._has_advanced = True
        if self.exchange is not None:
            self.exchange.end_body()

    # Timeouts and endings.

    def _on_response_complete(self) -> None:
        self.exchange = None
        self._set_idle()
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self._timer = self._loop.call_later(IDLE_TIMEOUT_S, self.transport.close)

    def _set_idle(self) -> None:
        self._shared.idle[self] = self._loop.time()

    def _begin_head(self) -> None:
        self._is_timing_head = True
        self._timer = self._loop.call_later(HEAD_TIMEOUT_S, self._on_late_head)

    def _end_timer(self) -> None:
        self._is_timing_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_late_head(self) -> None:
        if self._idle_bytes:
            late = f"the headers did not arrive within {HEAD_TIMEOUT_S:g} seconds"
            self.refuse(HttpError(HTTPStatus.REQUEST_TIMEOUT, late))
        else:
            self.transport.close()

    def refuse(self, error: FrazilError | HttpError) -> None:
        """Read nothing more, respond with an error, and close the connection.

        A request that has arrived completely gets its own response: the fault came after it.
        """
        self.transport.is_unread = True
        if self.transport.is_closing():
            return
        REFUSED.add(reason=reason_of(error))
        client = self.transport.client
        logger.debug("connection refused", extra={"client": client, "reason": str(error)})
        if self.exchange is not None:
            if not self.exchange.has_more_body:
                self.exchange.keep_alive = False
                return
            self.exchange.disconnect()
            self._set_idle()
        response = self._shared.limits.response_of(error)
        self.transport.write(encode_last(response, self._shared.date))
        self.transport.close()

    def shut_down(self) -> None:
        """Close the connection after the request that is being served."""
        if self.exchange is None:
            self.transport.close()
        else:
            self.exchange.keep_alive = False

    def abort(self) -> None:
        """Close the connection at once."""
        self._shared.active.discard(self)
        self._shared.idle.pop(self, None)
        if self.exchange is not None:
            self.exchange.disconnect()
        self.transport.abort()


def _parser(connection: HttpConnection) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(connection)
    # Bytes after a request with `Connection: close` must reach `on_message_begin`: the parser's
    # own error would leave that request without a response.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser

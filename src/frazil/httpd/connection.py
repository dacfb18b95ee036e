"""HttpConnection: one client's connection, with a bound on whatever he could make long or slow.

uvicorn's protocol parses requests and writes answers. It has no bounds of its own, so they are
here and in `http_head`: what headers may be and how long they may take, how many connections there
are, and one request at a time. A request that cannot be read to its end is the last one of its
connection: no byte of it is ever taken for the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frazil.errors import FrazilError, Malformed, Unavailable
from frazil.httpd.head import (
    HEADER_EXTRA_BYTES,
    check_head,
    check_size,
    check_target,
    without_upgrade,
)
from frazil.httpd.responses import HttpError, Response, encode_answer, reason_of
from frazil.httpd.transport import PatientTransport
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 10.0
"""From the opening of a connection, or the first byte of a later request, to its last header."""
IDLE_TIMEOUT_S = 60
"""Between an answer and the next request; exporters send every few seconds."""
PATIENCE_S = 1.0
"""When there are too many connections, one on which no request has come for so long must go."""
TURNED_AWAY_MAX = 256
"""So many connections above the limit are told that there are too many; others are cut."""

REFUSED = Counter(
    "frazil.ingest.connection.refusals",
    "Connections ended for what came, or did not come, before a request could be served.",
)


CUT = "frazil.cut"
"""What an application sends instead of the rest of an answer that it cannot finish: what is on its
way is delivered, and then the connection ends, so that nobody takes a part for the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How the clients of a port are treated."""

    count_max: int
    count_setting: str
    target_bytes_max: int
    """What stands between the method and the version."""
    fetch_timeout_s: float
    """How long a client may leave an answer unread, before and after the connection is closed."""
    answer_of: Callable[[FrazilError | HttpError], Response]
    """What is answered to what cannot be read as a request."""


@dataclass(slots=True, kw_only=True)
class Connections:
    """What the connections of a port share. Belongs to the event loop."""

    config: Config
    state: ServerState
    manners: ConnectionLimits
    waiting: dict[HttpConnection, float] = field(default_factory=dict)
    """Those that serve no request at the moment, and since when; longest first."""

    def make_room(self, now_s: float) -> None:
        """Have somebody go who only holds a place, if there is none left."""
        if len(self.state.connections) < self.manners.count_max or not self.waiting:
            return
        connection, since_s = next(iter(self.waiting.items()))
        if now_s - since_s >= PATIENCE_S:
            REFUSED.add(reason="crowded")
            connection.cut()


class HttpConnection(HttpToolsProtocol):
    """One connection. Belongs to the event loop."""

    transport: PatientTransport

    def __init__(self, shared: Connections) -> None:
        super().__init__(shared.config, shared.state, {})
        self.access_log = False  # nothing per request, whoever listens to uvicorn's loggers
        self._shared = shared
        self.gone: asyncio.Future[None] = self.loop.create_future()
        """Done when the connection is closed on both sides."""
        self._is_deaf = False  # nothing that comes from now on is read
        self._is_in_head = False
        self._is_upgrade = False
        self._has_advanced = False  # did what came last complete or carry anything?
        self._idle_bytes = 0  # that did not, since the last that did
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    # What the transport says.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        manners = self._shared.manners
        self._shared.make_room(self.loop.time())
        super().connection_made(PatientTransport(transport, self.loop, manners.fetch_timeout_s))
        self._wait()
        excess = len(self.connections) - manners.count_max
        if excess <= 0:
            self._begin_head()
        elif excess > TURNED_AWAY_MAX:
            self.cut()
        else:
            limit = f"{manners.count_setting} ({manners.count_max})"
            self.refuse(Unavailable(f"as many connections are open as may be, by {limit}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.forget()
        self._shared.waiting.pop(self, None)
        self._unset_keepalive_if_required()
        self._end_head()
        super().connection_lost(exc)
        self.gone.set_result(None)

    def eof_received(self) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._unset_keepalive_if_required()
        self._has_advanced = False
        try:
            self._feed(data)
            self._idle_bytes = 0 if self._has_advanced else self._idle_bytes + len(data)
            check_size(self._idle_bytes, header_count=0)
        except httptools.HttpParserError as error:
            cause = error.__context__
            if not isinstance(cause, FrazilError | HttpError):
                cause = Malformed(f"this is not a request of HTTP/1.1: {error}")
            self.refuse(cause)
        except HttpError as refusal:
            self.refuse(refusal)
        else:
            if self._head_timer is None and not self._is_serving:
                self._begin_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.begin_deadline()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.transport.end_deadline()

    # What the parser says. An error that is raised in these comes out of `feed_data`.

    def on_message_begin(self) -> None:
        if self._is_serving:
            raise Malformed("one request at a time: wait for the answer before sending the next")
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        check_target(self.url, self._shared.manners.target_bytes_max)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + HEADER_EXTRA_BYTES
        check_size(self._head_bytes, len(self.headers) + 1)
        if self._is_in_head:  # A trailer was not asked for, and must not pass for a header.
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._has_advanced = True
        self._end_head()
        parser = self.parser
        check_head(parser.get_http_version(), parser.get_method(), self.headers)
        self._is_upgrade = self.parser.should_upgrade()
        if not self._is_upgrade:
            super().on_headers_complete()
            self._shared.waiting.pop(self, None)

    def on_body(self, body: bytes) -> None:
        self._has_advanced = True
        cycle = self.cycle
        if cycle.response_complete:
            return
        if not cycle.body:
            cycle.body = body  # type: ignore[assignment]  # spares a copy; it is only read
        else:
            cycle.body = bytearray(cycle.body) if isinstance(cycle.body, bytes) else cycle.body
            cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        self._has_advanced = True
        if not self._is_upgrade:
            super().on_message_complete()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Serve a request that offers to change the protocol as if it did not.

        The parser takes such a request for one without a body, which would be lost; and Java's
        client makes the offer with its first request. So it is parsed again, without the offer.
        """
        version, method = self.parser.get_http_version(), self.parser.get_method()
        self.parser = httptools.HttpRequestParser(self)
        self._feed(without_upgrade(version, method, self.url, self.headers) + rest)

    # What is done about it.

    @property
    def _is_serving(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        super()._start_asgi_task(cycle, partial(self._serve, cycle, app))

    async def _serve(
        self, cycle: RequestResponseCycle, app: Any, scope: Any, receive: Any, send: Any
    ) -> None:
        async def answer(message: Any) -> None:
            if cycle.more_body:  # What is unread must not pass for the next request.
                cycle.keep_alive = False
                self._is_deaf = self.transport.is_unread = True
            if message["type"] == CUT:
                cycle.disconnected = True
                self.transport.close()
                return
            await send(message)

        await app(scope, receive, answer)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.cycle.body = bytearray()  # if it was refused unread, nobody else lets go of it
        self._wait()

    def _wait(self) -> None:
        self._shared.waiting[self] = self.loop.time()

    def _begin_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._on_late_head)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_late_head(self) -> None:
        if self._idle_bytes:
            late = f"the headers did not come within {HEAD_TIMEOUT_S:g} seconds; send them at once"
            self.refuse(HttpError(HTTPStatus.REQUEST_TIMEOUT, late))
        else:
            self.transport.close()

    def refuse(self, error: FrazilError | HttpError) -> None:
        """Read nothing more, answer with an error, and end the connection.

        A request that has come as a whole is answered instead: what is wrong came after it.
        """
        self._is_deaf = self.transport.is_unread = True
        if self.transport.is_closing():
            return
        REFUSED.add(reason=reason_of(error))
        logger.debug("connection refused", extra={"client": self.client, "reason": str(error)})
        if self._is_serving:
            if not self.cycle.more_body:
                self.cycle.keep_alive = False
                return
            self.cycle.disconnected = True  # Its task stops reading, and answers nobody.
            self.cycle.message_event.set()
            self._wait()
        answer = self._shared.manners.answer_of(error)
        self.transport.write(encode_answer(answer, self.server_state.default_headers))
        self.transport.close()

    def cut(self) -> None:
        """End the connection now, whatever is going on."""
        self.connections.discard(self)
        self._shared.waiting.pop(self, None)
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

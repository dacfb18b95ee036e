"""ApiListener: accepts the connections of the API port and gives them to the reader.

    accept ─> probe, or no reader? ── yes ─> answered here: /livez, /readyz, else 503
                     └── no ─> handed over to the reader, with all that was received

So a probe is answered at once, whatever the reader does, and a client is never refused a connection
while the reader restarts. With TLS the first bytes cannot be read: then only a missing reader is
noticed here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from frazil.errors import FrazilError
from frazil.httpd import (
    Auth,
    ConnectionLimits,
    HttpError,
    HttpPort,
    ListenAddress,
    Receive,
    Response,
    Scope,
    Send,
)
from frazil.settings import IngestConfig, ServeConfig
from frazil.status import Check, is_ready, readiness_text

logger = logging.getLogger(__name__)

PROBES = (b"GET /livez", b"GET /readyz", b"HEAD /livez", b"HEAD /readyz")
PEEK_BYTES = max(map(len, PROBES))
PEEK_S = 5.0
"""A connection that sends nothing for this long is handed over as it is."""
SHORT_PEEKS_MAX = 20
SHORT_PEEK_S = 0.02
"""Pause before another look at a request line that has arrived in part."""
WAITING_MAX = 256
"""Connections whose first bytes are awaited; for a further one the oldest is handed over as it
is."""
LOCAL_CONNECTIONS_MAX = 256
FETCH_TIMEOUT_S = 5.0
ACCEPT_PAUSE_S = 0.1
"""After accepting has failed, as when no file descriptor is left."""
TEXT, JSON = b"text/plain; charset=utf-8", b"application/json"


def api_address(config: ServeConfig, ingest: IngestConfig) -> ListenAddress:
    return ListenAddress(
        host=ingest.host,
        port=config.http_port,
        what="the API",
        host_setting="ingest.host",
        port_setting="serve.http_port",
    )


class ApiListener:
    """Owned by the event loop."""

    def __init__(
        self,
        listener: socket.socket,
        auth: Auth,
        *,
        hand_over: Callable[[socket.socket], bool],
        has_reader: Callable[[], bool],
        checks: Callable[[], list[Check]],
    ) -> None:
        """`listener` listens on `api_address`."""
        listener.setblocking(False)
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._is_tls = auth.tls is not None
        self._hand_over = hand_over
        self._has_reader = has_reader
        self._checks = checks
        self._local = HttpPort(self._serve, auth, _LIMITS)
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Looking at connections, the oldest first."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                logger.warning("cannot accept a connection", extra={"reason": str(error)})
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            if self._is_tls:
                self._place(accepted, b"")
                continue
            if len(self._waiting) >= WAITING_MAX:
                next(iter(self._waiting)).cancel()
            task = loop.create_task(self._look(accepted))
            self._waiting[task] = None
            task.add_done_callback(lambda done: self._waiting.pop(done))

    async def _look(self, accepted: socket.socket) -> None:
        """Place a connection by its first bytes, which stay unread."""
        try:
            first = await asyncio.wait_for(_peek(accepted), PEEK_S)
        except (TimeoutError, asyncio.CancelledError):
            first = b""
        except OSError:
            accepted.close()
            return
        self._place(accepted, first)

    def _place(self, accepted: socket.socket, first: bytes) -> None:
        is_local = first.startswith(PROBES) or not self._has_reader()
        if not is_local and self._hand_over(accepted):
            accepted.close()  # the reader has its own descriptor
        else:
            self._local.adopt(accepted)

    async def _serve(self, scope: Scope, _: Receive, send: Send) -> None:
        """Answer a probe, or say that the reader is away."""
        path, is_verbose = scope["path"], b"verbose" in scope["query_string"]
        response = self._response(path, is_verbose=is_verbose)
        headers = [
            *response.headers,
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),  # the next request may be for the reader
            (b"content-length", b"%d" % len(response.body)),
        ]
        status = int(response.status)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else response.body
        await send({"type": "http.response.body", "body": body})

    def _response(self, path: str, *, is_verbose: bool) -> Response:
        if path == "/livez":
            return _text(HTTPStatus.OK, "ok\n")
        checks = self._checks()
        if path == "/readyz":
            ready = is_ready(checks)
            status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
            return _text(status, readiness_text(checks) if is_verbose or not ready else "ok\n")
        why = next((check.why for check in checks if check.component == "reader"), None)
        return _away(why or "the reader cannot take more connections")

    async def close(self) -> None:
        """Stop accepting. Connections of the reader are not affected."""
        tasks = [self._accepting, *self._waiting]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._listener.close()
        await self._local.close(0)


async def _peek(accepted: socket.socket) -> bytes:
    """Return the first bytes of a connection without taking them."""
    first = b""
    for _ in range(SHORT_PEEKS_MAX):
        await _readable(accepted)
        first = accepted.recv(PEEK_BYTES, socket.MSG_PEEK)
        if not any(probe != first and probe.startswith(first) for probe in PROBES) or not first:
            break
        await asyncio.sleep(SHORT_PEEK_S)
    return first


async def _readable(accepted: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(accepted, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(accepted)


def _text(status: HTTPStatus, text: str) -> Response:
    return Response(status=status, headers=[(b"content-type", TEXT)], body=text.encode())


def _away(why: str) -> Response:
    message = f"{why}; ingest continues; retry in a moment"
    body = {"error": {"kind": "unavailable", "message": message}}
    return Response(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        headers=[(b"content-type", JSON), (b"retry-after", b"1")],
        body=msgspec.json.encode(body),
    )


def _refusal(error: FrazilError | HttpError) -> Response:
    return _away(str(error))


_LIMITS = ConnectionLimits(
    count_max=LOCAL_CONNECTIONS_MAX,
    count_setting="connections without a reader",
    target_bytes_max=PEEK_BYTES * 100,
    fetch_timeout_s=FETCH_TIMEOUT_S,
    response_of=_refusal,
)

"""App: the ASGI application of the API.

origin check ─> endpoint ─> token ─> parameters ─> request limit ─> response or stream
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Protocol

from frazil import tracing
from frazil.errors import FrazilError, Unavailable
from frazil.httpd import (
    CLOSE_FAILED,
    CLOSE_GOING_AWAY,
    CUT,
    PREFLIGHT_AGE_S,
    SOCKET_ACCEPT,
    SOCKET_CLOSE,
    SOCKET_PING,
    SOCKET_TEXT,
    Auth,
    ClientGone,
    HttpError,
    Receive,
    Response,
    Scope,
    Send,
    check_origin,
    cors_headers,
)
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import (
    ApiRequest,
    check_content_type,
    struct_of_json,
    struct_of_query,
)
from frazil.serve.http.responses import answer_of_error, failure_of
from frazil.serve.http.router import Endpoint, Reply, Router
from frazil.serve.http.row_streams import LiveStream, RowStream, SocketStream
from frazil.serve.http.static import StaticFiles

logger = logging.getLogger(__name__)

REQUESTS = Counter("frazil.serve.requests", "API requests, by status.")
DURATION = Histogram("frazil.serve.duration.ms", "Time of an API request until the last byte.")
SENT = Counter("frazil.serve.sent.bytes", "Bytes sent in API responses.")

ALLOWED_HEADERS = (
    b"authorization, content-type, accept, idempotency-key, mcp-protocol-version, mcp-method, "
    b"mcp-name"
)

FAILED = "internal error; see the log of the node"

STATEMENTS_OFF = (
    "statements are off: other machines can reach this node, and serve.statements_token_file is "
    "not set; set it to a file with tokens"
)

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


class ForeignProtocol(Protocol):
    """A protocol of other tools, with paths of its own."""

    @property
    def error_response(self) -> Callable[[FrazilError | HttpError], Response]: ...

    @property
    def prefix(self) -> str: ...

    def takes_statements(self, request: ApiRequest) -> bool: ...

    def authorization(self, request: ApiRequest) -> str | None: ...

    def owns(self, path: str) -> bool: ...

    async def answer(self, handler: Handler, request: ApiRequest) -> Reply: ...


class App:
    """Serves concurrent requests. Owned by the event loop."""

    def __init__(
        self,
        handler: Handler,
        routes: Router,
        doors: Sequence[ForeignProtocol],
        auth: Auth,
        statements_auth: Auth | None,
        *,
        cors_origins: Sequence[str],
        is_local: bool,
    ) -> None:
        self._page = StaticFiles()
        self._handler = handler
        self._routes = routes
        self._doors = doors
        self._auth = auth
        self._statements_auth = statements_auth  # None: no one may send statements
        self._cors_origins = cors_origins
        self._is_local = is_local  # loopback without tokens: check the Host header

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Never raises."""
        clock = self._handler.context.clock
        begin_ns = clock.monotonic_ns()
        request = ApiRequest.of(scope, receive)
        cors = cors_headers(_latin(request.headers.get("origin")), self._cors_origins)
        try:
            answer = await self._answer(request)
            if isinstance(answer, RowStream):
                await self._send_stream(answer, request, send, cors)
            elif isinstance(answer, LiveStream):
                await self._send_live(answer, request, send, cors)
            elif isinstance(answer, SocketStream):
                await self._send_socket(answer, request, send)
            else:
                await _send_answer(answer, send, cors)
        except (ClientGone, asyncio.CancelledError):
            return
        finally:
            DURATION.record((clock.monotonic_ns() - begin_ns) / NS_PER_MS)

    async def _answer(self, request: ApiRequest) -> Reply:
        door = next((door for door in self._doors if door.owns(request.path)), None)
        error_response = answer_of_error if door is None else door.error_response
        try:
            headers = request.headers
            origin, host = headers.get("origin"), headers.get("host", "")
            check_origin(origin, host, self._cors_origins, is_local=self._is_local)
            if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
                return _preflight()
            if door is not None:
                return await self._serve_door(door, request)
            page = await self._page_answer(request)
            if page is not None:
                return page
            endpoint, named = self._routes.find(request.method, request.path)
            authorization = request.headers.get("authorization")
            auth = self._auth_of(endpoint)
            if not endpoint.is_open and not auth.knows(authorization):
                await auth.deny(authorization)
            return await self._serve(endpoint, named, request)
        except (FrazilError, HttpError) as error:
            return error_response(error)
        except ClientGone:
            raise
        except Exception:  # top of loop: one request must not break others
            logger.exception("request failed", extra={"path": request.path})
            return error_response(Unavailable(FAILED))

    async def _serve_door(self, door: ForeignProtocol, request: ApiRequest) -> Reply:
        authorization = door.authorization(request)
        auth = self._statements if door.takes_statements(request) else self._auth
        if not auth.knows(authorization):
            await auth.deny(authorization)
        parent = request.headers.get("traceparent")
        name = f"{request.method} {door.prefix}"
        with self._handler.admit(), tracing.span(name, parent=parent):
            return await door.answer(self._handler, request)

    def _auth_of(self, endpoint: Endpoint[Any]) -> Auth:
        """Return who may use an endpoint. 403 if no one may."""
        return self._statements if endpoint.takes_statements else self._auth

    @property
    def _statements(self) -> Auth:
        """Who may send statements. 403 if no one may."""
        if self._statements_auth is None:
            raise HttpError(HTTPStatus.FORBIDDEN, STATEMENTS_OFF)
        return self._statements_auth

    async def _page_answer(self, request: ApiRequest) -> Response | None:
        """Return the web page for a browser, None for other clients."""
        accept = request.headers.get("accept", "")
        if request.method != "GET" or not self._page.is_page(request.path, accept):
            return None
        if request.path != "/" and self._routes.knows(request.path):
            return None
        accepts_gzip = "gzip" in request.headers.get("accept-encoding", "")
        known = request.headers.get("if-none-match", "")
        return await self._handler.run_quickly(
            lambda: self._page.answer(request.path, accepts_gzip, known)
        )

    async def _serve(
        self, endpoint: Endpoint[Any], named: dict[str, str], request: ApiRequest
    ) -> Reply:
        if endpoint.is_open:
            # Probes and descriptions have no body; one that is announced is not waited for.
            params = struct_of_query(endpoint.takes, request.query, named)
            return await endpoint.serve(self._handler, params, request)
        params = await self._params(endpoint, named, request)
        name = f"{endpoint.method} {endpoint.path}"
        parent = request.headers.get("traceparent")
        with self._handler.admit(), tracing.span(name, parent=parent):
            return await endpoint.serve(self._handler, params, request)

    async def _params(
        self, endpoint: Endpoint[Any], named: dict[str, str], request: ApiRequest
    ) -> Any:
        """Return the parameters of a request. Reads its body, unless that is bytes."""
        if endpoint.takes_bytes:
            return struct_of_query(endpoint.takes, request.query, named)
        content_type = request.headers.get("content-type", "")
        content: object
        if endpoint.body_types:
            assert endpoint.body is not None
            check_content_type(content_type, endpoint.body_types)
            content = await request.body(self._handler.config.rows_bytes_max, "rows_bytes_max")
            return struct_of_query(endpoint.takes, request.query, {**named, endpoint.body: content})
        body = await request.body(self._handler.config.body_bytes_max)
        if endpoint.body is not None:
            content = struct_of_json(endpoint.body_type, body, content_type)
            return struct_of_query(endpoint.takes, request.query, {**named, endpoint.body: content})
        if endpoint.method == "POST" and (body or endpoint.takes.__struct_fields__):
            return struct_of_json(endpoint.takes, body, content_type)
        return struct_of_query(endpoint.takes, request.query, named)

    async def _send_stream(
        self, stream: RowStream, request: ApiRequest, send: Send, cors: list[tuple[bytes, bytes]]
    ) -> None:
        """Send pieces as they are produced. An error before the first becomes an error response."""
        handler = self._handler
        leaving = asyncio.create_task(request.gone())
        try:
            try:
                piece = await _piece(handler, stream, leaving)
            except FrazilError as error:
                await _send_answer(answer_of_error(error), send, cors)
                return
            headers = [(b"content-type", stream.content_type), *SECURITY, *cors]
            REQUESTS.add(status="200")
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                while piece is not None:
                    await _send_piece(piece, send)
                    piece = await _piece(handler, stream, leaving)
            except FrazilError as error:
                logger.info("stream cut off", extra={"reason": failure_of(error).message})
                await _send_piece(stream.farewell(error), send)
                await send({"type": CUT})
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()
            await handler.run(stream.close)

    async def _send_live(
        self, live: LiveStream, request: ApiRequest, send: Send, cors: list[tuple[bytes, bytes]]
    ) -> None:
        """Send pieces until the client disconnects or the node stops."""
        sending = asyncio.create_task(_send_pieces(live, send, cors))
        await self._while_wanted(sending, request, live.close)
        if sending.cancelled() or sending.exception() is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            logger.info("live tail ended", extra={"reason": str(sending.exception())})
            await send({"type": CUT})

    async def _send_socket(self, stream: SocketStream, request: ApiRequest, send: Send) -> None:
        """Send messages until the client closes the WebSocket or the node stops."""
        sending = asyncio.create_task(_send_messages(stream, send))
        await self._while_wanted(sending, request, stream.close)
        code, reason = CLOSE_GOING_AWAY, "the node stops"
        error = None if sending.cancelled() else sending.exception()
        if isinstance(error, FrazilError):
            code, reason = CLOSE_FAILED, str(error)
            logger.info("websocket ended", extra={"reason": reason})
        elif error is not None:  # top of loop: one request must not break others
            code, reason = CLOSE_FAILED, FAILED
            logger.error("request failed", exc_info=error, extra={"path": request.path})
        await send({"type": SOCKET_CLOSE, "code": code, "reason": reason})

    async def _while_wanted(
        self, sending: asyncio.Task[None], request: ApiRequest, close: Callable[[], None]
    ) -> None:
        """Let it send until it ends, the client disconnects or the node stops."""
        leaving = asyncio.create_task(request.gone())
        stopping = asyncio.create_task(self._handler.is_stopping.wait())
        try:
            await asyncio.wait({leaving, stopping, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            close()
            for task in (leaving, stopping, sending):
                task.cancel()
            await asyncio.wait({leaving, stopping, sending})


async def _send_messages(stream: SocketStream, send: Send) -> None:
    REQUESTS.add(status="101")
    await send({"type": SOCKET_ACCEPT})
    async for piece in stream.pieces:
        if piece:
            SENT.add(len(piece))
            await send({"type": SOCKET_TEXT, "text": piece})
        else:
            await send({"type": SOCKET_PING})


async def _send_pieces(live: LiveStream, send: Send, cors: list[tuple[bytes, bytes]]) -> None:
    headers = [(b"content-type", live.content_type), *SECURITY, *cors]
    REQUESTS.add(status="200")
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for piece in live.pieces:
        await _send_piece(piece, send)


async def _piece(handler: Handler, stream: RowStream, leaving: asyncio.Task[None]) -> bytes | None:
    """Return the next piece. `ClientGone` if the client disconnected."""
    making = asyncio.ensure_future(handler.run(lambda: next(stream.pieces, None)))
    making.add_done_callback(_consume_error)
    await asyncio.wait({making, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if leaving.done():
        stream.stop()
        await asyncio.wait({making})
    try:
        piece = await making
    except FrazilError:
        if leaving.done():
            raise ClientGone from None
        raise
    except Exception:  # top of loop: one request must not break others
        logger.exception("request failed")
        raise Unavailable(FAILED) from None
    if leaving.done():
        raise ClientGone
    return piece


def _consume_error(making: asyncio.Future[bytes | None]) -> None:
    """Prevent "exception was never retrieved" after a disconnect or a stop."""
    if not making.cancelled():
        making.exception()


async def _send_piece(piece: bytes, send: Send) -> None:
    if piece:
        SENT.add(len(piece))
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _send_answer(answer: Response, send: Send, cors: list[tuple[bytes, bytes]]) -> None:
    REQUESTS.add(status=str(int(answer.status)))
    SENT.add(len(answer.body))
    names = {name for name, _ in answer.headers}
    headers = [*answer.headers, *(h for h in SECURITY if h[0] not in names), *cors]
    if answer.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _preflight() -> Response:
    """Answer a CORS preflight request."""
    headers = [
        (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
        (b"access-control-allow-headers", ALLOWED_HEADERS),
        (b"access-control-max-age", b"%d" % PREFLIGHT_AGE_S),
    ]
    return Response(status=HTTPStatus.NO_CONTENT, headers=headers)


def _latin(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")

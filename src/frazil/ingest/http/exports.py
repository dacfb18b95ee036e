"""HttpExports: serves OTLP/HTTP requests.

A request is refused as early as possible: before its body is read when the path, the token, the
type or the length is wrong, or when the node is overloaded.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

from frazil import tracing
from frazil.errors import FrazilError, Unavailable
from frazil.httpd import (
    Auth,
    ClientGone,
    HttpError,
    Receive,
    Response,
    Scope,
    Send,
    check_origin,
    cors_headers,
    reason_of,
)
from frazil.ingest.http.deadlines import BodyReader
from frazil.ingest.http.request import (
    PATHS,
    HttpRequest,
    supported_encoding,
    supported_type,
)
from frazil.ingest.http.responses import (
    JSON,
    error_response,
    message_response,
    preflight_response,
)
from frazil.ingest.receiver import REFUSED_BYTES, REFUSED_REQUESTS, Receiver
from frazil.ingest.status_codes import response_of
from frazil.model import Signal
from frazil.settings import IngestConfig, is_loopback

logger = logging.getLogger(__name__)

OWN_HEADER = tracing.OWN_HEADER.encode()


class HttpExports:
    """Serves concurrent requests. Owned by the event loop."""

    def __init__(self, config: IngestConfig, auth: Auth, receiver: Receiver) -> None:
        self._cors_origins = config.cors_origins
        self._is_local = is_loopback(config.host) and not auth.tokens
        self._auth = auth
        self._receiver = receiver
        self._bodies = BodyReader(config, receiver.gate.reads)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. The application of the port."""
        request = HttpRequest.of(scope, receive)
        try:
            response = await self._respond(request)
        except (ClientGone, asyncio.CancelledError):
            return
        origin = request.headers.get(b"origin")
        headers = [*response.headers, *cors_headers(origin, self._cors_origins)]
        if response.status != HTTPStatus.NO_CONTENT:
            headers.append((b"content-length", b"%d" % len(response.body)))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, request: HttpRequest) -> Response:
        # No error is kept in a variable: its traceback leads back here, and that cycle would keep
        # the body alive until the garbage collector runs.
        try:
            return await self._route(request)
        except (FrazilError, HttpError) as error:
            return _refused(request, error)
        except ClientGone:
            raise
        except Exception:  # top of loop: one request fails, the others go on
            logger.exception("request failed", extra={"path": request.path})
            failed = "this node failed to serve the request and logged why; retry later"
            return _refused(request, Unavailable(failed))

    async def _route(self, request: HttpRequest) -> Response:
        signal = request.signal
        if signal is None:
            known = ", ".join(PATHS)
            raise HttpError(HTTPStatus.NOT_FOUND, f"unknown path {request.path}; send to {known}")
        if request.is_preflight:
            return preflight_response(request.headers.get(b"access-control-request-headers"))
        if request.method != "POST":
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.path} accepts POST, not {request.method}",
                (b"allow", b"POST"),
            )
        origin, host = request.text(b"origin"), request.text(b"host") or ""
        check_origin(origin, host, self._cors_origins, is_local=self._is_local)
        authorization = request.text(b"authorization")
        if not self._auth.knows(authorization):
            await self._auth.deny(authorization)
        return await self._export(signal, request)

    async def _export(self, signal: Signal, request: HttpRequest) -> Response:
        """Store one export. Returns once it is durable."""
        content_type, encoding = supported_type(request), supported_encoding(request)
        self._bodies.check_length(request.content_length)
        with self._receiver.gate.enter() as reservation:
            body = await self._bodies.read(request, reservation)
            if encoding != "identity":
                body = await self._receiver.decompress(encoding, body)
                reservation.take(len(body))
            if content_type == JSON:
                body = await self._receiver.protobuf_of_json(signal, body)
            is_own = OWN_HEADER in request.headers
            receipt = await self._receiver.accept(signal, "http", body, is_own=is_own)
        response = response_of(signal, receipt.rejected_count, receipt.message)
        return message_response(response, content_type)


def _refused(request: HttpRequest, error: FrazilError | HttpError) -> Response:
    labels = {
        "signal": "unknown" if request.signal is None else request.signal.value,
        "transport": "http",
        "reason": reason_of(error),
    }
    REFUSED_REQUESTS.add(1, **labels)
    REFUSED_BYTES.add(request.length, **labels)
    return error_response(error, request.content_type)

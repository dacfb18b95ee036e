"""HttpExports: what becomes of a request of OTLP/HTTP. The application that uvicorn calls.

A request is refused as soon as that is known: before its body is read when the path, the token,
the type or the length is wrong, or when there is no room.
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
    cors_headers,
    reason_of,
)
from frazil.ingest.config import IngestConfig
from frazil.ingest.http.deadlines import BodyReader
from frazil.ingest.http.request import (
    PATHS,
    HttpRequest,
    known_encoding,
    known_type,
)
from frazil.ingest.http.responses import (
    JSON,
    answer_of_error,
    answer_of_message,
    answer_to_preflight,
)
from frazil.ingest.receiver import REFUSED_BYTES, REFUSED_REQUESTS, Receiver
from frazil.ingest.status_codes import response_of
from frazil.model import Signal

logger = logging.getLogger(__name__)

OWN_HEADER = tracing.OWN_HEADER.encode()


class HttpExports:
    """Serves requests, many at a time. Belongs to the event loop."""

    def __init__(self, config: IngestConfig, access: Auth, receiver: Receiver) -> None:
        self._cors_origins = config.cors_origins
        self._access = access
        self._receiver = receiver
        self._bodies = BodyReader(config, receiver.gate.reads)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever it is."""
        request = HttpRequest.of(scope, receive)
        try:
            answer = await self._answer(request)
        except (ClientGone, asyncio.CancelledError):
            return  # There is nobody to answer to.
        origin = request.headers.get(b"origin")
        headers = [*answer.headers, *cors_headers(origin, self._cors_origins)]
        if answer.status != HTTPStatus.NO_CONTENT:
            headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, request: HttpRequest) -> Response:
        # No error is kept in a variable: its traceback leads back here, and what that cycle holds,
        # the body for one, would stay until somebody looks for cycles.
        try:
            return await self._route(request)
        except (FrazilError, HttpError) as error:
            return _refused(request, error)
        except ClientGone:
            raise
        except Exception:  # top of loop: what one request breaks must not become everybody's
            logger.exception("request failed", extra={"path": request.path})
            why = "this request failed inside the node, which has logged why"
            return _refused(request, Unavailable(why))

    async def _route(self, request: HttpRequest) -> Response:
        signal = request.signal
        if signal is None:
            known = ", ".join(PATHS)
            raise HttpError(HTTPStatus.NOT_FOUND, f"nothing is at {request.path}; send to {known}")
        if request.is_preflight:
            return answer_to_preflight(request.headers.get(b"access-control-request-headers"))
        if request.method != "POST":
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{request.path} takes POST, not {request.method}",
                (b"allow", b"POST"),
            )
        if not self._access.knows(request.text(b"authorization")):
            await self._access.deny()
        return await self._export(signal, request)

    async def _export(self, signal: Signal, request: HttpRequest) -> Response:
        """Take in one export. Returns once it is durable."""
        content_type, encoding = known_type(request), known_encoding(request)
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
        return answer_of_message(response, content_type)


def _refused(request: HttpRequest, error: FrazilError | HttpError) -> Response:
    labels = {
        "signal": "unknown" if request.signal is None else request.signal.value,
        "transport": "http",
        "reason": reason_of(error),
    }
    REFUSED_REQUESTS.add(1, **labels)
    REFUSED_BYTES.add(request.length, **labels)
    return answer_of_error(error, request.content_type)

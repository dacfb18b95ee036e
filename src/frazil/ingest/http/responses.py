"""What OTLP/HTTP answers with: a status, headers, and a body of the type that was asked with.

Errors that both transports have are in `answers`; here are those that only HTTP has a number for,
and the headers that let web pages of allowed origins read an answer.
"""

from __future__ import annotations

import re
from http import HTTPStatus

import grpc
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from frazil.errors import FrazilError, Unauthenticated
from frazil.httpd import PREFLIGHT_AGE_S, Headers, HttpError, Response
from frazil.ingest.status_codes import codes_of, json_of, retry_after_s, status_of

PROTOBUF = b"application/x-protobuf"
JSON = b"application/json"
TYPES = {PROTOBUF: PROTOBUF, b"application/protobuf": PROTOBUF, JSON: JSON}
"""`Content-Type` of a request to that of its answer."""

CODES = {
    HTTPStatus.NOT_FOUND: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.METHOD_NOT_ALLOWED: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.REQUEST_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    HTTPStatus.REQUEST_URI_TOO_LONG: grpc.StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: grpc.StatusCode.INVALID_ARGUMENT,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""What a `HttpError` is called in the `Status` that is its body."""

HEADER_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+")


def answer_of_message(message: Message, content_type: bytes) -> Response:
    """The answer to a request that was taken in."""
    return _answer(HTTPStatus.OK, message, content_type, [])


def answer_of_error(error: FrazilError | HttpError, content_type: bytes | None) -> Response:
    """The answer to a request that was refused: a `Status`, and when to come back.

    Whoever asked with a type that is not known here gets JSON, which a human can read.
    """
    content_type = content_type or JSON
    if isinstance(error, HttpError):
        status = Status(code=CODES[error.status].value[0], message=str(error))
        return _answer(error.status, status, content_type, list(error.headers))
    headers = []
    wait_s = retry_after_s(error)
    if wait_s is not None:
        headers.append((b"retry-after", b"%d" % wait_s))
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    return _answer(codes_of(error)[0], status_of(error), content_type, headers)


def _answer(status: int, message: Message, content_type: bytes, headers: Headers) -> Response:
    body = json_of(message) if content_type == JSON else message.SerializeToString()
    return Response(status=status, headers=[(b"content-type", content_type), *headers], body=body)


def answer_to_preflight(requested_headers: bytes | None) -> Response:
    """Tell a browser what a page may send. Whether it may at all is in `cors_headers`."""
    headers = [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-max-age", b"%d" % PREFLIGHT_AGE_S),
    ]
    if requested_headers is not None and HEADER_NAMES.fullmatch(requested_headers):
        headers.append((b"access-control-allow-headers", requested_headers))
    return Response(status=HTTPStatus.NO_CONTENT, headers=headers)

"""OTLP/HTTP responses, with a body of the request's media type."""

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
"""`Content-Type` of a request to that of its response."""

CODES = {
    HTTPStatus.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.METHOD_NOT_ALLOWED: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.REQUEST_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    HTTPStatus.REQUEST_URI_TOO_LONG: grpc.StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: grpc.StatusCode.INVALID_ARGUMENT,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""The code of an `HttpError` in the `Status` of its body."""

HEADER_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+")


def message_response(message: Message, content_type: bytes) -> Response:
    """Return the response to an accepted request."""
    return _response(HTTPStatus.OK, message, content_type, [])


def error_response(error: FrazilError | HttpError, content_type: bytes | None) -> Response:
    """Return the response to a refused request: a `Status` and a retry hint.

    Without a supported media type the body is JSON.
    """
    content_type = content_type or JSON
    if isinstance(error, HttpError):
        status = Status(code=CODES[error.status].value[0], message=str(error))
        return _response(error.status, status, content_type, list(error.headers))
    headers = []
    wait_s = retry_after_s(error)
    if wait_s is not None:
        headers.append((b"retry-after", b"%d" % wait_s))
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    return _response(codes_of(error)[0], status_of(error), content_type, headers)


def _response(status: int, message: Message, content_type: bytes, headers: Headers) -> Response:
    body = json_of(message) if content_type == JSON else message.SerializeToString()
    return Response(status=status, headers=[(b"content-type", content_type), *headers], body=body)


def preflight_response(requested_headers: bytes | None) -> Response:
    """Return the response to a CORS preflight. `cors_headers` allows the origin or not."""
    headers = [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-max-age", b"%d" % PREFLIGHT_AGE_S),
    ]
    if requested_headers is not None and HEADER_NAMES.fullmatch(requested_headers):
        headers.append((b"access-control-allow-headers", requested_headers))
    return Response(status=HTTPStatus.NO_CONTENT, headers=headers)

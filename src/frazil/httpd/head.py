"""Limits on a request's head.

The parser refuses what HTTP/1.1 forbids. This refuses what it still accepts: heads without a size
limit, and framings that a proxy in front of us may read differently.
"""

from __future__ import annotations

from http import HTTPStatus

from frazil.errors import Malformed
from frazil.httpd.responses import Headers, HttpError, encode_headers

HEAD_BYTES_MAX = 32 * 1024
"""All headers of a request. Those of an exporter take about 1 KiB, with a token."""
HEADERS_MAX = 100
HEADER_EXTRA_BYTES = len(b": \r\n")

VERSIONS = ("1.0", "1.1")


def check_target(target: bytes, bytes_max: int) -> None:
    """Refuse a request target that is too long, even before all of it has arrived."""
    if len(target) > bytes_max:
        raise HttpError(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            f"the path that begins with {target[:20].decode('latin-1')!r} is longer than "
            f"{bytes_max} bytes; shorten it",
        )


def check_size(head_bytes: int, header_count: int) -> None:
    """Refuse too many or too long headers, even before all of them have arrived."""
    if head_bytes > HEAD_BYTES_MAX or header_count > HEADERS_MAX:
        raise HttpError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"the headers exceed {HEADERS_MAX} lines or {HEAD_BYTES_MAX} bytes; send fewer",
        )


def check_head(version: str, method: bytes, headers: Headers) -> None:
    """Refuse a complete head that is ambiguous or cannot be served."""
    if version not in VERSIONS:
        raise Malformed(f"this is HTTP/{version}; send HTTP/1.1")
    if method == b"CONNECT":
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "this is not a proxy", (b"allow", b"POST"))
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and version == "1.0":
        raise Malformed("HTTP/1.0 has no Transfer-Encoding; send Content-Length or HTTP/1.1")
    if any(coding.lower() != b"chunked" for coding in codings):
        raise Malformed(f"Transfer-Encoding is {codings[0].decode('latin-1')!r}; send chunked")


def without_upgrade(version: str, method: bytes, target: bytes, headers: Headers) -> bytes:
    """Encode the same head without its offer to switch protocols."""
    rest = [(name, value) for name, value in headers if name not in (b"connection", b"upgrade")]
    if any(name == b"connection" and b"close" in value.lower() for name, value in headers):
        rest.append((b"connection", b"close"))
    return b"%s %s HTTP/%s\r\n%s\r\n" % (method, target, version.encode(), encode_headers(rest))

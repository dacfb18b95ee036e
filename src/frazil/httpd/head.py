"""What stands before a body: how much of it there may be, and what in it is refused.

The parser refuses what HTTP/1.1 refuses. Here is what it lets through and we do not: heads without
a bound, and framings that a proxy in front of us may read in another way.
"""

from __future__ import annotations

from http import HTTPStatus

from frazil.errors import Malformed
from frazil.httpd.responses import Headers, HttpError, encode_headers

HEAD_BYTES_MAX = 32 * 1024
"""All headers of a request; those of an exporter, token included, take about one of these."""
HEADERS_MAX = 100
HEADER_EXTRA_BYTES = len(b": \r\n")

VERSIONS = ("1.0", "1.1")


def check_target(target: bytes, bytes_max: int) -> None:
    """Refuse what is far too long for a path, whether or not all of it has come."""
    if len(target) > bytes_max:
        raise HttpError(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            f"what stands behind {target[:20].decode('latin-1')!r} makes the path longer than "
            f"{bytes_max} bytes; send less there",
        )


def check_size(head_bytes: int, header_count: int) -> None:
    """Refuse headers that are too long or too many, whether or not all of them have come."""
    if head_bytes > HEAD_BYTES_MAX or header_count > HEADERS_MAX:
        raise HttpError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"more than {HEADERS_MAX} headers, or above {HEAD_BYTES_MAX} bytes of them; send less",
        )


def check_head(version: str, method: bytes, headers: Headers) -> None:
    """Refuse a whole head that could be read in two ways, or that nobody here can serve."""
    if version not in VERSIONS:
        raise Malformed(f"this is HTTP/{version}; send HTTP/1.1")
    if method == b"CONNECT":
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "this is no proxy", (b"allow", b"POST"))
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and version == "1.0":
        raise Malformed("HTTP/1.0 has no Transfer-Encoding; send Content-Length or HTTP/1.1")
    if any(coding.lower() != b"chunked" for coding in codings):
        raise Malformed(f"Transfer-Encoding is {codings[0].decode('latin-1')!r}; send chunked")


def without_upgrade(version: str, method: bytes, target: bytes, headers: Headers) -> bytes:
    """The same head without the offer to go on in another protocol."""
    kept = [(name, value) for name, value in headers if name not in (b"connection", b"upgrade")]
    if any(name == b"connection" and b"close" in value.lower() for name, value in headers):
        kept.append((b"connection", b"close"))
    return b"%s %s HTTP/%s\r\n%s\r\n" % (method, target, version.encode(), encode_headers(kept))

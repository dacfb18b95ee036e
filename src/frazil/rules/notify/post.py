"""One POST over HTTP or HTTPS."""

from __future__ import annotations

import base64
import http.client
import ssl
from urllib.parse import unquote, urlsplit

from frazil.errors import Malformed, Unavailable

TIMEOUT_S = 10.0
REASON_BYTES_MAX = 500
"""Of a response that is an error, for its message."""
RETRIED_STATUSES = frozenset({408, 429})
"""Besides 5xx: the same body may be accepted later."""


def post_json(url: str, body: bytes) -> None:
    """Send a body. `Unavailable` if that may succeed later, `Malformed` if the receiver will never
    take this body."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
    headers = {"content-type": "application/json"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, body, headers)
        response = connection.getresponse()
        reason = response.read(REASON_BYTES_MAX).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{address_of(url)} cannot be reached: {error}") from None
    finally:
        connection.close()
    if response.status < 300:
        return
    text = f"{address_of(url)} answered {response.status}: {reason or response.reason}"
    if response.status >= 500 or response.status in RETRIED_STATUSES:
        raise Unavailable(text)
    raise Malformed(text)


def address_of(url: str) -> str:
    """Return scheme, host and port of an address: what else it has may be secret."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"

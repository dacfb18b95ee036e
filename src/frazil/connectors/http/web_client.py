"""WebClient: requests to the server of a connection, and to no other.

    [connections]
    "shop.url" = "https://shop.example/api"      where requests go: options name a path below it
    "shop.token" = "…"                            Authorization: Bearer …
    "shop.user", "shop.password"                  or basic authentication
    "shop.ca_file" = "/etc/ssl/shop.pem"          certificates to trust instead of the system's

Redirects are not followed: they would lead elsewhere, with the credentials.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from frazil.errors import Malformed, TooLarge, Unavailable

TIMEOUT_S = 30.0
OPTIONS = frozenset({"url", "token", "user", "password", "ca_file"})
FORBIDDEN = frozenset("\\\x7f ") | {chr(code) for code in range(32)}
RETRIED = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
"""Like those from 500 on: the same request may succeed later."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HELPLESS = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
        HTTPStatus.GONE,
    }
)
"""The connection or the path is wrong, not a record."""


@dataclass(frozen=True, slots=True)
class WebResponse:
    """Status, headers in lower case, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_retried(self) -> bool:
        return self.status in RETRIED or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def retry_after_s(self) -> float | None:
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdecimal() else None

    def text(self) -> str:
        return f"{self.status}: {self.body[:200].decode(errors='replace').strip()}"


class WebClient:
    """Owned by one thread. Keeps one connection open."""

    def __init__(self, connection: Mapping[str, str], path: str) -> None:
        """`Malformed` if the connection or the path cannot be used."""
        unknown = sorted(connection.keys() - OPTIONS)
        if unknown:
            raise Malformed(f"the connection has {unknown[0]}, which http does not know")
        url = connection.get("url", "")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise Malformed(f"the connection has no url such as https://shop.example: {url!r}")
        if "@" in parts.netloc:
            raise Malformed("put the password of the connection into user and password, not url")
        if path and (not path.startswith("/") or set(path) & FORBIDDEN or ".." in path.split("/")):
            raise Malformed(f"PATH is {path!r}; it begins with /, without .. and spaces")
        self._path = f"{parts.path.rstrip('/')}{path}" or "/"
        self._host, self._port = parts.hostname, parts.port
        self._context = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=connection.get("ca_file"))
        self._headers = {"User-Agent": "frazil", **_authorization(connection)}
        self._open: http.client.HTTPConnection | None = None

    def request(
        self,
        method: str,
        *,
        query: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        bytes_max: int,
    ) -> WebResponse:
        """Send a request. `Unavailable` if there is no response, `Malformed` for a redirect or if
        the server refuses us, `TooLarge` for a body above `bytes_max`."""
        target = f"{self._path}{'&' if '?' in self._path else '?'}{query}" if query else self._path
        try:
            response = self._exchange(method, target, body, headers or {}, bytes_max)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unavailable(f"{self._host} does not answer: {error!r}") from error
        if response.status in REDIRECTS:
            where = response.headers.get("location", "elsewhere")
            raise Malformed(f"{self._host} redirects to {where}; put that into the connection")
        if response.status in HELPLESS:
            raise Malformed(f"{self._host}{self._path} answers {response.text()}")
        return response

    def _exchange(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        bytes_max: int,
    ) -> WebResponse:
        if self._open is None:
            self._open = self._connected()
        self._open.request(method, target, body, {**self._headers, **headers})
        response = self._open.getresponse()
        content = response.read(bytes_max + 1)
        if len(content) > bytes_max:
            self.close()
            raise TooLarge(f"the response of {self._host} has more than {bytes_max} bytes")
        if response.will_close:
            self.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        return WebResponse(response.status, found, content)

    def _connected(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=TIMEOUT_S, context=self._context
        )

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _authorization(connection: Mapping[str, str]) -> dict[str, str]:
    if "token" in connection:
        return {"Authorization": f"Bearer {connection['token']}"}
    if "user" in connection:
        pair = f"{connection['user']}:{connection.get('password', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}

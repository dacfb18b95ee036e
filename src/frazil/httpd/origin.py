"""Origin and Host: which web pages may send requests to a port."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from http import HTTPStatus

from frazil.httpd.responses import HttpError, cors_headers


def check_origin(
    origin: str | None, host: str, cors_origins: Sequence[str], *, is_local: bool
) -> None:
    """Reject requests of foreign web pages, with `HttpError`.

    `is_local`: the port listens on loopback without tokens. DNS rebinding: a foreign page can
    resolve its own name to this machine; the Host header then has that name.
    """
    if origin is not None and not _is_allowed(origin, host, cors_origins):
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"pages from {origin} are not allowed; add the origin to ingest.cors_origins",
        )
    if is_local and not _is_own_name(host):
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"this node serves only this machine, and the Host header is {host!r}; use localhost "
            "or 127.0.0.1, or set a token file",
        )


def _is_allowed(origin: str, host: str, cors_origins: Sequence[str]) -> bool:
    allowed = cors_headers(origin.encode("latin-1"), cors_origins)
    is_same = origin.partition("://")[2] == host
    return is_same or any(name == b"access-control-allow-origin" for name, _ in allowed)


def _is_own_name(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

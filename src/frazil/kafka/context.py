"""RequestContext: who sent a request, in which version, over which connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class NetworkAddress(NamedTuple):
    """Host and port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class TopicVisibility:
    """Which topics the sender of a request may describe."""

    sees: Callable[[str], bool]
    version: int
    """Changes with the ACLs."""


@dataclass(slots=True, kw_only=True)
class ConnectionState:
    """What handlers know of a connection, and keep with it. Owned by the event loop."""

    client: NetworkAddress
    """The client's end."""
    local: NetworkAddress
    """Our end: the address that the client connected to."""
    principal: str
    """Who the client is: `User:ANONYMOUS` until it has authenticated."""
    is_authenticated: bool
    kept: dict[str, Any]
    """State of a handler that ends with the connection, by the name of its family."""
    software: tuple[str, str] = ("", "")
    """Name and version of the client's library, as it says."""
    has_logged_in: bool = False
    """Whether the principal is that of a login: it cannot change any more."""
    expires_s: float | None = None
    """When the session ends, in the time of the event loop; None if it does not."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a handler gets beside the request."""

    api_version: int
    client_id: str
    """As the client calls itself; empty if it does not say."""
    connection: ConnectionState
    is_only: bool = False
    """Whether no other request of the connection has arrived, or waits for its response."""
    visibility: TopicVisibility | None = None
    """For handlers that choose topics by themselves; None if all may be described."""

    @property
    def client_host(self) -> str:
        return self.connection.client.host

    @property
    def principal(self) -> str:
        return self.connection.principal

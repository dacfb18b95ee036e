"""HttpPort: an open port for HTTP/1.1, and the application behind it.

What a connection may do is in `http_connection`; what a request becomes is the application's.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

import uvicorn
from uvicorn.server import ServerState

from frazil.errors import Unavailable
from frazil.httpd.auth import Auth
from frazil.httpd.connection import IDLE_TIMEOUT_S, ConnectionLimits, Connections, HttpConnection
from frazil.httpd.responses import Receive, Scope, Send

BACKLOG = 1024
"""Connections that the system holds until they are accepted."""
HANDSHAKE_TIMEOUT_S = 10.0
"""A client that opens a connection and then does not speak TLS is gone after this."""
DATE_INTERVAL_S = 1.0
"""The answers carry the date, which has no parts of seconds."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where to listen, and which settings say so."""

    host: str
    port: int
    what: str
    """What is served there, as in OTLP/HTTP."""
    host_setting: str
    port_setting: str


class HttpPort:
    """An open port. Belongs to the event loop."""

    def __init__(
        self, state: ServerState, server: asyncio.Server, dating: asyncio.Task[None]
    ) -> None:
        self.port: int = server.sockets[0].getsockname()[1]
        self._state = state
        self._server = server
        self._dating = dating

    @classmethod
    async def open(
        cls, app: App, address: ListenAddress, access: Auth, manners: ConnectionLimits
    ) -> Self:
        """Listen. `Unavailable` when the address cannot be had."""
        listener = await _bind(address)
        shared = _uvicorn(app)
        connections = Connections(config=shared.config, state=shared.server_state, manners=manners)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: HttpConnection(connections),
            sock=listener,
            backlog=BACKLOG,
            ssl=access.tls,
            ssl_handshake_timeout=None if access.tls is None else HANDSHAKE_TIMEOUT_S,
        )
        return cls(shared.server_state, server, loop.create_task(_date(shared)))

    async def close(self, grace_s: float) -> None:
        """Accept no connections any more, let requests finish for `grace_s`, then cut them off."""
        self._server.close()
        connections = [c for c in self._state.connections if isinstance(c, HttpConnection)]
        for connection in connections:
            connection.shutdown()
        in_hand = [*self._state.tasks, *(connection.gone for connection in connections)]
        if in_hand:
            await asyncio.wait(in_hand, timeout=grace_s)
        for connection in connections:
            connection.cut()
        unfinished = [*self._state.tasks, self._dating]
        for task in unfinished:
            task.cancel()
        await asyncio.wait(unfinished)


def _uvicorn(app: App) -> uvicorn.Server:
    """What all connections share: settings, a list of them and of their tasks, the date."""
    config = uvicorn.Config(
        app,
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_TIMEOUT_S,
    )
    config.load()
    return uvicorn.Server(config)


async def _date(shared: uvicorn.Server) -> None:
    while True:
        await shared.on_tick(0)
        await asyncio.sleep(DATE_INTERVAL_S)


async def _bind(address: ListenAddress) -> socket.socket:
    host, port = address.host, address.port
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, place = found[0]
        is_dual = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(place[:2], family=family, dualstack_ipv6=is_dual)
    except OSError as error:
        raise Unavailable(
            f"{address.what} cannot listen on {host} port {port}: {error.strerror}; free the port, "
            f"or set {address.host_setting} and {address.port_setting}"
        ) from None

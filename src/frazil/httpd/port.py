"""HttpPort: an HTTP/1.1 port and the application behind it.

It listens itself, or serves connections that were accepted elsewhere.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from email.utils import formatdate
from typing import Self

from frazil.errors import Unavailable
from frazil.httpd.auth import Auth
from frazil.httpd.connection import ConnectionLimits, Connections, HttpConnection
from frazil.httpd.exchange import App

BACKLOG = 1024
"""Connections that the kernel holds until they are accepted."""
HANDSHAKE_TIMEOUT_S = 10.0
"""How long a new connection may take for its TLS handshake."""
DATE_INTERVAL_S = 1.0
"""The `Date` header has whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where to listen, and the settings to name when that fails."""

    host: str
    port: int
    what: str
    """What is served there, as in OTLP/HTTP."""
    host_setting: str
    port_setting: str


class HttpPort:
    """An application and its connections. Owned by the event loop."""

    def __init__(self, app: App, auth: Auth, limits: ConnectionLimits) -> None:
        self._auth = auth
        self._connections = Connections(app=app, limits=limits, date=_date())
        self._server: asyncio.Server | None = None
        self._adopting: set[asyncio.Task[None]] = set()
        self._dating = asyncio.get_running_loop().create_task(_update_date(self._connections))

    @classmethod
    async def open(
        cls, app: App, address: ListenAddress, auth: Auth, limits: ConnectionLimits
    ) -> Self:
        """Listen. Raises `Unavailable` when the address is taken or not ours."""
        listener = await bind(address)
        port = cls(app, auth, limits)
        port._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(port._connections),
            sock=listener,
            backlog=BACKLOG,
            ssl=auth.tls,
            ssl_handshake_timeout=port._handshake_timeout_s,
        )
        return port

    @property
    def port(self) -> int:
        """The number of the port, if it listens itself."""
        assert self._server is not None
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    @property
    def _handshake_timeout_s(self) -> float | None:
        return None if self._auth.tls is None else HANDSHAKE_TIMEOUT_S

    def adopt(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        accepted.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._adopt(accepted))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: HttpConnection(self._connections),
                accepted,
                ssl=self._auth.tls,
                ssl_handshake_timeout=self._handshake_timeout_s,
            )
        except OSError:  # also a failed TLS handshake: the client knows
            accepted.close()

    async def close(self, grace_s: float) -> None:
        """Stop listening, let requests finish for `grace_s`, then cut them off."""
        if self._server is not None:
            self._server.close()
        connections, tasks = list(self._connections.active), self._connections.tasks
        for connection in connections:
            connection.shut_down()
        unfinished = [*tasks, *(connection.lost for connection in connections)]
        if unfinished:
            await asyncio.wait(unfinished, timeout=grace_s)
        for connection in connections:
            connection.abort()
        cancelled = [*tasks, *self._adopting, self._dating]
        for task in cancelled:
            task.cancel()
        await asyncio.wait(cancelled)


async def _update_date(connections: Connections) -> None:
    while True:
        connections.date = _date()
        await asyncio.sleep(DATE_INTERVAL_S)


def _date() -> bytes:
    return b"date: %s\r\n" % formatdate(usegmt=True).encode()


async def bind(address: ListenAddress) -> socket.socket:
    """Return a listening socket. Raises `Unavailable` when the address is taken or not ours."""
    host, port = address.host, address.port
    try:
        loop = asyncio.get_running_loop()
        resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, socket_address = resolved[0]
        is_dual = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(
            socket_address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=is_dual
        )
    except OSError as error:
        raise Unavailable(
            f"{address.what} cannot listen on {host} port {port}: {error.strerror}; free the port, "
            f"or set {address.host_setting} and {address.port_setting}"
        ) from None

"""ApiServer: the port for SQL, questions and health, open."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from frazil.httpd import Auth, ConnectionLimits, HttpPort, ListenAddress
from frazil.ingest import IngestConfig, is_loopback
from frazil.serve.config import ServeConfig
from frazil.serve.context import NodeContext
from frazil.serve.http.app import App
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of_error
from frazil.serve.http.router import Router
from frazil.serve.routes import endpoints_of

TARGET_BYTES_MAX = 16 * 1024
"""A path with a search and its filters."""
FETCH_TIMEOUT_S = 60.0
"""How long a client may leave rows unread: whoever works on some of them before he takes more."""


class ApiServer:
    """An open port for the API. Belongs to the event loop."""

    def __init__(self, desk: Handler, port: HttpPort) -> None:
        self.port = port.port
        self._desk = desk
        self._port = port

    @classmethod
    async def open(
        cls, rooms: NodeContext, config: ServeConfig, ingest: IngestConfig, access: Auth
    ) -> Self:
        """Listen where OTLP listens. `Unavailable` when the port cannot be had."""
        access = reading(access, config)
        desk = Handler(rooms, config)
        app = App(
            desk,
            Router(endpoints_of()),
            access,
            cors_origins=ingest.cors_origins,
            is_local=is_loopback(ingest.host) and not access.tokens,
        )
        address = ListenAddress(
            host=ingest.host,
            port=config.http_port,
            what="the API",
            host_setting="ingest.host",
            port_setting="serve.http_port",
        )
        manners = ConnectionLimits(
            count_max=config.connections_max,
            count_setting="serve.connections_max",
            target_bytes_max=TARGET_BYTES_MAX,
            fetch_timeout_s=FETCH_TIMEOUT_S,
            response_of=answer_of_error,
        )
        with ExitStack() as undo:
            undo.callback(desk.close)
            port = await HttpPort.open(app.serve, address, access, manners)
            undo.pop_all()
        return cls(desk, port)

    async def close(self, grace_s: float) -> None:
        """Take no more requests, let those in hand finish for `grace_s`, then cut them off."""
        self._desk.stop()
        await self._port.close(grace_s)
        self._desk.close()


def reading(access: Auth, config: ServeConfig) -> Auth:
    """Who may read: those who may send, unless others are named."""
    if config.token_file is None:
        return access
    own = Auth.load(IngestConfig(token_file=config.token_file))
    return Auth(
        tokens=own.tokens,
        certificate=access.certificate,
        key=access.key,
        client_ca=access.client_ca,
        tls=access.tls,
    )

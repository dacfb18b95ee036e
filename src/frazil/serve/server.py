"""ApiServer: the open port of the API."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
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
"""Length of a path with query string: a search and its filters."""
FETCH_TIMEOUT_S = 60.0
"""How long a client may stop reading, for example to process rows."""


class ApiServer:
    """The open port of the API. Owned by the event loop."""

    def __init__(self, handler: Handler, port: HttpPort) -> None:
        self.port = port.port
        self._handler = handler
        self._port = port

    @classmethod
    async def open(
        cls, context: NodeContext, config: ServeConfig, ingest: IngestConfig, auth: Auth
    ) -> Self:
        """Listen on `ingest.host`. `Unavailable` if the port is taken."""
        auth = reading_auth(auth, config)
        handler = Handler(context, config)
        app = App(
            handler,
            Router(endpoints_of()),
            auth,
            cors_origins=ingest.cors_origins,
            is_local=is_loopback(ingest.host) and not auth.tokens,
        )
        address = ListenAddress(
            host=ingest.host,
            port=config.http_port,
            what="the API",
            host_setting="ingest.host",
            port_setting="serve.http_port",
        )
        limits = ConnectionLimits(
            count_max=config.connections_max,
            count_setting="serve.connections_max",
            target_bytes_max=TARGET_BYTES_MAX,
            fetch_timeout_s=FETCH_TIMEOUT_S,
            response_of=answer_of_error,
        )
        with ExitStack() as undo:
            undo.callback(handler.close)
            port = await HttpPort.open(app.serve, address, auth, limits)
            undo.pop_all()
        return cls(handler, port)

    async def close(self, grace_s: float) -> None:
        """Accept no more requests, let running ones finish for `grace_s`, then cut them off."""
        self._handler.stop()
        await self._port.close(grace_s)
        self._handler.close()


def reading_auth(auth: Auth, config: ServeConfig) -> Auth:
    """Use `serve.token_file` if set; otherwise the tokens for sending."""
    if config.token_file is None:
        return auth
    own = Auth.load(IngestConfig(token_file=config.token_file))
    return replace(auth, tokens=own.tokens)

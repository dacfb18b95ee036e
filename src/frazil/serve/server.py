"""ApiServer: the application of the API and its connections."""

from __future__ import annotations

import socket
from dataclasses import replace

from frazil.httpd import Auth, ConnectionLimits, HttpPort
from frazil.serve.context import NodeContext
from frazil.serve.doors.all import DOORS
from frazil.serve.http.app import App
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of_error
from frazil.serve.http.router import Router
from frazil.serve.routes import endpoints_of
from frazil.settings import IngestConfig, ServeConfig, is_loopback

TARGET_BYTES_MAX = 16 * 1024
"""Length of a path with query string: a search and its filters."""
FETCH_TIMEOUT_S = 60.0
"""How long a client may stop reading, for example to process rows."""


class ApiServer:
    """The API. Owned by the event loop. Connections are accepted elsewhere: see `adopt`."""

    def __init__(
        self, context: NodeContext, config: ServeConfig, ingest: IngestConfig, auth: Auth
    ) -> None:
        auth = reading_auth(auth, config)
        self._handler = Handler(context, config)
        app = _app(self._handler, ingest, auth, statements_auth(auth, config, ingest))
        self._port = HttpPort(app.serve, auth, _limits(config))

    def adopt(self, accepted: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        self._port.adopt(accepted)

    async def close(self, grace_s: float) -> None:
        """Accept no more requests, let running ones finish for `grace_s`, then cut them off."""
        self._handler.stop()
        await self._port.close(grace_s)
        self._handler.close()


def _app(handler: Handler, ingest: IngestConfig, auth: Auth, statements: Auth | None) -> App:
    return App(
        handler,
        Router(endpoints_of()),
        DOORS,
        auth,
        statements,
        cors_origins=ingest.cors_origins,
        is_local=is_loopback(ingest.host) and not auth.tokens,
    )


def _limits(config: ServeConfig) -> ConnectionLimits:
    return ConnectionLimits(
        count_max=config.connections_max,
        count_setting="serve.connections_max",
        target_bytes_max=TARGET_BYTES_MAX,
        fetch_timeout_s=FETCH_TIMEOUT_S,
        response_of=answer_of_error,
    )


def reading_auth(auth: Auth, config: ServeConfig) -> Auth:
    """Use `serve.token_file` if set; otherwise the tokens for sending. Who may send statements
    may read."""
    if config.token_file is not None:
        auth = replace(auth, tokens=_tokens(config.token_file))
    if auth.tokens and config.statements_token_file is not None:
        auth = replace(auth, tokens=(*auth.tokens, *_tokens(config.statements_token_file)))
    return auth


def statements_auth(auth: Auth, config: ServeConfig, ingest: IngestConfig) -> Auth | None:
    """Use `serve.statements_token_file` if set. Without it, whoever may read may send statements
    from this machine, and no one from elsewhere."""
    if config.statements_token_file is not None:
        return replace(auth, tokens=_tokens(config.statements_token_file))
    return auth if is_loopback(ingest.host) else None


def _tokens(path: str) -> tuple[bytes, ...]:
    return Auth.load(IngestConfig(token_file=path)).tokens

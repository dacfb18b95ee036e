"""JaegerPort: the port of Jaeger's remote storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from frazil.httpd import Auth, ListenAddress
from frazil.metrics import Counter
from frazil.serve.context import Sql
from frazil.serve.server import reading_auth
from frazil.settings import IngestConfig, JaegerConfig, ServeConfig

if TYPE_CHECKING:
    import grpc

    from frazil.serve.jaeger_storage.calls import JaegerCalls

CONNECTIONS_MAX = 64
"""A Jaeger has one or two."""

CALLS = Counter("frazil.jaeger.calls", "Calls of Jaeger's remote storage, by method.")


class JaegerPort:
    """The open port. Owned by the event loop."""

    def __init__(self, server: grpc.aio.Server, port: int, calls: JaegerCalls) -> None:
        self.port = port
        self._server = server
        self._calls = calls

    @classmethod
    async def open(
        cls, sql: Sql, config: JaegerConfig, ingest: IngestConfig, serve: ServeConfig, auth: Auth
    ) -> Self:
        """Listen, with the certificate of the API and the tokens that may read. `Unavailable` if
        the port is taken."""
        # gRPC takes memory that a reader without this port spares.
        from frazil.ingest import GrpcLimits, listening_server
        from frazil.serve.jaeger_storage.calls import REQUEST_BYTES_MAX, JaegerCalls

        reading = reading_auth(auth, serve)
        calls = JaegerCalls(
            sql, reading, calls_max=config.calls_max, answer_bytes_max=serve.answer_bytes_max
        )
        address = ListenAddress(
            host=config.host or ingest.host,
            port=config.port,
            what="Jaeger's remote storage",
            host_setting="jaeger.host",
            port_setting="jaeger.port",
        )
        limits = GrpcLimits(message_bytes_max=REQUEST_BYTES_MAX, connections_max=CONNECTIONS_MAX)
        server, port = listening_server(calls, address, reading, limits)
        await server.start()
        return cls(server, port, calls)

    async def close(self, grace_s: float) -> None:
        """Refuse new calls, let running ones finish for `grace_s`, then cut them off."""
        await self._server.stop(grace_s)
        self._calls.close()

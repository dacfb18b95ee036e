"""FlightPort: the Flight SQL port of a node."""

from __future__ import annotations

import threading
from typing import Self

import pyarrow as pa

from frazil.errors import Unavailable
from frazil.httpd import Auth, ListenAddress, bind
from frazil.model import Clock, Rand
from frazil.serve.flight.access import ACCESS, CallGate, NoHandshake
from frazil.serve.flight.rows import FlightSource
from frazil.serve.flight.server import FlightSqlServer
from frazil.serve.server import reading_auth, statements_auth
from frazil.settings import FlightConfig, IngestConfig, QueryConfig, ServeConfig, is_loopback


class FlightPort:
    """Opened and closed on the event loop; its server has threads of its own."""

    def __init__(self, server: FlightSqlServer) -> None:
        self._server = server

    @classmethod
    async def open(
        cls,
        source: FlightSource,
        config: FlightConfig,
        ingest: IngestConfig,
        serve: ServeConfig,
        query: QueryConfig,
        auth: Auth,
        *,
        clock: Clock,
        rand: Rand,
    ) -> Self:
        """Listen, with the certificate and the tokens of the API. `Unavailable` if the port is
        taken."""
        host = config.host or ingest.host
        if config.port:
            await _check_free(host, config.port)
        reading = reading_auth(auth, serve)
        statements = statements_auth(reading, serve, ingest)
        if serve.statements_token_file is None and not is_loopback(host):
            statements = None
        gate = CallGate(reading, statements, calls_max=config.calls_max, clock=clock)
        has_tls = auth.certificate is not None
        options: dict[str, object] = {}
        if has_tls:
            options["tls_certificates"] = [(auth.certificate, auth.key)]
        if auth.client_ca is not None:
            options |= {"verify_client": True, "root_certificates": auth.client_ca}
        scheme = "grpc+tls" if has_tls else "grpc+tcp"
        try:
            server = FlightSqlServer(
                f"{scheme}://{f'[{host}]' if ':' in host else host}:{config.port}",
                source,
                query,
                clock=clock,
                rand=rand,
                auth_handler=NoHandshake(),
                middleware={ACCESS: gate},
                **options,
            )
        except (pa.ArrowException, OSError) as error:
            raise Unavailable(
                f"Flight SQL cannot listen on {host} port {config.port}: {error}; free the port, "
                "or set flight.host and flight.port"
            ) from None
        return cls(server)

    @property
    def port(self) -> int:
        number: int = self._server.port
        return number

    def close(self, grace_s: float) -> None:
        """Cancel what runs, and stop; wait at most `grace_s` for clients that do not read."""
        self._server.running.close()
        stopping = threading.Thread(target=self._server.shutdown, daemon=True)
        stopping.start()
        stopping.join(grace_s)


async def _check_free(host: str, port: int) -> None:
    """Flight tells less about why it cannot listen."""
    listener = await bind(
        ListenAddress(
            host=host,
            port=port,
            what="Flight SQL",
            host_setting="flight.host",
            port_setting="flight.port",
        )
    )
    listener.close()

"""OtlpGrpc: the OTLP/gRPC port, with a limit on everything a client can do."""

from __future__ import annotations

import logging

import grpc

from frazil.errors import Unavailable
from frazil.httpd import Auth
from frazil.ingest.grpc.deadlines import MessageReader
from frazil.ingest.grpc.exports import GrpcExports
from frazil.ingest.grpc.reflection import HealthAndReflection
from frazil.ingest.receiver import Receiver
from frazil.model import KiB
from frazil.settings import IngestConfig

GRPC_LOGGER = "grpc._cython.cygrpc"

METADATA_BYTES_MAX = 16 * KiB
"""Headers of one call; a token, a trace context and baggage take a fraction of this."""
STREAMS_MAX = 100
ENDING_STREAMS_MAX = 100
"""Concurrent calls per connection; further ones wait at the client. ENDING_STREAMS_MAX more may be
ended for the client but not yet for the server; beyond that gRPC refuses new calls. This stops
clients that open and cancel calls in a loop, and must not affect others."""
PENDING_MAX = 10_000
"""Calls waiting for a handler. gRPC cancels further ones without a message; within this limit a
refused call gets a retry hint."""
HANDSHAKE_TIMEOUT_MS = 20_000
"""From a new connection to the end of its TLS and HTTP/2 handshakes."""
IDLE_MS = 5 * 60_000
"""A connection without calls is closed after this; exporters send every minute at least."""
KEEPALIVE_MS = 60_000
KEEPALIVE_TIMEOUT_MS = 20_000
"""A silent client is pinged after KEEPALIVE_MS, and disconnected KEEPALIVE_TIMEOUT_MS later."""


class OtlpGrpc:
    """The open OTLP/gRPC port, with health and reflection. Owned by the event loop."""

    def __init__(
        self,
        server: grpc.aio.Server,
        port: int,
        services: HealthAndReflection,
    ) -> None:
        self.port = port
        self._server = server
        self._services = services

    @classmethod
    async def open(cls, config: IngestConfig, auth: Auth, receiver: Receiver) -> OtlpGrpc:
        """Listen. Raises `Unavailable` when the address is taken or not ours."""
        logging.getLogger(GRPC_LOGGER).addFilter(_is_worth_logging)
        messages = MessageReader(receiver.gate.reads)
        services = HealthAndReflection(messages)
        exports = GrpcExports(auth, receiver, messages, services)
        server = grpc.aio.server(handlers=[exports], options=_options(config))
        port = _bind(server, config, auth)
        await server.start()
        return cls(server, port, services)

    async def close(self, grace_s: float) -> None:
        """Refuse new calls, answer admitted ones for at most `grace_s`, then cut them off."""
        self._services.stop()
        await self._server.stop(grace_s)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Drop gRPC's traceback per header that is not UTF-8: any client could fill the disk."""
    return not (record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError))


def _bind(server: grpc.aio.Server, config: IngestConfig, auth: Auth) -> int:
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"{host}:{config.grpc_port}"
    try:
        if auth.certificate is None:
            port: int = server.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials(
                [(auth.key, auth.certificate)],
                root_certificates=auth.client_ca,
                require_client_auth=auth.client_ca is not None,
            )
            port = server.add_secure_port(address, credentials)
    except RuntimeError:
        raise Unavailable(
            f"cannot listen on {address} for OTLP/gRPC: the port is in use, or this machine "
            "does not have the address; set ingest.grpc_port or ingest.host"
        ) from None
    return port


def _options(config: IngestConfig) -> list[tuple[str, int]]:
    """Return gRPC's limits. `maximum_concurrent_rpcs` stays unset: the gate counts requests and
    gives a retry hint."""
    return [
        ("grpc.max_receive_message_length", config.body_bytes_max),
        ("grpc.per_message_decompression", 0),  # `unpack` does that
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.max_concurrent_streams", STREAMS_MAX),
        ("grpc.http2.max_deallocating_streams", ENDING_STREAMS_MAX),
        ("grpc.max_allowed_incoming_connections", config.connections_max),
        ("grpc.server.max_pending_requests", PENDING_MAX),
        ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
        ("grpc.server_handshake_timeout_ms", min(HANDSHAKE_TIMEOUT_MS, config.body_timeout_ms)),
        ("grpc.max_connection_idle_ms", IDLE_MS),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        # Answering pings is cheap. Counting them to disconnect clients that send too many costs
        # gRPC seconds of CPU for a few megabytes of pings.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),
    ]

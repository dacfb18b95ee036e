"""OtlpGrpc: OTLP over gRPC, on grpcio's server, with a bound on whatever a client could overdo."""

from __future__ import annotations

import logging

import grpc

from frazil.errors import Unavailable
from frazil.httpd import Auth
from frazil.ingest.config import IngestConfig
from frazil.ingest.grpc.deadlines import MessageReader
from frazil.ingest.grpc.exports import GrpcExports
from frazil.ingest.grpc.reflection import HealthAndReflection
from frazil.ingest.receiver import Receiver
from frazil.model import KiB

GRPC_LOGGER = "grpc._cython.cygrpc"

METADATA_BYTES_MAX = 16 * KiB
"""Headers of one call: a token, a trace context and some baggage fit many times."""
STREAMS_MAX = 100
ENDING_STREAMS_MAX = 100
"""Calls at the same time on one connection; further ones wait at the client. Beside them there may
be calls whose end only the client has seen yet. gRPC refuses new ones in their favour when there
are more, which stops those who begin and cancel calls without pause, and must not hit others."""
PENDING_MAX = 10_000
"""Calls that wait to be looked at. gRPC cancels those above without a word; those below are told
when to come back."""
HANDSHAKE_TIMEOUT_MS = 20_000
"""From a new connection to the end of its TLS and HTTP/2 greetings."""
IDLE_MS = 5 * 60_000
"""A connection without calls is closed after this; exporters send every minute at least."""
KEEPALIVE_MS = 60_000
KEEPALIVE_TIMEOUT_MS = 20_000
"""A peer that has said nothing for the one is asked, and is dead after the other."""


class OtlpGrpc:
    """An open port for OTLP/gRPC, with health and reflection. Belongs to the event loop."""

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
    async def open(cls, config: IngestConfig, access: Auth, receiver: Receiver) -> OtlpGrpc:
        """Listen. `Unavailable` when the port cannot be had."""
        logging.getLogger(GRPC_LOGGER).addFilter(_is_worth_knowing)
        messages = MessageReader(receiver.gate.reads)
        services = HealthAndReflection(messages)
        exports = GrpcExports(access, receiver, messages, services)
        server = grpc.aio.server(handlers=[exports], options=_options(config))
        port = _bind(server, config, access)
        await server.start()
        return cls(server, port, services)

    async def close(self, grace_s: float) -> None:
        """Let nobody in any more, answer those inside for at most `grace_s`, then cut them off."""
        self._services.stop()
        await self._server.stop(grace_s)


def _is_worth_knowing(record: logging.LogRecord) -> bool:
    """gRPC logs a traceback for each header that is not UTF-8: any caller could fill our disk."""
    return not (record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError))


def _bind(server: grpc.aio.Server, config: IngestConfig, access: Auth) -> int:
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"{host}:{config.grpc_port}"
    try:
        if access.certificate is None:
            port: int = server.add_insecure_port(address)
        else:
            credentials = grpc.ssl_server_credentials(
                [(access.key, access.certificate)],
                root_certificates=access.client_ca,
                require_client_auth=access.client_ca is not None,
            )
            port = server.add_secure_port(address, credentials)
    except RuntimeError:
        raise Unavailable(
            f"cannot listen on {address} for OTLP/gRPC: another process does, or this machine has "
            "no such address; set ingest.grpc_port or ingest.host"
        ) from None
    return port


def _options(config: IngestConfig) -> list[tuple[str, int]]:
    """How gRPC bounds its callers. `maximum_concurrent_rpcs` stays unset: the gate counts, and
    says when to come back."""
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
        # Answering pings costs next to nothing. Counting them in order to cut off who sends too
        # many costs gRPC more with each that still comes: seconds for a few megabytes of pings.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),
    ]

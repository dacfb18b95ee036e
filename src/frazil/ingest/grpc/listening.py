"""A server of gRPC that listens, with a limit on everything a client can do."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import grpc

from frazil.errors import Unavailable
from frazil.httpd import Auth, ListenAddress
from frazil.model import KiB

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """What differs between the gRPC ports of a node."""

    message_bytes_max: int
    connections_max: int
    handshake_timeout_ms: int = HANDSHAKE_TIMEOUT_MS


def listening_server(
    handler: grpc.GenericRpcHandler, address: ListenAddress, auth: Auth, limits: GrpcLimits
) -> tuple[grpc.aio.Server, int]:
    """Return a server, to be started, and its port. Raises `Unavailable` when the address is taken
    or not ours."""
    logging.getLogger(GRPC_LOGGER).addFilter(_is_worth_logging)
    server = grpc.aio.server(handlers=[handler], options=_options(limits))
    return server, _bind(server, address, auth)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Drop gRPC's traceback per header that is not UTF-8: any client could fill the disk."""
    return not (record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError))


def _bind(server: grpc.aio.Server, listen: ListenAddress, auth: Auth) -> int:
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    address = f"{host}:{listen.port}"
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
            f"cannot listen on {address} for {listen.what}: the port is in use, or this machine "
            f"does not have the address; set {listen.port_setting} or {listen.host_setting}"
        ) from None
    return port


def _options(limits: GrpcLimits) -> list[tuple[str, int]]:
    """Return gRPC's limits. `maximum_concurrent_rpcs` stays unset: handlers count calls and give a
    retry hint."""
    return [
        ("grpc.max_receive_message_length", limits.message_bytes_max),
        ("grpc.per_message_decompression", 0),  # `unpack` does that
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.max_concurrent_streams", STREAMS_MAX),
        ("grpc.http2.max_deallocating_streams", ENDING_STREAMS_MAX),
        ("grpc.max_allowed_incoming_connections", limits.connections_max),
        ("grpc.server.max_pending_requests", PENDING_MAX),
        ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
        ("grpc.server_handshake_timeout_ms", limits.handshake_timeout_ms),
        ("grpc.max_connection_idle_ms", IDLE_MS),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        # Answering pings is cheap. Counting them to disconnect clients that send too many costs
        # gRPC seconds of CPU for a few megabytes of pings.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),
    ]

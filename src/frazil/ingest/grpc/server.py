"""OtlpGrpc: the OTLP/gRPC port."""

from __future__ import annotations

import grpc

from frazil.httpd import Auth, ListenAddress
from frazil.ingest.grpc.deadlines import MessageReader
from frazil.ingest.grpc.exports import GrpcExports
from frazil.ingest.grpc.listening import HANDSHAKE_TIMEOUT_MS, GrpcLimits, listening_server
from frazil.ingest.grpc.reflection import HealthAndReflection
from frazil.ingest.receiver import Receiver
from frazil.settings import IngestConfig


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
        messages = MessageReader(receiver.gate.reads)
        services = HealthAndReflection(messages)
        exports = GrpcExports(auth, receiver, messages, services)
        address = ListenAddress(
            host=config.host,
            port=config.grpc_port,
            what="OTLP/gRPC",
            host_setting="ingest.host",
            port_setting="ingest.grpc_port",
        )
        limits = GrpcLimits(
            message_bytes_max=config.body_bytes_max,
            connections_max=config.connections_max,
            handshake_timeout_ms=min(HANDSHAKE_TIMEOUT_MS, config.body_timeout_ms),
        )
        server, port = listening_server(exports, address, auth, limits)
        await server.start()
        return cls(server, port, services)

    async def close(self, grace_s: float) -> None:
        """Refuse new calls, answer admitted ones for at most `grace_s`, then cut them off."""
        self._services.stop()
        await self._server.stop(grace_s)

"""OtlpHttp: the OTLP/HTTP port."""

from __future__ import annotations

from typing import Self

from frazil.httpd import Auth, ConnectionLimits, HttpPort, ListenAddress
from frazil.ingest.http.exports import HttpExports
from frazil.ingest.http.responses import error_response
from frazil.ingest.receiver import Receiver
from frazil.settings import IngestConfig

TARGET_BYTES_MAX = 4 * 1024
"""Limit of a request's path and query string; OTLP paths have about ten bytes."""
FETCH_TIMEOUT_S = 5.0
"""How long a client may leave a response unread; OTLP responses are small."""


class OtlpHttp:
    """The open OTLP/HTTP port. Owned by the event loop."""

    def __init__(self, port: HttpPort) -> None:
        self.port = port.port
        self._port = port

    @classmethod
    async def open(cls, config: IngestConfig, auth: Auth, receiver: Receiver) -> Self:
        """Listen. Raises `Unavailable` when the address is taken or not ours."""
        exports = HttpExports(config, auth, receiver)
        address = ListenAddress(
            host=config.host,
            port=config.http_port,
            what="OTLP/HTTP",
            host_setting="ingest.host",
            port_setting="ingest.http_port",
        )
        limits = ConnectionLimits(
            count_max=config.connections_max,
            count_setting="ingest.connections_max",
            target_bytes_max=TARGET_BYTES_MAX,
            fetch_timeout_s=FETCH_TIMEOUT_S,
            response_of=lambda error: error_response(error, None),
        )
        return cls(await HttpPort.open(exports.serve, address, auth, limits))

    async def close(self, grace_s: float) -> None:
        """Stop listening, let requests finish for `grace_s`, then cut them off."""
        await self._port.close(grace_s)

"""OtlpHttp: the port for telemetry over HTTP/1.1.

What a connection may do is in `http_connection`, what a request becomes in `http_exports`.
"""

from __future__ import annotations

from typing import Self

from frazil.httpd import Auth, ConnectionLimits, HttpPort, ListenAddress
from frazil.ingest.config import IngestConfig
from frazil.ingest.http.exports import HttpExports
from frazil.ingest.http.responses import answer_of_error
from frazil.ingest.receiver import Receiver

TARGET_BYTES_MAX = 4 * 1024
"""What stands between the method and the version; ours are about ten letters."""
FETCH_TIMEOUT_S = 5.0
"""How long a client may leave an answer unread; ours are some bytes."""


class OtlpHttp:
    """An open port for OTLP/HTTP. Belongs to the event loop."""

    def __init__(self, port: HttpPort) -> None:
        self.port = port.port
        self._port = port

    @classmethod
    async def open(cls, config: IngestConfig, access: Auth, receiver: Receiver) -> Self:
        """Listen. `Unavailable` when the address cannot be had."""
        exports = HttpExports(config, access, receiver)
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
            response_of=lambda error: answer_of_error(error, None),
        )
        return cls(await HttpPort.open(exports.serve, address, access, limits))

    async def close(self, grace_s: float) -> None:
        """Accept no connections any more, let requests finish for `grace_s`, then cut them off."""
        await self._port.close(grace_s)

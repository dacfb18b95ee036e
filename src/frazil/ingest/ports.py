"""OtlpPorts: the gRPC and HTTP ports of OTLP, with one gate and one receiver behind them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from frazil.httpd import Auth
from frazil.ingest.admission import AdmissionStatus, Gate
from frazil.ingest.grpc.server import OtlpGrpc
from frazil.ingest.http.server import OtlpHttp
from frazil.ingest.otlp.redact import Redactor
from frazil.ingest.otlp.warm_up import warm
from frazil.ingest.receiver import Receiver
from frazil.ingest.record_intake import RecordIntake
from frazil.log import Log
from frazil.model import Clock, Rand
from frazil.settings import IngestConfig

LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Wildcard addresses, and the loopback address that reaches them from this machine."""


class OtlpPorts:
    """Both ports, open. Owned by the event loop."""

    def __init__(
        self,
        gate: Gate,
        auth: Auth,
        host: str,
        grpc: OtlpGrpc,
        http: OtlpHttp,
        receiver: Receiver,
    ) -> None:
        self._gate = gate
        self.needs_token = bool(auth.tokens)
        self.is_tls = auth.tls is not None
        self._host = host
        self._grpc = grpc
        self._http = http
        self._receiver = receiver
        self.intake = RecordIntake(receiver)
        """For requests that arrive through the Kafka port."""

    @classmethod
    async def open(
        cls,
        log: Log,
        config: IngestConfig,
        auth: Auth,
        *,
        clock: Clock,
        rand: Rand,
        redactor: Redactor | None = None,
    ) -> OtlpPorts:
        """Listen on both ports, or on none.

        The scanner is compiled first, so that no request waits for the compiler.
        """
        warm()
        gate = Gate(config, log.budget, clock, rand)
        receiver = Receiver(log, gate, config, clock, redactor)
        async with AsyncExitStack() as undo:
            undo.callback(receiver.close)
            grpc = await OtlpGrpc.open(config, auth, receiver)
            undo.push_async_callback(grpc.close, 0)
            http = await OtlpHttp.open(config, auth, receiver)
            undo.pop_all()
        return cls(gate, auth, config.host, grpc, http, receiver)

    @property
    def grpc_port(self) -> int:
        return self._grpc.port

    @property
    def http_port(self) -> int:
        return self._http.port

    @property
    def own_url(self) -> str:
        """The URL of OTLP/HTTP from this machine."""
        host = LOOPBACK_OF.get(self._host, self._host)
        scheme = "https" if self.is_tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.http_port}"

    def full_services(self) -> list[str]:
        """Return services whose new metric series are refused."""
        series = self._receiver.series
        return [] if series is None else series.full_services()

    def admission(self) -> AdmissionStatus:
        return self._gate.status()

    async def close(self, grace_s: float) -> None:
        """Refuse new requests, and answer admitted ones for at most `grace_s`."""
        self._gate.drain()
        await asyncio.gather(self._grpc.close(grace_s), self._http.close(grace_s))
        self._receiver.close()

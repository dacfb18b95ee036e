"""OtlpPorts: both ports of OTLP, open, with one gate and one path behind them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from frazil.httpd import Auth
from frazil.ingest.admission import AdmissionStatus, Gate
from frazil.ingest.config import IngestConfig
from frazil.ingest.grpc.server import OtlpGrpc
from frazil.ingest.http.server import OtlpHttp
from frazil.ingest.otlp.scan import warm
from frazil.ingest.receiver import Receiver
from frazil.log import Log
from frazil.model import Clock, Rand

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of a machine, and the one that it calls itself by."""


class OtlpPorts:
    """Open it, or nothing listens; close it, and those inside are still answered."""

    def __init__(
        self,
        gate: Gate,
        access: Auth,
        host: str,
        grpc: OtlpGrpc,
        http: OtlpHttp,
        receiver: Receiver,
    ) -> None:
        self._gate = gate
        self.needs_token = bool(access.tokens)
        self.is_tls = access.tls is not None
        self._host = host
        self._grpc = grpc
        self._http = http
        self._receiver = receiver

    @classmethod
    async def open(
        cls, log: Log, config: IngestConfig, access: Auth, *, clock: Clock, rand: Rand
    ) -> OtlpPorts:
        """Listen on both ports, or on none.

        The scanner is ready before anybody can connect: no request waits for the compiler.
        """
        warm()
        gate = Gate(config, log.budget, clock, rand)
        receiver = Receiver(log, gate, config, clock)
        async with AsyncExitStack() as undo:
            undo.callback(receiver.close)
            grpc = await OtlpGrpc.open(config, access, receiver)
            undo.push_async_callback(grpc.close, 0)
            http = await OtlpHttp.open(config, access, receiver)
            undo.pop_all()
        return cls(gate, access, config.host, grpc, http, receiver)

    @property
    def grpc_port(self) -> int:
        return self._grpc.port

    @property
    def http_port(self) -> int:
        return self._http.port

    @property
    def own_url(self) -> str:
        """Of OTLP/HTTP, as this machine reaches it."""
        host = ANYWHERE.get(self._host, self._host)
        scheme = "https" if self.is_tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.http_port}"

    def admission(self) -> AdmissionStatus:
        return self._gate.status()

    async def close(self, grace_s: float) -> None:
        """Take nothing more in, answer those inside, for at most `grace_s`."""
        self._gate.drain()
        await asyncio.gather(self._grpc.close(grace_s), self._http.close(grace_s))
        self._receiver.close()

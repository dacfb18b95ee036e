"""Otlp: both ports of OTLP, open, with one gate and one path behind them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from frazil.ingest.access import Access
from frazil.ingest.admission import Gate
from frazil.ingest.config import IngestConfig
from frazil.ingest.otlp_grpc import OtlpGrpc
from frazil.ingest.otlp_http import OtlpHttp
from frazil.ingest.receive import Receiver
from frazil.ingest.wire import warm
from frazil.log import Log
from frazil.model import Clock, Rand


class Otlp:
    """Open it, or nothing listens; close it, and those inside are still answered."""

    def __init__(self, gate: Gate, grpc: OtlpGrpc, http: OtlpHttp, receiver: Receiver) -> None:
        self.gate = gate
        self._grpc = grpc
        self._http = http
        self._receiver = receiver

    @classmethod
    async def open(
        cls, log: Log, config: IngestConfig, access: Access, *, clock: Clock, rand: Rand
    ) -> Otlp:
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
        return cls(gate, grpc, http, receiver)

    @property
    def grpc_port(self) -> int:
        return self._grpc.port

    @property
    def http_port(self) -> int:
        return self._http.port

    async def close(self, grace_s: float) -> None:
        """Take nothing more in, answer those inside, for at most `grace_s`."""
        self.gate.drain()
        await asyncio.gather(self._grpc.close(grace_s), self._http.close(grace_s))
        self._receiver.close()

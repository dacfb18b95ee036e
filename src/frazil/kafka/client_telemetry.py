"""ClientTelemetry: GetTelemetrySubscriptions and PushTelemetry (KIP-714).

A client asks which metrics to push and how often, and pushes them as OTLP. Each push becomes a
request in the topic of metrics, with who sent it as attributes of its resources. Without a
subscription in the settings neither API is offered, as Kafka does, and clients push nothing.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

from frazil.errors import FrazilError, Malformed, TooLarge
from frazil.httpd import WorkerThreads
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.loop_inbox import LoopInbox
from frazil.kafka.produce.otlp_batches import CheckedBatch, OtlpBatches
from frazil.kafka.router import ApiRouter, PendingReply
from frazil.kafka.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from frazil.kafka.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from frazil.kafka.wire.schema import UUID_ZERO
from frazil.log import Compression, Log
from frazil.log.produce import decompress
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Rand, Signal
from frazil.settings import ClientTelemetryConfig

GET_SUBSCRIPTIONS, PUSH = 71, 72
ID_BYTES = 16
ACCEPTED = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""In the order of preference. Clients may also push without compression."""
EXPIRY_MS_MIN = 60_000
EXPIRY_INTERVALS = 3
"""A client that is silent for so many intervals is forgotten, but not before EXPIRY_MS_MIN."""
ALL_METRICS = "*"
INT32_SIGN, INT32_COUNT = 2**31, 2**32

PUSHES = Counter("frazil.kafka.telemetry.pushes", "Pushes of metrics by clients, by outcome.")
CLIENTS = Gauge("frazil.kafka.telemetry.clients", "Clients that push metrics.")


@dataclass(slots=True)
class _Client:
    """What is known of a client, by its instance id."""

    used_ms: int
    sent_ms: int | None = None
    """When its last request was accepted."""
    has_asked: bool = False
    """Whether it has not pushed since it asked: the first push may come at any time."""
    must_ask: bool = False
    """Whether its last push failed so that it has to ask again."""
    is_terminated: bool = False

    def is_early(self, now_ms: int, interval_ms: int) -> bool:
        """Return whether less than an interval has passed since its last request."""
        return self.sent_ms is not None and now_ms - self.sent_ms < interval_ms


class ClientTelemetry:
    """Owned by the event loop."""

    def __init__(
        self,
        log: Log,
        otlp: OtlpBatches,
        config: ClientTelemetryConfig,
        inbox: LoopInbox,
        threads: WorkerThreads,
        *,
        clock: Clock,
        rand: Rand,
    ) -> None:
        self._log = log
        self._otlp = otlp
        self._config = config
        self._inbox = inbox
        self._threads = threads
        self._clock = clock
        self._rand = rand
        self._clients: dict[bytes, _Client] = {}
        """By instance id; the one that was silent for longest is first."""

    def register(self, router: ApiRouter) -> None:
        if self._config.metrics:
            router.add(GET_SUBSCRIPTIONS, "0", self.get_subscriptions)
            router.add(PUSH, "0", self.push)

    async def get_subscriptions(
        self, request: GetTelemetrySubscriptionsRequest, context: RequestContext
    ) -> GetTelemetrySubscriptionsResponse:
        """Tell a client what to push, and how often."""
        instance_id = request.client_instance_id
        if instance_id == UUID_ZERO:
            instance_id = self._rand.randbytes(ID_BYTES)
        now_ms = self._now_ms()
        client = self._client(instance_id, now_ms)
        is_early = client is None or (
            client.is_early(now_ms, self._config.interval_ms) and not client.must_ask
        )
        if client is None or is_early:
            return GetTelemetrySubscriptionsResponse(
                error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED, client_instance_id=instance_id
            )
        client.sent_ms, client.has_asked, client.must_ask = now_ms, True, False
        is_all = ALL_METRICS in self._config.metrics
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=self._subscription_id(instance_id),
            accepted_compression_types=[int(codec) for codec in ACCEPTED],
            push_interval_ms=self._config.interval_ms,
            telemetry_max_bytes=self._config.bytes_max,
            delta_temporality=True,
            requested_metrics=[ALL_METRICS] if is_all else list(self._config.metrics),
        )

    async def push(
        self, request: PushTelemetryRequest, context: RequestContext
    ) -> PushTelemetryResponse | PendingReply:
        """Store metrics. Answered when they are durable."""
        code = self._check(request)
        if code is ErrorCode.NONE and request.metrics:
            try:
                batch = await self._threads.run(
                    self._prepared, request, attributes_of(request, context)
                )
                return self._stored(batch)
            except TooLarge:
                code = ErrorCode.TELEMETRY_TOO_LARGE
            except Malformed:
                code = ErrorCode.INVALID_RECORD
            except FrazilError:  # no room in the log
                code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return _answer(code)

    def _check(self, request: PushTelemetryRequest) -> ErrorCode:
        """Return why a push is refused, in the order of Kafka."""
        if request.client_instance_id == UUID_ZERO:
            return ErrorCode.INVALID_REQUEST
        now_ms = self._now_ms()
        client = self._client(request.client_instance_id, now_ms)
        if client is None:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if client.is_terminated:
            return ErrorCode.INVALID_REQUEST
        client.is_terminated = request.terminating
        is_early = client.is_early(now_ms, self._config.interval_ms) and not client.has_asked
        if is_early and not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        client.sent_ms, client.has_asked = now_ms, False
        if request.subscription_id != self._subscription_id(request.client_instance_id):
            client.must_ask = True
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in (Compression.NONE, *ACCEPTED):
            client.must_ask = True
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self._config.bytes_max:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _prepared(self, request: PushTelemetryRequest, attributes: dict[str, str]) -> CheckedBatch:
        """Return the metrics of a push as they may be stored. Runs in a worker thread."""
        codec = Compression(request.compression_type)
        body = decompress(codec, request.metrics, bytes_max=self._config.bytes_max)
        return self._otlp.single(
            Signal.METRICS, self._otlp.intake.describe_metrics(bytes(body), attributes)
        )

    def _stored(self, batch: CheckedBatch) -> PendingReply:
        """Queue metrics. Raises `Overloaded` if there is no room."""
        ((append,), (on_stored,)) = batch.appends, batch.on_stored
        appended = self._log.append(Signal.METRICS.topic, append)
        reply = PendingReply()

        def settle() -> None:
            if appended.exception() is None:
                on_stored(appended.result().is_duplicate)
                reply.complete(_answer(ErrorCode.NONE))
            else:
                reply.complete(_answer(ErrorCode.THROTTLING_QUOTA_EXCEEDED))

        appended.add_done_callback(lambda _: self._inbox.put(settle))
        return reply

    def _client(self, instance_id: bytes, now_ms: int) -> _Client | None:
        """Return a client, known or new; None if there are too many."""
        client = self._clients.pop(instance_id, None)
        if client is None:
            self._expire(now_ms)
            if len(self._clients) >= self._config.clients_max:
                return None
            client = _Client(now_ms)
        client.used_ms = now_ms
        self._clients[instance_id] = client
        CLIENTS.set(len(self._clients))
        return client

    def _expire(self, now_ms: int) -> None:
        kept_ms = max(EXPIRY_MS_MIN, EXPIRY_INTERVALS * self._config.interval_ms)
        while self._clients:
            instance_id = next(iter(self._clients))
            if now_ms - self._clients[instance_id].used_ms < kept_ms:
                return
            del self._clients[instance_id]

    def _subscription_id(self, instance_id: bytes) -> int:
        """Return a number that differs when the settings do; the same after a restart."""
        config = self._config
        text = f"{sorted(config.metrics)} {config.interval_ms}".encode()
        number = zlib.crc32(instance_id, zlib.crc32(text))
        return number - INT32_COUNT if number >= INT32_SIGN else number

    def _now_ms(self) -> int:
        return self._clock.monotonic_ns() // NS_PER_MS


def attributes_of(request: PushTelemetryRequest, context: RequestContext) -> dict[str, str]:
    """Return who pushes, as attributes of a resource; the names are those of KIP-714."""
    software, version = context.connection.software
    instance_id = base64.urlsafe_b64encode(request.client_instance_id).rstrip(b"=").decode()
    found = {
        "service.name": context.client_id,
        "client_id": context.client_id,
        "client_instance_id": instance_id,
        "client_software_name": software,
        "client_software_version": version,
        "client_source_address": context.client_host,
        "principal": context.principal,
    }
    return {name: value for name, value in found.items() if value}


def _answer(code: ErrorCode) -> PushTelemetryResponse:
    PUSHES.add(outcome="stored" if code is ErrorCode.NONE else code.name.lower())
    return PushTelemetryResponse(error_code=code)

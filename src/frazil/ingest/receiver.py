"""Receiver: the path of an export request, from bytes to a durable record and its receipt.

1. check: scanned, pruned, redacted, limited; see `request_check.py`.
2. append, and wait for the fdatasync that covers it. The log recognizes a duplicate by its digest,
   and returns the first offset.
3. Only then is the request acknowledged.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from frazil import tracing
from frazil.errors import FrazilError, Overloaded, TooLarge, reason_of
from frazil.httpd import WorkerThreads
from frazil.ingest.admission import Gate
from frazil.ingest.otlp.decompress import decompress
from frazil.ingest.otlp.json import protobuf_of_json
from frazil.ingest.otlp.redact import Redactor
from frazil.ingest.otlp.scan import ScanResult
from frazil.ingest.request_check import CheckedRequest, RequestCheck, Transport, count_rejected
from frazil.ingest.series import SeriesLimit
from frazil.log import Log, Record, append_of_records
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock, Signal
from frazil.settings import IngestConfig, TopicConfig

INLINE_BYTES_MAX = 1024 * 1024
"""Larger bodies are scanned in a worker thread, so that they do not block the event loop. For
smaller ones the change of threads costs more than the scan."""
JSON_INLINE_BYTES_MAX = 32 * 1024
"""The same for JSON, which takes about twenty times as long."""
COMPRESSED_INLINE_BYTES_MAX = 128 * 1024
"""The same for compressed bodies, if they also decompress to at most INLINE_BYTES_MAX."""
WORKER_COUNT = 4
"""Large bodies worked on at a time, which also bounds decompressed bytes not yet counted by the
gate: to this many times ingest.body_bytes_max."""

TRACE_INTERVAL_MS = 100
"""At most one request per interval gets a span: enough to see latencies, and bounded."""

OWN_HEADERS = ((tracing.OWN_HEADER, None),)
"""Of the record of a request that carries a node's own spans."""

ACCEPTED_REQUESTS = Counter("frazil.ingest.accepted.requests", "Requests made durable.")
ACCEPTED_RECORDS = Counter("frazil.ingest.accepted.records", "Records made durable.")
ACCEPTED_BYTES = Counter("frazil.ingest.accepted.bytes", "Bytes of requests made durable.")
DUPLICATE_REQUESTS = Counter(
    "frazil.ingest.duplicate.requests", "Duplicate requests answered from the digest window."
)
DUPLICATE_RECORDS = Counter("frazil.ingest.duplicate.records", "Records of duplicate requests.")
DUPLICATE_BYTES = Counter("frazil.ingest.duplicate.bytes", "Bytes of duplicate requests.")
REFUSED_REQUESTS = Counter("frazil.ingest.refused.requests", "Requests refused, by reason.")
REFUSED_BYTES = Counter("frazil.ingest.refused.bytes", "Bytes read of refused requests.")
ACK_MS = Histogram(
    "frazil.ingest.ack.ms", "Time from a complete body to its durable acknowledgement."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The outcome of a request: all but the rejected records are durable."""

    record_count: int
    rejected_count: int = 0
    message: str = ""
    is_duplicate: bool = False


class Receiver:
    """Appends requests of both transports to the log. Owned by the event loop."""

    def __init__(
        self,
        log: Log,
        gate: Gate,
        config: IngestConfig,
        clock: Clock,
        redactor: Redactor | None = None,
    ) -> None:
        self.gate = gate
        self.check = RequestCheck(config, clock, redactor)
        self._log = log
        self._config = config
        self._clock = clock
        self._traced_ns = 0
        self._threads = WorkerThreads("frazil-ingest", WORKER_COUNT)
        for signal in Signal:
            _create_topic(log, signal.topic)

    async def accept(
        self, signal: Signal, transport: Transport, body: bytes, *, is_own: bool = False
    ) -> Receipt:
        """Store one protobuf request. Returns once its storable records are durable.

        `is_own` marks a request that carries a node's own spans: it gets no span, and its record
        carries the mark, so that the lake does not trace its commit either.
        """
        begin_ns = self._clock.monotonic_ns()
        is_due = begin_ns - self._traced_ns >= TRACE_INTERVAL_MS * NS_PER_MS
        if is_due and not is_own and tracing.is_on():
            self._traced_ns = begin_ns
            with tracing.span(
                "ingest.export", signal=signal.value, transport=transport, bytes=len(body)
            ) as span:
                receipt = await self._accept(signal, transport, body, begin_ns, is_own=False)
                span.note(records=receipt.record_count, is_duplicate=receipt.is_duplicate)
                return receipt
        return await self._accept(signal, transport, body, begin_ns, is_own=is_own)

    async def _accept(
        self, signal: Signal, transport: Transport, body: bytes, begin_ns: int, *, is_own: bool
    ) -> Receipt:
        scanned = await self._scan(signal, body)
        if not scanned.record_count:
            if scanned.rejected_count:
                count_rejected(signal, transport, scanned.rejected_count, "rejected")
            return _receipt(_nothing(scanned), is_duplicate=False)
        if self.check.is_plain(signal, scanned):
            checked = self.check.apply(signal, transport, body, scanned)
        else:
            checked = await self._threads.run(self.check.apply, signal, transport, body, scanned)
        if not checked.record_count:
            return _receipt(checked, is_duplicate=False)
        is_duplicate = await self._append(signal, checked, is_own=is_own)
        count_accepted(
            signal, transport, checked.record_count, len(checked.body), is_duplicate=is_duplicate
        )
        ACK_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
        return _receipt(checked, is_duplicate=is_duplicate)

    @property
    def series(self) -> SeriesLimit | None:
        return self.check.series

    async def decompress(self, encoding: str, body: bytes) -> bytes:
        """Return the decompressed body. Raises `TooLarge` above ingest.body_bytes_max."""
        bytes_max = self._config.body_bytes_max
        if len(body) <= COMPRESSED_INLINE_BYTES_MAX:
            with suppress(TooLarge):  # for the event loop; a worker thread has the real limit
                return decompress(encoding, body, min(bytes_max, INLINE_BYTES_MAX))
        return await self._threads.run(decompress, encoding, body, bytes_max)

    async def protobuf_of_json(self, signal: Signal, body: bytes) -> bytes:
        """Convert a JSON request to protobuf. The result may be longer: numbers are."""
        if len(body) > self._config.json_bytes_max:
            raise TooLarge(
                f"a JSON body of {len(body)} bytes exceeds ingest.json_bytes_max "
                f"({self._config.json_bytes_max}); send smaller batches, or protobuf"
            )
        if len(body) <= JSON_INLINE_BYTES_MAX:
            converted = protobuf_of_json(signal, body)
        else:
            converted = await self._threads.run(protobuf_of_json, signal, body)
        self.check.check_length(converted, " as protobuf")
        return converted

    async def _scan(self, signal: Signal, body: bytes) -> ScanResult:
        if len(body) <= INLINE_BYTES_MAX:
            return self.check.scan(signal, body)
        return await self._threads.run(self.check.scan, signal, body)

    async def _append(self, signal: Signal, checked: CheckedRequest, *, is_own: bool) -> bool:
        """Append a request to the log. Returns whether it is a duplicate."""
        now_ms = self._clock.wall_ms()
        headers = OWN_HEADERS if is_own else ()
        record = Record(
            offset=0, timestamp_ms=now_ms, key=None, value=checked.body, headers=headers
        )
        append = append_of_records([record], digest=checked.digest)
        try:
            future = self._log.append(signal.topic, append)
            appended = await asyncio.wrap_future(future)
        except Overloaded as error:
            self.gate.note_full(error)
            raise
        return appended.is_duplicate

    def close(self) -> None:
        self._threads.close()


def _nothing(scanned: ScanResult) -> CheckedRequest:
    """Return a request without a record that could be stored."""
    return CheckedRequest(
        body=b"",
        record_count=0,
        rejected_count=scanned.rejected_count,
        message=scanned.reason,
    )


def _receipt(checked: CheckedRequest, *, is_duplicate: bool) -> Receipt:
    return Receipt(
        record_count=checked.record_count,
        rejected_count=checked.rejected_count,
        message=checked.message,
        is_duplicate=is_duplicate,
    )


def count_accepted(
    signal: Signal, transport: Transport, records: int, length: int, *, is_duplicate: bool
) -> None:
    """Count a durable request, or one that was there already."""
    labels = {"signal": signal.value, "transport": transport}
    if is_duplicate:
        DUPLICATE_REQUESTS.add(1, **labels)
        DUPLICATE_RECORDS.add(records, **labels)
        DUPLICATE_BYTES.add(length, **labels)
    else:
        ACCEPTED_REQUESTS.add(1, **labels)
        ACCEPTED_RECORDS.add(records, **labels)
        ACCEPTED_BYTES.add(length, **labels)


def count_refused(signal: Signal, transport: Transport, error: FrazilError, length: int) -> None:
    """Count a refused request, of which `length` bytes were read."""
    labels = {"signal": signal.value, "transport": transport, "reason": reason_of(error)}
    REFUSED_REQUESTS.add(1, **labels)
    REFUSED_BYTES.add(length, **labels)


def _create_topic(log: Log, name: str) -> None:
    """Create a topic of telemetry, which stays in the log until it is in the lake. By now it may
    have more partitions, for Kafka clients."""
    count = len(log.topic(name).partitions) if log.has_topic(name) else 1
    log.create_topic(name, TopicConfig(partitions=count, awaits_lake=True))

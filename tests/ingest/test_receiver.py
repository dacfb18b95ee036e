"""Receiver: what is stored, counted and returned."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil import tracing
from frazil.disk import RealDisk
from frazil.errors import Malformed, Overloaded, Rejected, TooLarge, Unauthenticated
from frazil.ingest.admission import Gate
from frazil.ingest.receiver import (
    ACCEPTED_BYTES,
    ACCEPTED_RECORDS,
    ACCEPTED_REQUESTS,
    DUPLICATE_BYTES,
    DUPLICATE_RECORDS,
    DUPLICATE_REQUESTS,
    INLINE_BYTES_MAX,
    JSON_INLINE_BYTES_MAX,
    REFUSED_BYTES,
    REFUSED_REQUESTS,
    Receipt,
    Receiver,
    count_refused,
)
from frazil.ingest.request_check import REFUSED_RECORDS
from frazil.log import Log
from frazil.metrics import Counter
from frazil.model import MiB, Signal, SystemClock
from frazil.settings import IngestConfig, LogConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs

T = TypeVar("T")
LOGS = Signal.LOGS


class Fixture:
    """A receiver on a real log, with an event loop per call."""

    def __init__(self, log: Log, *, deduplicate: bool = True) -> None:
        clock = SystemClock()
        config = IngestConfig(
            deduplicate=deduplicate, json_bytes_max=100_000, body_bytes_max=2 * MiB
        )
        self.log = log
        self.gate = Gate(config, log.budget, clock, random.Random(1))
        self.receiver = Receiver(log, self.gate, config, clock)

    def accept(self, body: bytes) -> Receipt:
        return self.run(self.receiver.accept(LOGS, "grpc", body))

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run(work)

    def stored(self) -> list[bytes]:
        reader = self.log.reader(LOGS.topic, "earliest")
        values = []
        while batches := reader.read():
            values += [r.value or b"" for batch in batches for r in batch.records()]
        reader.close()
        return values


@contextmanager
def receiving(
    folder: Path, *, deduplicate: bool = True, config: LogConfig | None = None
) -> Iterator[Fixture]:
    clock, rand = SystemClock(), random.Random(2)
    with Log.open(RealDisk(folder), config, clock=clock, rand=rand) as log:
        fixture = Fixture(log, deduplicate=deduplicate)
        yield fixture
        fixture.receiver.close()


def moved(counter: Counter, work: Callable[[], object], **labels: str) -> float:
    """Return how much a counter rises during a call."""
    before = counter.value(**labels)
    work()
    return counter.value(**labels) - before


def test_an_accepted_request_is_stored_byte_for_byte(tmp_path: Path) -> None:
    body = logs(log_record(1), log_record(2))
    with receiving(tmp_path) as fixture:
        assert fixture.accept(body) == Receipt(record_count=2)
        assert fixture.stored() == [body]


def test_only_the_records_of_own_spans_carry_the_mark(tmp_path: Path) -> None:
    with receiving(tmp_path) as fixture:
        fixture.accept(logs(log_record(1)))
        fixture.run(fixture.receiver.accept(LOGS, "http", logs(log_record(2)), is_own=True))
        reader = fixture.log.reader(LOGS.topic, "earliest")
        records = [record for batch in reader.read() for record in batch.records()]
        reader.close()
    assert [[name for name, _ in record.headers] for record in records] == [
        ["frazil.digest"],
        [tracing.OWN_HEADER, "frazil.digest"],
    ]


def test_a_duplicate_body_is_stored_once(tmp_path: Path) -> None:
    """A client that received no response retries, and is acknowledged."""
    body, other = logs(log_record(1)), logs(log_record(2))
    with receiving(tmp_path) as fixture:
        fixture.accept(body)
        fixture.accept(other)
        assert fixture.accept(body) == Receipt(record_count=1, is_duplicate=True)
        assert fixture.stored() == [body, other]


def test_a_duplicate_body_is_recognised_after_a_restart(tmp_path: Path) -> None:
    """The digest window is in the log."""
    body = logs(log_record(1))
    with receiving(tmp_path) as fixture:
        fixture.accept(body)
    with receiving(tmp_path) as fixture:
        assert fixture.accept(body).is_duplicate
        assert fixture.stored() == [body]


def test_concurrent_duplicates_are_stored_once(tmp_path: Path) -> None:
    """A client may retry while the first request is under way."""
    body = logs(log_record(1))

    async def both(receiver: Receiver) -> list[Receipt]:
        tries = (receiver.accept(LOGS, "http", body) for _ in range(20))
        return list(await asyncio.gather(*tries))

    with receiving(tmp_path) as fixture:
        receipts = fixture.run(both(fixture.receiver))
        assert sum(not receipt.is_duplicate for receipt in receipts) == 1
        assert fixture.stored() == [body]


def test_deduplication_can_be_turned_off(tmp_path: Path) -> None:
    body = logs(log_record(1))
    with receiving(tmp_path, deduplicate=False) as fixture:
        fixture.accept(body)
        assert not fixture.accept(body).is_duplicate
        assert fixture.stored() == [body, body]


def test_bad_records_are_rejected_and_others_stored(tmp_path: Path) -> None:
    """Partial success is reported again for a duplicate."""
    body = logs(log_record(1), log_record(2, trace_id=b"short"), log_record(3))
    with receiving(tmp_path) as fixture:
        receipt = fixture.accept(body)
        assert (receipt.record_count, receipt.rejected_count) == (2, 1)
        assert "trace_id" in receipt.message
        again = fixture.accept(body)
        assert (again.rejected_count, again.is_duplicate) == (1, True)
        (stored,) = fixture.stored()
        request = ExportLogsServiceRequest.FromString(stored)
        texts = [r.body.string_value for r in request.resource_logs[0].scope_logs[0].log_records]
        assert texts == ["case 1", "case 3"]


def test_a_request_without_storable_records_succeeds_and_stores_nothing(tmp_path: Path) -> None:
    with receiving(tmp_path) as fixture:
        assert fixture.accept(b"") == Receipt(record_count=0)
        assert fixture.accept(logs(log_record(1, span_id=b"x"))).rejected_count == 1
        assert fixture.stored() == []


def test_a_malformed_body_stores_nothing(tmp_path: Path) -> None:
    """Both for small bodies and for those scanned in a worker thread."""
    with receiving(tmp_path) as fixture:
        for body in (b"\xff", logs(log_record(1, severity_text="x" * INLINE_BYTES_MAX)) + b"\xff"):
            with pytest.raises(Malformed):
                fixture.accept(body)
        assert fixture.stored() == []


def test_a_body_scanned_in_a_worker_thread_is_stored(tmp_path: Path) -> None:
    body = logs(log_record(1, severity_text="x" * INLINE_BYTES_MAX))
    with receiving(tmp_path) as fixture:
        fixture.accept(body)
        assert fixture.stored() == [body]


@pytest.mark.parametrize("length", [1, JSON_INLINE_BYTES_MAX + 1])
def test_json_is_converted_to_protobuf(length: int, tmp_path: Path) -> None:
    """On the event loop or in a worker thread, by size."""
    text = "x" * length
    body = b'{"resourceLogs":[{"schemaUrl":"%s"}]}' % text.encode()
    with receiving(tmp_path) as fixture:
        converted = fixture.run(fixture.receiver.protobuf_of_json(LOGS, body))
    request = ExportLogsServiceRequest.FromString(converted)
    assert request.resource_logs[0].schema_url == text


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b" " * 100_001, "json_bytes_max"),
        (b" " * 100_000, "the body is not JSON"),
    ],
)
def test_json_has_its_own_size_limit(body: bytes, wanted: str, tmp_path: Path) -> None:
    """Parsing JSON takes much more time and memory."""
    with receiving(tmp_path) as fixture, pytest.raises(Rejected, match=wanted):
        fixture.run(fixture.receiver.protobuf_of_json(Signal.METRICS, body))


def test_json_that_is_too_large_as_protobuf_is_refused(tmp_path: Path) -> None:
    """A bound has 2 bytes in JSON and 8 in protobuf."""
    bounds = b",".join([b"1"] * 45_000)
    points = b'{"explicitBounds":[%s]}' % bounds
    body = (
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[%s]}}]}]}]}'
        % points
    )
    config = IngestConfig(body_bytes_max=300_000)
    with receiving(tmp_path) as fixture:
        receiver = Receiver(fixture.log, fixture.gate, config, SystemClock())
        with pytest.raises(TooLarge, match=r"ingest\.body_bytes_max"):
            fixture.run(receiver.protobuf_of_json(Signal.METRICS, body))
        receiver.close()


def test_a_full_log_closes_the_gate(tmp_path: Path) -> None:
    """The log's refusal is returned, and further requests are refused before they are read."""
    config = LogConfig(segment_bytes_max=MiB, batch_bytes_max=2 * MiB, disk_bytes_max=6 * MiB)
    body = logs(log_record(1, severity_text="x" * MiB))
    with receiving(tmp_path, config=config) as fixture:
        accepted = 0
        with pytest.raises(Overloaded, match=r"log.disk_bytes_max"):
            for number in range(20):
                fixture.accept(logs(log_record(number)) + body)
                accepted += 1
        assert accepted > 2
        with pytest.raises(Overloaded, match="accepts no requests"):
            fixture.gate.enter()
        assert len(fixture.stored()) == accepted


def test_requests_records_and_bytes_are_counted(tmp_path: Path) -> None:
    """Accepted, duplicate and refused, by signal, transport and reason."""
    body = logs(log_record(1), log_record(2))
    labels = {"signal": "logs", "transport": "grpc"}
    with receiving(tmp_path) as fixture:

        def send() -> None:
            fixture.accept(body)

        assert moved(ACCEPTED_REQUESTS, send, **labels) == 1
        assert moved(DUPLICATE_REQUESTS, send, **labels) == 1
        assert moved(DUPLICATE_RECORDS, send, **labels) == 2
        assert moved(DUPLICATE_BYTES, send, **labels) == len(body)
        body = logs(log_record(3), log_record(4), log_record(5))
        assert moved(ACCEPTED_RECORDS, send, **labels) == 3
        body = logs(log_record(6))
        assert moved(ACCEPTED_BYTES, send, **labels) == len(body)
        body = logs(log_record(7, span_id=b"x"), log_record(8, span_id=b"x"), log_record(9))
        assert moved(REFUSED_RECORDS, send, reason="rejected", **labels) == 2


def test_refusals_are_counted_by_reason() -> None:
    error = Unauthenticated("words")
    labels = {"signal": "metrics", "transport": "http", "reason": "unauthenticated"}

    def refuse() -> None:
        count_refused(Signal.METRICS, "http", error, 77)

    assert moved(REFUSED_REQUESTS, refuse, **labels) == 1
    assert moved(REFUSED_BYTES, refuse, **labels) == 77

"""The path of a request: what is durable, what is counted, what is told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.disk import RealDisk
from frazil.errors import Malformed, Overloaded, Rejected, TooLarge, Unauthenticated
from frazil.ingest.admission import Gate
from frazil.ingest.config import IngestConfig
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
    REFUSED_RECORDS,
    REFUSED_REQUESTS,
    Receipt,
    Receiver,
    count_refused,
)
from frazil.log import Log, LogConfig
from frazil.metrics import Counter
from frazil.model import MiB, Signal, SystemClock
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs

T = TypeVar("T")
LOGS = Signal.LOGS


class Setting:
    """A receiver on a real log, driven by an event loop per call."""

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
def setting(
    folder: Path, *, deduplicate: bool = True, config: LogConfig | None = None
) -> Iterator[Setting]:
    clock, rand = SystemClock(), random.Random(2)
    with Log.open(RealDisk(folder), config, clock=clock, rand=rand) as log:
        made = Setting(log, deduplicate=deduplicate)
        yield made
        made.receiver.close()


def moved(counter: Counter, work: Callable[[], object], **labels: str) -> float:
    """By how much a counter moves while something is done."""
    before = counter.value(**labels)
    work()
    return counter.value(**labels) - before


def test_what_is_accepted_is_in_the_log_as_it_came(tmp_path: Path) -> None:
    """The log holds the sender's own bytes."""
    body = logs(log_record(1), log_record(2))
    with setting(tmp_path) as made:
        assert made.accept(body) == Receipt(record_count=2)
        assert made.stored() == [body]


def test_the_same_body_is_stored_once(tmp_path: Path) -> None:
    """A sender that did not hear the answer sends again, and is told yes without a second copy."""
    body, other = logs(log_record(1)), logs(log_record(2))
    with setting(tmp_path) as made:
        made.accept(body)
        made.accept(other)
        assert made.accept(body) == Receipt(record_count=1, is_duplicate=True)
        assert made.stored() == [body, other]


def test_the_same_body_is_stored_once_across_a_restart(tmp_path: Path) -> None:
    """The window lies in the log, so a new process knows it."""
    body = logs(log_record(1))
    with setting(tmp_path) as made:
        made.accept(body)
    with setting(tmp_path) as made:
        assert made.accept(body).is_duplicate
        assert made.stored() == [body]


def test_the_same_body_at_the_same_time_is_stored_once(tmp_path: Path) -> None:
    """A sender that has lost patience sends again while the first is on its way."""
    body = logs(log_record(1))

    async def both(receiver: Receiver) -> list[Receipt]:
        tries = (receiver.accept(LOGS, "http", body) for _ in range(20))
        return list(await asyncio.gather(*tries))

    with setting(tmp_path) as made:
        receipts = made.run(both(made.receiver))
        assert sum(not receipt.is_duplicate for receipt in receipts) == 1
        assert made.stored() == [body]


def test_the_window_can_be_switched_off(tmp_path: Path) -> None:
    """Some senders mean it when they say the same thing twice."""
    body = logs(log_record(1))
    with setting(tmp_path, deduplicate=False) as made:
        made.accept(body)
        assert not made.accept(body).is_duplicate
        assert made.stored() == [body, body]


def test_bad_records_go_and_good_ones_stay(tmp_path: Path) -> None:
    """Partial success: the log holds the good ones only, also when the request comes again."""
    body = logs(log_record(1), log_record(2, trace_id=b"short"), log_record(3))
    with setting(tmp_path) as made:
        receipt = made.accept(body)
        assert (receipt.record_count, receipt.rejected_count) == (2, 1)
        assert "trace_id" in receipt.message
        again = made.accept(body)
        assert (again.rejected_count, again.is_duplicate) == (1, True)
        (stored,) = made.stored()
        request = ExportLogsServiceRequest.FromString(stored)
        texts = [r.body.string_value for r in request.resource_logs[0].scope_logs[0].log_records]
        assert texts == ["case 1", "case 3"]


def test_nothing_to_store_stores_nothing(tmp_path: Path) -> None:
    """Empty requests, and those of which nothing is left, succeed without a trace in the log."""
    with setting(tmp_path) as made:
        assert made.accept(b"") == Receipt(record_count=0)
        assert made.accept(logs(log_record(1, span_id=b"x"))).rejected_count == 1
        assert made.stored() == []


def test_malformed_stores_nothing(tmp_path: Path) -> None:
    """Refused means not written, for small bodies and for those checked on another thread."""
    with setting(tmp_path) as made:
        for body in (b"\xff", logs(log_record(1, severity_text="x" * INLINE_BYTES_MAX)) + b"\xff"):
            with pytest.raises(Malformed):
                made.accept(body)
        assert made.stored() == []


def test_large_bodies_take_the_same_path(tmp_path: Path) -> None:
    """A body checked on another thread is stored as one checked here."""
    body = logs(log_record(1, severity_text="x" * INLINE_BYTES_MAX))
    with setting(tmp_path) as made:
        made.accept(body)
        assert made.stored() == [body]


@pytest.mark.parametrize("length", [1, JSON_INLINE_BYTES_MAX + 1])
def test_json_becomes_protobuf(length: int, tmp_path: Path) -> None:
    """Here or on another thread, by size."""
    text = "x" * length
    body = b'{"resourceLogs":[{"schemaUrl":"%s"}]}' % text.encode()
    with setting(tmp_path) as made:
        converted = made.run(made.receiver.protobuf_of_json(LOGS, body))
    request = ExportLogsServiceRequest.FromString(converted)
    assert request.resource_logs[0].schema_url == text


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b" " * 100_001, "json_bytes_max"),
        (b" " * 100_000, "the body is not JSON"),
    ],
)
def test_json_has_a_limit_of_its_own(body: bytes, wanted: str, tmp_path: Path) -> None:
    """Reading JSON takes long and much memory, so less of it is read."""
    with setting(tmp_path) as made, pytest.raises(Rejected, match=wanted):
        made.run(made.receiver.protobuf_of_json(Signal.METRICS, body))


def test_json_that_becomes_too_large(tmp_path: Path) -> None:
    """The limit on bodies holds for what is stored: a bound in JSON has 2 bytes, here 8."""
    bounds = b",".join([b"1"] * 45_000)
    points = b'{"explicitBounds":[%s]}' % bounds
    body = (
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[%s]}}]}]}]}'
        % points
    )
    config = IngestConfig(body_bytes_max=300_000)
    with setting(tmp_path) as made:
        receiver = Receiver(made.log, made.gate, config, SystemClock())
        with pytest.raises(TooLarge, match=r"ingest\.body_bytes_max"):
            made.run(receiver.protobuf_of_json(Signal.METRICS, body))
        receiver.close()


def test_a_full_log_closes_the_gate(tmp_path: Path) -> None:
    """The log's refusal is the sender's, and the next ones are refused before they are read."""
    config = LogConfig(segment_bytes_max=MiB, batch_bytes_max=2 * MiB, disk_bytes_max=6 * MiB)
    body = logs(log_record(1, severity_text="x" * MiB))
    with setting(tmp_path, config=config) as made:
        accepted = 0
        with pytest.raises(Overloaded, match=r"log.disk_bytes_max"):
            for number in range(20):
                made.accept(logs(log_record(number)) + body)
                accepted += 1
        assert accepted > 2
        with pytest.raises(Overloaded, match="accepts no requests"):
            made.gate.enter()
        assert len(made.stored()) == accepted


def test_requests_records_and_bytes_are_counted(tmp_path: Path) -> None:
    """Accepted, duplicate and refused are told apart, by signal, transport and reason."""
    body = logs(log_record(1), log_record(2))
    labels = {"signal": "logs", "transport": "grpc"}
    with setting(tmp_path) as made:

        def send() -> None:
            made.accept(body)

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

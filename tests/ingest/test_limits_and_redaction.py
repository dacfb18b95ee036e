"""Limits and redaction through the receiver: what is stored, reported and counted."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from frazil.disk import RealDisk
from frazil.errors import TooLarge
from frazil.ingest import Redactor, compile_rules
from frazil.ingest.admission import Gate
from frazil.ingest.otlp.json import protobuf_of_json
from frazil.ingest.receiver import Receiver
from frazil.ingest.request_check import REFUSED_RECORDS, TRUNCATED_VALUES
from frazil.ingest.series import WINDOW_MS, SeriesLimit
from frazil.log import Log
from frazil.model import NS_PER_MS, Signal, SystemClock
from frazil.settings import IngestConfig, LimitsConfig, RedactRule
from tests.ingest.serving import serving

MARKER = "jane.roe@example.org"
CARD = "4111111111111111"
RULES = (
    RedactRule(key="user.email", action="hash"),
    RedactRule(key="password", action="drop"),
    RedactRule(pattern=r"[a-z.]+@[a-z.]+", action="hash"),
    RedactRule(pattern=r"\b\d{16}\b", action="mask"),
)


class Fixture:
    """A receiver on a real log, with an event loop per call."""

    def __init__(self, log: Log, limits: LimitsConfig, rules: tuple[RedactRule, ...]) -> None:
        clock, config = SystemClock(), IngestConfig(limits=limits)
        redactor = Redactor(compile_rules(rules), b"k" * 32) if rules else None
        gate = Gate(config, log.budget, clock, random.Random(1))
        self.log = log
        self.receiver = Receiver(log, gate, config, clock, redactor)

    def accept(self, signal: Signal, body: bytes) -> Any:
        return asyncio.run(self.receiver.accept(signal, "grpc", body))

    def stored(self, signal: Signal) -> list[bytes]:
        reader = self.log.reader(signal.topic, "earliest")
        values = []
        while batches := reader.read():
            values += [r.value or b"" for batch in batches for r in batch.records()]
        reader.close()
        return values


@contextmanager
def receiving(
    folder: Path, limits: LimitsConfig | None = None, rules: tuple[RedactRule, ...] = ()
) -> Iterator[Fixture]:
    with Log.open(RealDisk(folder), clock=SystemClock(), rand=random.Random(2)) as log:
        fixture = Fixture(log, limits or LimitsConfig(), rules)
        yield fixture
        fixture.receiver.close()


def long_log(length: int) -> bytes:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(time_unix_nano=1).body.string_value = "short"
    records.add(time_unix_nano=2).body.string_value = "x" * length
    return request.SerializeToString()


def bodies_of(stored: bytes) -> list[str]:
    request = ExportLogsServiceRequest.FromString(stored)
    return [r.body.string_value for r in request.resource_logs[0].scope_logs[0].log_records]


def test_a_long_body_is_cut_counted_and_the_client_warned(tmp_path: Path) -> None:
    before = TRUNCATED_VALUES.value(signal="logs", limit="log_body_bytes_max")
    with receiving(tmp_path, LimitsConfig(log_body_bytes_max=100)) as fixture:
        receipt = fixture.accept(Signal.LOGS, long_log(101))
        (stored,) = fixture.stored(Signal.LOGS)
    assert bodies_of(stored) == ["short", "x" * 100]
    assert (receipt.record_count, receipt.rejected_count) == (2, 0)
    assert "ingest.limits.log_body_bytes_max (100)" in receipt.message
    assert TRUNCATED_VALUES.value(signal="logs", limit="log_body_bytes_max") == before + 1


def test_a_long_body_can_be_rejected(tmp_path: Path) -> None:
    limits = LimitsConfig(log_body_bytes_max=100, when_exceeded="reject")
    labels = {"signal": "logs", "transport": "grpc", "reason": "limits"}
    before = REFUSED_RECORDS.value(**labels)
    with receiving(tmp_path, limits) as fixture:
        receipt = fixture.accept(Signal.LOGS, long_log(101))
        (stored,) = fixture.stored(Signal.LOGS)
    assert bodies_of(stored) == ["short"]
    assert (receipt.record_count, receipt.rejected_count) == (1, 1)
    assert REFUSED_RECORDS.value(**labels) == before + 1


def test_a_retry_is_recognized_after_limits_have_changed(tmp_path: Path) -> None:
    with receiving(tmp_path, LimitsConfig(log_body_bytes_max=100)) as fixture:
        fixture.accept(Signal.LOGS, long_log(500))
    for limits in (LimitsConfig(log_body_bytes_max=200), LimitsConfig()):
        with receiving(tmp_path, limits) as fixture:
            assert fixture.accept(Signal.LOGS, long_log(500)).is_duplicate
            assert len(fixture.stored(Signal.LOGS)) == 1


def test_no_default_limit_touches_an_ordinary_request(tmp_path: Path) -> None:
    body = long_log(1_000_000)
    with receiving(tmp_path) as fixture:
        assert fixture.accept(Signal.LOGS, body).message == ""
        assert fixture.stored(Signal.LOGS) == [body]


# Series.


def points(service: str, metric: str, values: range, *, is_resource_last: bool = False) -> bytes:
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    data = resource.scope_metrics.add().metrics.add(name=metric).gauge
    for value in values:
        point = data.data_points.add(as_int=value)
        pairs = [("user", str(value)), ("zone", "a")]
        for key, text in reversed(pairs) if is_resource_last else pairs:
            point.attributes.add(key=key).value.string_value = text
    owner = ExportMetricsServiceRequest()
    attribute = owner.resource_metrics.add().resource.attributes.add(key="service.name")
    attribute.value.string_value = service
    # Concatenated messages are merged; the resource may come first or last.
    parts = [owner.resource_metrics[0].SerializeToString(), resource.SerializeToString()]
    content = b"".join(reversed(parts) if is_resource_last else parts)
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add()
    head = bytes([0x0A, len(content) & 127 | 128, len(content) >> 7])
    return head + content


def values_of(stored: bytes) -> list[int]:
    request = ExportMetricsServiceRequest.FromString(stored)
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    return [point.as_int for point in metrics[0].gauge.data_points]


def test_new_series_beyond_the_limit_are_rejected_and_known_ones_go_on(tmp_path: Path) -> None:
    limits = LimitsConfig(series_per_service_max=3)
    with receiving(tmp_path, limits) as fixture:
        assert fixture.accept(Signal.METRICS, points("shop", "m", range(2))).message == ""
        receipt = fixture.accept(Signal.METRICS, points("shop", "m", range(5)))
        assert (receipt.record_count, receipt.rejected_count) == (3, 2)
        assert "service 'shop'" in receipt.message
        assert "metric 'm'" in receipt.message
        assert "series_per_service_max (3)" in receipt.message
        # The same series, with attributes in another order and the resource last.
        again = points("shop", "m", range(1, 4), is_resource_last=True)
        assert fixture.accept(Signal.METRICS, again).rejected_count == 1
        assert fixture.accept(Signal.METRICS, points("till", "m", range(3))).rejected_count == 0
        none = fixture.accept(Signal.METRICS, points("shop", "other", range(2)))
        assert (none.record_count, none.rejected_count) == (0, 2)
        assert fixture.receiver.series is not None
        assert fixture.receiver.series.full_services() == ["shop"]
        stored = [values_of(body) for body in fixture.stored(Signal.METRICS)]
    assert stored == [[0, 1], [0, 1, 2], [1, 2], [0, 1, 2]]


def test_a_retry_is_recognized_whatever_series_are_known(tmp_path: Path) -> None:
    body = points("shop", "m", range(5))
    with receiving(tmp_path, LimitsConfig(series_per_service_max=3)) as fixture:
        fixture.accept(Signal.METRICS, points("shop", "m", range(3, 5)))
        fixture.accept(Signal.METRICS, body)
    with receiving(tmp_path, LimitsConfig(series_per_service_max=3)) as fixture:
        assert fixture.accept(Signal.METRICS, body).is_duplicate
        assert len(fixture.stored(Signal.METRICS)) == 2


class FixedClock(SystemClock):
    """A clock that tests move."""

    now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns


def test_series_without_data_points_are_forgotten() -> None:
    clock = FixedClock()
    series = SeriesLimit(2, clock)

    def rejected(values: range) -> int:
        return series.enforce(points("shop", "m", values)).rejected_count

    assert rejected(range(2)) == 0
    assert rejected(range(2, 3)) == 1
    clock.now_ns += WINDOW_MS * NS_PER_MS
    assert rejected(range(1)) == 0
    assert rejected(range(2, 3)) == 1
    clock.now_ns += WINDOW_MS * NS_PER_MS
    assert rejected(range(2, 3)) == 0
    assert rejected(range(1)) == 0
    assert rejected(range(1, 2)) == 1


# Redaction.


def secret_log() -> dict[str, Any]:
    def text(value: str) -> dict[str, Any]:
        return {"stringValue": value}

    attributes = [
        {"key": "user.email", "value": text(MARKER)},
        {"key": "password", "value": text("hunter2-hunter2")},
        {"key": "card", "value": {"intValue": CARD}},
        {"key": "nested", "value": {"arrayValue": {"values": [text(f"to {MARKER}")]}}},
    ]
    record = {
        "timeUnixNano": "1",
        "body": text(f"mail to {MARKER}, card {CARD}"),
        "attributes": attributes,
    }
    return {
        "resourceLogs": [
            {
                "resource": {"attributes": attributes},
                "scopeLogs": [{"scope": {"name": MARKER}, "logRecords": [record]}],
            }
        ]
    }


def post(port: int, body: bytes, kind: str, encoding: str | None = None) -> bytes:
    headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
    url = f"http://127.0.0.1:{port}/v1/logs"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as got:
        return bytes(got.read())


def test_what_is_redacted_never_reaches_the_disk(tmp_path: Path) -> None:
    """JSON, protobuf and gzip are stored alike, as one request; no file has a removed value."""
    redactor = Redactor(compile_rules(RULES), b"k" * 32)
    text = json.dumps(secret_log()).encode()
    with serving(tmp_path, redactor=redactor) as served:
        port = served.otlp.http_port
        body = protobuf_of_json(Signal.LOGS, text)
        post(port, text, "application/json")
        post(port, gzip.compress(body), "application/x-protobuf", "gzip")
        answer = post(port, body, "application/x-protobuf")
        (stored,) = served.stored_since(Signal.LOGS, 0)
    assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
    for removed in (MARKER.encode(), b"hunter2", CARD.encode()):
        assert removed in body or removed == CARD.encode()
        assert removed not in stored
        assert [p for p in tmp_path.rglob("*") if p.is_file() and removed in p.read_bytes()] == []
    request = ExportLogsServiceRequest.FromString(stored)
    resource, record = (
        request.resource_logs[0].resource,
        request.resource_logs[0].scope_logs[0].log_records[0],
    )
    assert [pair.key for pair in record.attributes] == ["user.email", "card", "nested"]
    hashed = record.attributes[0].value.string_value
    assert resource.attributes[0].value.string_value == hashed, "equal values stay equal"
    assert record.body.string_value == f"mail to {hashed}, card ***"
    assert record.attributes[1].value.string_value == "***"


def test_a_request_that_hashes_make_too_large_is_refused(tmp_path: Path) -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    for _ in range(60_000):
        record.attributes.add(key="k").value.string_value = "v"
    rules = (RedactRule(key="k", action="hash"),)
    with Log.open(RealDisk(tmp_path), clock=SystemClock(), rand=random.Random(2)) as log:
        fixture = Fixture(log, LimitsConfig(), rules)
        fixture.receiver.check._config = IngestConfig(body_bytes_max=1_000_000)
        with pytest.raises(TooLarge, match="after redaction"):
            fixture.accept(Signal.LOGS, request.SerializeToString())
        assert fixture.stored(Signal.LOGS) == []
        fixture.receiver.close()

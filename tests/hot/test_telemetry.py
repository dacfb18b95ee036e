"""Real requests of all three signals: segment files return the decoded rows."""

from __future__ import annotations

import pyarrow as pa
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA

from frazil.hot import HotTier
from frazil.model.arrow.decoder.decode import decode
from frazil.model.arrow.schemas import TABLES
from frazil.model.arrow.types import ExportRequest
from tests.hot.build import start
from tests.sim.disk import SimDisk


def logs(number: int) -> bytes:
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    service = resource.resource.attributes.add(key="service.name")
    service.value.string_value = f"service-{number % 2}"
    for row in range(3):
        record = resource.scope_logs.add().log_records.add()
        record.time_unix_nano = 1000 * (number + 1) + row
        record.trace_id = bytes([number]) * 16
        record.span_id = bytes([row]) * 8
        record.body.string_value = f"body {number} {row}"
        record.attributes.add(key="user.id").value.int_value = row
    return request.SerializeToString()


def traces(number: int) -> bytes:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(name=f"span {number}")
    span.trace_id, span.span_id = bytes([number]) * 16, bytes([number]) * 8
    span.start_time_unix_nano, span.end_time_unix_nano = number, number + 5
    event = span.events.add(time_unix_nano=number, name="event")
    event.attributes.add(key="k").value.bool_value = True
    span.links.add(trace_id=bytes(16), span_id=bytes(8))
    return request.SerializeToString()


def metrics(number: int) -> bytes:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    metrics.add(name="gauge").gauge.data_points.add(time_unix_nano=number, as_double=number / 2)
    histogram = metrics.add(name="histogram").histogram
    histogram.aggregation_temporality = AGGREGATION_TEMPORALITY_DELTA
    histogram.data_points.add(count=3, sum=1.5, bucket_counts=[1, 2], explicit_bounds=[0.5])
    return request.SerializeToString()


SIGNALS = {
    "otlp_logs": ("logs", "logs", logs),
    "otlp_spans": ("spans", "traces", traces),
    "otlp_metrics": ("metrics", "metrics", metrics),
}
COUNT = 20


def rows(tier: HotTier, table: str) -> pa.Table:
    batches = [batch for piece in tier.pieces(table) for batch in piece.batches]
    return pa.Table.from_batches(batches, TABLES[table])


def test_rows_are_equal_when_open_sealed_and_reopened() -> None:
    """Every nested column, in exactly the schema of its table, with metadata."""
    disk = SimDisk()
    machine = start(disk, schemas=TABLES, decode=decode)
    now_ms = machine.clock.wall_ms()
    wanted = {}
    for topic, (table, signal, make) in SIGNALS.items():
        machine.log.create_topic(topic)
        bodies = [make(number) for number in range(COUNT)]
        for body in bodies:
            machine.add(body, topic=topic)
        requests = [
            ExportRequest(partition=0, offset=number, ingest_time_ms=now_ms, body=body)
            for number, body in enumerate(bodies)
        ]
        wanted[table] = pa.Table.from_batches([decode(signal, requests).batch])
    machine.catch_up()
    open_rows = {table: rows(machine.tier, table) for table in wanted}
    assert machine.seal() == 3
    again = start(disk.process_kill(), schemas=TABLES, decode=decode)
    for table, expected in wanted.items():
        for found in (open_rows[table], rows(machine.tier, table), rows(again.tier, table)):
            assert found.schema.equals(TABLES[table], check_metadata=True)
            assert found.equals(expected)
            found.validate(full=True)
    (piece,) = again.tier.pieces("logs")
    assert piece.services == frozenset({"service-0", "service-1"})
    assert (piece.time_min_us, piece.time_max_us) == (1, COUNT)
    assert piece.filters["trace_id"].may_hold("05" * 16)
    assert not piece.filters["trace_id"].may_hold("50" * 16)
    assert set(again.tier.pieces("spans")[0].filters) == {"trace_id", "span_id"}


def test_broken_requests_are_dead_letters_also_after_a_restart() -> None:
    """Their bytes are kept, and other requests are visible."""
    disk = SimDisk()
    machine = start(disk, schemas=TABLES, decode=decode)
    machine.add(logs(1), b"\xff\xff\xff", logs(2))
    machine.catch_up()
    machine.seal()
    again = start(disk.process_kill(), schemas=TABLES, decode=decode)
    for tier in (machine.tier, again.tier):
        assert rows(tier, "logs").num_rows == 6
        (letter,) = rows(tier, "dead_letters").to_pylist()
        assert (letter["_offset"], letter["payload"]) == (1, b"\xff\xff\xff")

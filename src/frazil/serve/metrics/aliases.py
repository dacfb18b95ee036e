"""Aliases: our numbers once more, under names that others know.

The receiver's words of the OpenTelemetry Collector, so that its dashboards and alerts read on, and
names that older designs of this kind of system have. Names that come with a namespace keep it;
those without get ours. `docs/metrics.md` has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from frazil.metrics import Counter, Histogram, find
from frazil.serve.context import NodeContext
from frazil.serve.metrics.families import Family, Point, counter, gauge, quantile
from frazil.serve.metrics.process import process_facts
from frazil.serve.status.collect import status_of

MB = 1_000_000
GB = 1_000_000_000
RECEIVER = ("receiver", "otlp")
SPELLED = {"logs": "log_records", "traces": "spans", "metrics": "metric_points"}
"""Signal -> what the Collector counts of it."""
QUANTILES = (0.5, 0.99, 0.999)

COUNTERS = {
    "quiver_gc_evictions": "frazil.hot.evicted.segments",
    "quiver_ingest_throttle": "frazil.ingest.gate.closings",
    "quiver_segment_dropped": "frazil.log.dropped.segments",
    "quiver_subscriber_dropped_bundles": "frazil.log.dropped.offsets",
}
"""Alias -> the counter that it repeats."""
LATENCIES = {
    "frazil_wal_write_latency_ms": "frazil.ingest.ack.ms",
    "frazil_query_latency_ms": "frazil.query.duration.ms",
}
"""Alias -> the histogram that its quantiles are read from, since the start."""


def aliases(rooms: NodeContext) -> Iterator[Family]:
    """Looks at memory only."""
    yield from _collector()
    yield from _repeated()
    yield from _latencies()
    yield from _levels(rooms)


def _collector() -> Iterator[Family]:
    for word in ("accepted", "refused"):
        source = find(f"frazil.ingest.{word}.records")
        for signal, spelled in SPELLED.items():
            found: dict[str, float] = {}
            if isinstance(source, Counter):
                for sample in source.samples():
                    labels = dict(sample.labels)
                    if labels["signal"] == signal:
                        transport = labels["transport"]
                        found[transport] = found.get(transport, 0) + sample.value
            yield counter(
                f"otelcol_receiver_{word}_{spelled}",
                f"As frazil_ingest_{word}_records_total, in the Collector's words.",
                [
                    Point(value=value, labels=(RECEIVER, ("transport", transport)))
                    for transport, value in found.items()
                ],
            )


def _repeated() -> Iterator[Family]:
    for name, own in COUNTERS.items():
        source = find(own)
        samples = source.samples() if source is not None else ()
        shown = own.replace(".", "_")
        points = [Point(value=sample.value, labels=sample.labels) for sample in samples]
        yield counter(name, f"As {shown}_total.", points)


def _latencies() -> Iterator[Family]:
    for name, own in LATENCIES.items():
        source = find(own)
        points = []
        if isinstance(source, Histogram):
            for share in QUANTILES:
                value = quantile(source, share)
                if value is not None:
                    points.append(Point(value=value, labels=(("quantile", str(share)),)))
        shown = own.removesuffix(".ms").replace(".", "_")
        help_text = f"Quantiles of {shown}_seconds since the start, in ms."
        yield Family(name=name, kind="summary", help_text=help_text, points=tuple(points))


def _levels(rooms: NodeContext) -> Iterator[Family]:
    status, rates = status_of(rooms), rooms.life.rates
    parts = [part for topic in status.log.topics for part in topic.partitions]
    lake_lag = sum(part.lake_lag_offsets or 0 for part in parts)
    lake_bytes = 0 if status.lake is None else sum(table.bytes for table in status.lake.tables)
    used, most = status.log.used_bytes, status.log.bytes_max

    def by(label: str, **values: float) -> list[Point]:
        return [Point(value=value, labels=((label, name),)) for name, value in values.items()]

    memory = by("kind", current=process_facts().resident_bytes / MB)
    yield gauge("frazil_memory_usage_mb", "Memory of this process.", memory)
    disk = by("tier", wal=used / GB, iceberg=lake_bytes / GB)
    yield gauge("frazil_disk_usage_gb", "The log, and the data files of the tables.", disk)
    writes = sum(rate.requests_per_s for rate in status.rates)
    yield gauge("frazil_writes_per_second", "Requests stored, over ten seconds.", writes)
    written = sum(rate.bytes_per_s for rate in status.rates)
    yield gauge("frazil_bytes_written_per_second", "Bytes of requests stored, so.", written)
    yield gauge("frazil_queries_per_second", "Queries that ended, so.", rates.queries_per_s)
    segments = by("kind", data=sum(part.log_segments for part in parts))
    yield gauge("frazil_segment_count", "Segments of the log.", segments)
    lag = by("stage", write_durable=status.log.queue_batches, durable_iceberg=lake_lag)
    yield gauge("frazil_watermark_lag", "Batches that wait; offsets not in tables.", lag)
    yield gauge("quiver_core_bytes", "As frazil_log_used_bytes.", by("core_id", **{"0": used}))
    yield gauge("quiver_core_cap_fraction", "Of frazil_log_max_bytes.", used / most)

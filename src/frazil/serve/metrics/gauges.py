"""What is measured when somebody looks: watermarks, lag, sizes, ages, and this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from frazil.serve.context import NodeContext
from frazil.serve.metrics.families import Family, Point, counter, gauge
from frazil.serve.metrics.process import ProcessInfo, process_facts
from frazil.serve.status.collect import status_of
from frazil.serve.status.model import PartitionStatus, Status


def measured(rooms: NodeContext) -> Iterator[Family]:
    """Looks at memory only."""
    status = status_of(rooms)
    yield Family(
        name="frazil_build",
        kind="info",
        help_text="Which Frazil this is.",
        points=(Point(value=1, suffix="_info", labels=(("version", status.version),)),),
    )
    yield gauge("frazil_node_uptime_seconds", "Since the node was started.", status.uptime_s)
    yield from _log(status)
    yield from _hot(status)
    yield from _lake(status)
    yield from _subscribers(status)
    yield from _process(process_facts())


def _log(status: Status) -> Iterator[Family]:
    def each(name: str, help_text: str, value: Callable[[PartitionStatus], int | None]) -> Family:
        points = []
        for topic in status.log.topics:
            for part in topic.partitions:
                found = value(part)
                if found is not None:
                    labels = (("partition", str(part.partition)), ("topic", topic.topic))
                    points.append(Point(value=found, labels=labels))
        return gauge(name, help_text, points)

    yield gauge("frazil_log_used_bytes", "Bytes the log takes on disk.", status.log.used_bytes)
    yield gauge("frazil_log_max_bytes", "Bytes the log may take.", status.log.bytes_max)
    yield gauge("frazil_log_full", "1 while the log is full, 0 otherwise.", status.log.is_full)
    yield gauge("frazil_log_queue_batches", "Batches that wait.", status.log.queue_batches)
    yield each("frazil_log_segments", "Segments of the log.", lambda p: p.log_segments)
    yield each("frazil_log_start_offset", "Where the log begins.", lambda p: p.start_offset)
    yield each("frazil_log_watermark", "First offset not durable.", lambda p: p.durable_watermark)
    yield each("frazil_hot_watermark", "First offset not visible.", lambda p: p.hot_watermark)
    yield each("frazil_hot_lag_offsets", "Durable, not visible yet.", lambda p: p.hot_lag_offsets)
    yield each("frazil_lake_watermark", "First offset not in a table.", lambda p: p.lake_watermark)
    yield each("frazil_lake_lag_offsets", "Not in a table yet.", lambda p: p.lake_lag_offsets)
    yield each("frazil_lake_lag_bytes", "Of the log, not in a table.", lambda p: p.lake_lag_bytes)


def _hot(status: Status) -> Iterator[Family]:
    hot = status.hot
    if hot is None:
        return
    yield gauge("frazil_hot_memory_bytes", "Rows that no file holds yet.", hot.memory_bytes)
    yield gauge("frazil_hot_memory_max_bytes", "What these may take.", hot.memory_bytes_max)
    yield gauge("frazil_hot_disk_bytes", "Files of the hot tier.", hot.disk_bytes)
    yield gauge("frazil_hot_disk_max_bytes", "What these may take.", hot.disk_bytes_max)
    rows = [Point(value=count, labels=(("table", name),)) for name, count in hot.rows.items()]
    yield gauge("frazil_hot_rows", "Rows that the hot tier shows, by table.", rows)


def _lake(status: Status) -> Iterator[Family]:
    lake = status.lake
    if lake is None:
        return

    def each(name: str, help_text: str, value: str) -> Family:
        points = [
            Point(value=getattr(table, value), labels=(("table", table.table),))
            for table in lake.tables
        ]
        return gauge(name, help_text, points)

    age_s = None if lake.last_commit is None else lake.last_commit.age_s
    is_running = lake.spark.state == "running"
    yield gauge("frazil_lake_last_commit_age_seconds", "Since the last commit with rows.", age_s)
    yield gauge("frazil_lake_spark_running", "1 while Spark runs, 0 otherwise.", is_running)
    yield each("frazil_lake_table_rows", "Rows of a table.", "rows")
    yield each("frazil_lake_table_files", "Data files of a table.", "files")
    yield each("frazil_lake_table_bytes", "Bytes of the data files of a table.", "bytes")


def _subscribers(status: Status) -> Iterator[Family]:
    def each(name: str, help_text: str, value: str) -> Family:
        points = [
            Point(
                value=getattr(one, value),
                labels=(("subscriber", one.subscriber), ("topic", one.topic)),
            )
            for one in status.subscribers
        ]
        return gauge(name, help_text, points)

    yield each("frazil_subscriber_lag_offsets", "Not finished by a subscriber.", "lag_offsets")
    yield each(
        "frazil_subscriber_in_flight_batches", "Claimed or to be retried.", "in_flight_batches"
    )


def _process(facts: ProcessInfo) -> Iterator[Family]:
    """Under the names that every Prometheus client gives them."""
    cpu = (Point(value=facts.cpu_s),)
    yield counter("process_cpu_seconds", "Time on processors, user and system.", cpu)
    yield gauge("process_resident_memory_bytes", "Memory in use.", facts.resident_bytes)
    yield gauge("process_virtual_memory_bytes", "Addresses in use.", facts.virtual_bytes)
    yield gauge("process_start_time_seconds", "When it began, since 1970.", facts.started_s)
    yield gauge("process_open_fds", "Open files and sockets.", facts.open_fds)
    yield gauge("process_max_fds", "How many there may be.", facts.fds_max)

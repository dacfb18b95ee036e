"""Gauges computed at scrape time: watermarks, lag, sizes, ages, and the node's processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from frazil.metrics import Labels
from frazil.serve.status.model import Status
from frazil.status import Family, Point, ProcessInfo, counter, gauge


def gauges(status: Status, processes: Sequence[tuple[str, ProcessInfo]]) -> Iterator[Family]:
    """Return the gauges of a status, and those of the named processes."""
    yield Family(
        name="frazil_build",
        kind="info",
        help_text="Version of Frazil.",
        points=(Point(value=1, suffix="_info", labels=(("version", status.version),)),),
    )
    yield gauge("frazil_node_uptime_seconds", "Time since the node started.", status.uptime_s)
    yield from _log(status)
    yield from _hot(status)
    yield from _lake(status)
    yield from _pipes(status)
    yield from _connectors(status)
    yield from _tables(status)
    yield from _subscribers(status)
    yield from _groups(status)
    yield from _processes(processes)


def _by(rows: Sequence[tuple[Labels, object]], name: str, help_text: str, field: str) -> Family:
    """A gauge with one sample per row, the value of `field`. Unknown values have no sample."""
    values = ((labels, getattr(row, field)) for labels, row in rows)
    points = [Point(value=value, labels=labels) for labels, value in values if value is not None]
    return gauge(name, help_text, points)


def _log(status: Status) -> Iterator[Family]:
    log = status.log
    partitions = [
        ((("partition", str(part.partition)), ("topic", topic.topic)), part)
        for topic in log.topics
        for part in topic.partitions
    ]
    each = partial(_by, partitions)
    yield gauge("frazil_log_used_bytes", "Size of the log on disk.", log.used_bytes)
    yield gauge("frazil_log_max_bytes", "Size limit of the log.", log.bytes_max)
    yield gauge("frazil_log_full", "1 while the log is full, 0 otherwise.", log.is_full)
    yield gauge("frazil_log_queue_batches", "Batches queued for the writer.", log.queue_batches)
    yield each("frazil_log_segments", "Segments in the log.", "log_segments")
    yield each("frazil_log_start_offset", "First offset in the log.", "start_offset")
    yield each("frazil_log_watermark", "First offset not durable.", "durable_watermark")
    yield each("frazil_hot_watermark", "First offset not queryable.", "hot_watermark")
    yield each("frazil_hot_lag_offsets", "Durable offsets not queryable yet.", "hot_lag_offsets")
    yield each("frazil_lake_watermark", "First offset not in the lake.", "lake_watermark")
    yield each("frazil_lake_lag_offsets", "Offsets not in the lake yet.", "lake_lag_offsets")
    yield each("frazil_lake_lag_bytes", "Bytes of log not in the lake yet.", "lake_lag_bytes")


def _hot(status: Status) -> Iterator[Family]:
    hot = status.hot
    if hot is None:
        return
    yield gauge("frazil_hot_memory_bytes", "Unsealed rows in memory.", hot.memory_bytes)
    yield gauge("frazil_hot_memory_max_bytes", "Limit of unsealed rows.", hot.memory_bytes_max)
    yield gauge("frazil_hot_disk_bytes", "Files of the hot tier.", hot.disk_bytes)
    yield gauge("frazil_hot_disk_max_bytes", "Size limit of the hot tier.", hot.disk_bytes_max)
    rows = [Point(value=count, labels=(("table", name),)) for name, count in hot.rows.items()]
    yield gauge("frazil_hot_rows", "Rows in the hot tier, by table.", rows)


def _lake(status: Status) -> Iterator[Family]:
    lake = status.lake
    if lake is None:
        return
    by_table = partial(_by, [((("table", table.table),), table) for table in lake.tables])
    age_s = None if lake.last_commit is None else lake.last_commit.age_s
    is_running = lake.spark.state == "running"
    yield gauge(
        "frazil_lake_last_commit_age_seconds", "Time since the last commit with rows.", age_s
    )
    yield gauge("frazil_lake_spark_running", "1 while Spark runs, 0 otherwise.", is_running)
    yield by_table("frazil_lake_table_rows", "Rows of a table.", "rows")
    yield by_table("frazil_lake_table_files", "Data files of a table.", "files")
    yield by_table("frazil_lake_table_bytes", "Size of the data files of a table.", "bytes")


def _pipes(status: Status) -> Iterator[Family]:
    by_pipe = partial(_by, [((("pipe", each.pipe),), each) for each in status.pipes])
    yield by_pipe(
        "frazil_load_pipe_failing",
        "1 while the last attempt of a pipe has failed, 0 otherwise.",
        "is_failing",
    )
    yield by_pipe(
        "frazil_load_pipe_success_age_seconds",
        "Time since the last success of a pipe.",
        "success_age_s",
    )


def _connectors(status: Status) -> Iterator[Family]:
    """Sources and sinks. There are no samples without one."""
    rows = [
        ((("connector", each.connector), ("role", each.role)), each) for each in status.connectors
    ]
    each = partial(_by, rows)
    running = [Point(value=row.state == "running", labels=labels) for labels, row in rows]
    yield gauge("frazil_connectors_running", "1 while a connector runs, 0 otherwise.", running)
    yield each(
        "frazil_connectors_failing",
        "1 while a connector backs off, or has failed, 0 otherwise.",
        "is_failing",
    )
    yield each(
        "frazil_connectors_lag_offsets", "Offsets that a sink has not delivered.", "lag_offsets"
    )
    yield each(
        "frazil_connectors_idle_seconds", "Time since a connector has moved records.", "idle_s"
    )


def _tables(status: Status) -> Iterator[Family]:
    """Keyed tables. There are no samples without one."""
    each = partial(_by, [((("table", table.table),), table) for table in status.tables])
    working = [
        Point(value=table.state != "failed", labels=(("table", table.table),))
        for table in status.tables
    ]
    yield gauge("frazil_tables_up", "1 while a keyed table can be used, 0 otherwise.", working)
    yield each("frazil_tables_keys", "Rows of a keyed table.", "keys")
    yield each("frazil_tables_key_bytes", "Memory of the key index of a keyed table.", "key_bytes")
    yield each(
        "frazil_tables_row_bytes", "Row versions of a keyed table, files and memory.", "row_bytes"
    )
    yield each("frazil_tables_dead_rows", "Row versions that compaction can remove.", "dead_rows")
    yield each(
        "frazil_tables_lag_offsets", "Durable changes that are not applied yet.", "lag_offsets"
    )
    yield each(
        "frazil_tables_checkpoint_age_seconds",
        "Time since the key index was saved.",
        "checkpoint_age_s",
    )


def _subscribers(status: Status) -> Iterator[Family]:
    rows = [
        ((("subscriber", row.subscriber), ("topic", row.topic)), row) for row in status.subscribers
    ]
    by_subscriber = partial(_by, rows)
    yield by_subscriber(
        "frazil_subscriber_lag_offsets", "Offsets not processed by a subscriber.", "lag_offsets"
    )
    yield by_subscriber(
        "frazil_subscriber_in_flight_batches",
        "Batches claimed or waiting for a retry.",
        "in_flight_batches",
    )


def _groups(status: Status) -> Iterator[Family]:
    """Consumer groups. There are no samples without a Kafka port."""
    kafka = status.kafka
    groups = [((("group", each.group),), each) for each in (kafka.groups if kafka else ())]
    partitions = [
        ((("group", each.group), ("partition", str(each.partition)), ("topic", each.topic)), each)
        for each in (kafka.group_partitions if kafka else ())
    ]
    yield gauge("frazil_kafka_groups", "Consumer groups.", kafka.group_count if kafka else None)
    yield _by(
        groups,
        "frazil_kafka_group_members",
        "Members of a consumer group, of the 100 with the largest lag.",
        "members",
    )
    yield _by(
        partitions,
        "frazil_kafka_group_lag_offsets",
        "Offsets that a consumer group has not committed yet, of the 1,000 largest lags.",
        "lag_offsets",
    )


def _processes(processes: Sequence[tuple[str, ProcessInfo]]) -> Iterator[Family]:
    """The standard process metrics of Prometheus clients, by process."""
    rows = [((("process", name),), info) for name, info in processes]
    cpu = (Point(value=info.cpu_s, labels=labels) for labels, info in rows)
    each = partial(_by, rows)
    yield counter("process_cpu_seconds", "CPU time, user and system.", cpu)
    yield each("process_resident_memory_bytes", "Resident memory.", "resident_bytes")
    yield each("process_virtual_memory_bytes", "Virtual memory.", "virtual_bytes")
    yield each("process_start_time_seconds", "Start time, Unix epoch.", "started_s")
    yield each("process_open_fds", "Open file descriptors.", "open_fds")
    yield each("process_max_fds", "Limit of open file descriptors.", "fds_max")

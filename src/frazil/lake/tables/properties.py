"""How the rows of a table lie: in which order, with which filters, and with which settings.

Needs no library, so that a task can write its files without a catalog. The settings are Iceberg's
properties, and the files of the appender keep to them as those of Spark's compaction do.
"""

from __future__ import annotations

from frazil.model import MiB

HOUR_MS = 3_600_000

TOPIC = "topic"
"""The kind of all tables that are made of a topic's records. Every other table is its own kind."""
TOPIC_PREFIX = "topic_"
"""Begins their names."""

PARTITION_COLUMN = "time"
"""Files hold one UTC day of it."""
PARTITION_FIELD = "time_day"
"""What Spark would call that, too."""

SORT_COLUMNS: dict[str, tuple[str, ...]] = {
    "logs": ("service_name", "time"),
    "spans": ("trace_id", "time"),
    "metrics": ("metric_name", "service_name", "time"),
    "dead_letters": ("topic", "time"),
    TOPIC: ("_log_partition", "_offset"),
}
"""Kind -> the columns its files are sorted by, ascending. None of them can be null."""

BLOOM_COLUMNS: dict[str, tuple[str, ...]] = {
    "logs": ("trace_id", "span_id"),
    "spans": ("trace_id", "span_id"),
    "metrics": (),
    "dead_letters": (),
    TOPIC: (),
}
"""Kind -> the columns with a bloom filter: looked up by one value, and in no useful order."""

_COMMON_BOUNDS = {
    "_log_partition": "full",
    "_offset": "full",
    "time": "full",
    "time_unix_nano": "full",
    "ingest_time": "full",
    "service_name": "truncate(64)",
    "service_namespace": "truncate(64)",
    "deployment_environment": "truncate(64)",
    "host_name": "truncate(64)",
    "k8s_namespace_name": "truncate(64)",
}
BOUNDS: dict[str, dict[str, str]] = {
    "logs": {**_COMMON_BOUNDS, "severity_number": "full"},
    "spans": {
        **_COMMON_BOUNDS,
        "trace_id": "full",
        "duration_nano": "full",
        "status_code": "full",
        "http_response_status_code": "full",
    },
    "metrics": {**_COMMON_BOUNDS, "metric_name": "truncate(64)", "metric_type": "full"},
    "dead_letters": {
        "topic": "full",
        "_log_partition": "full",
        "_offset": "full",
        "time": "full",
        "stage": "full",
    },
    TOPIC: {
        "_log_partition": "full",
        "_offset": "full",
        "time": "full",
        "timestamp_ms": "full",
    },
}
"""Kind -> column -> how much of its least and greatest value a manifest holds. Of all other
columns values and nulls are counted only: bounds of bodies and maps are large and exclude nothing.
"""

COMMENTS = {
    "logs": "one row per log record",
    "spans": "one row per span",
    "metrics": "one row per data point",
    "dead_letters": "what could not become a row",
    TOPIC: "one row per record of a topic",
}

REQUIRED_PROPERTIES = {
    # A repetition inside PyIceberg would not look at the offsets again, and could store rows twice.
    "commit.retry.num-retries": "0",
}
"""What must be so for the rows to be right. Set again when somebody has changed it."""

_PROPERTIES = {
    **REQUIRED_PROPERTIES,
    # Otherwise Spark would sample and shuffle for a table that has an order.
    "write.distribution-mode": "none",
    "write.target-file-size-bytes": str(128 * MiB),
    "write.parquet.compression-codec": "zstd",
    # What readers skip, and share among processors. The usual 128 MiB is a million rows of ours.
    "write.parquet.row-group-size-bytes": str(16 * MiB),
    "write.metadata.metrics.default": "counts",
    # Otherwise a filter takes a megabyte, also that of a small file.
    "write.parquet.bloom-filter-adaptive-enabled": "true",
    # A commit a minute would leave half a million of them in a year.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
    # Every commit writes the list of all snapshots: hours of them, and not the usual five days.
    "history.expire.max-snapshot-age-ms": str(6 * HOUR_MS),
    "history.expire.min-snapshots-to-keep": "10",
}


def kind_of(table: str) -> str:
    """What a table is, by its name."""
    return TOPIC if table.startswith(TOPIC_PREFIX) else table


def properties_of(name: str) -> dict[str, str]:
    """The properties that a table is made with."""
    kind = kind_of(name)
    return {
        "comment": COMMENTS[kind],
        **_PROPERTIES,
        **{
            f"write.metadata.metrics.column.{column}": mode for column, mode in BOUNDS[kind].items()
        },
        **{
            f"write.parquet.bloom-filter-enabled.column.{column}": "true"
            for column in BLOOM_COLUMNS[kind]
        },
    }

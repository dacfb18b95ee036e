"""Physical layout of the tables: sort columns, bloom filters, column bounds, Iceberg properties.

Needs no library, so that a task can write files without a catalog. The appender and Spark's
compaction both follow the properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.model import MiB

HOUR_MS = 3_600_000

TOPIC = "topic"
"""The kind of all tables that hold a topic's records. Every other table is its own kind."""
TOPIC_PREFIX = "topic_"
"""Prefix of their names."""

PARTITION_COLUMN = "time"
"""A data file holds one UTC day of it."""
PARTITION_FIELD = "time_day"
"""The name that Spark would choose."""

SORT_COLUMNS: dict[str, tuple[str, ...]] = {
    "logs": ("service_name", "time"),
    "spans": ("trace_id", "time"),
    "metrics": ("metric_name", "service_name", "time"),
    "dead_letters": ("topic", "time"),
    TOPIC: ("_log_partition", "_offset"),
}
"""Kind -> columns that its files are sorted by, ascending. All are required columns."""

BLOOM_COLUMNS: dict[str, tuple[str, ...]] = {
    "logs": ("trace_id", "span_id"),
    "spans": ("trace_id", "span_id"),
    "metrics": (),
    "dead_letters": (),
    TOPIC: (),
}
"""Kind -> columns with a bloom filter: looked up by one value, and not sorted usefully."""

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
"""Kind -> column -> how much of its lower and upper bound a manifest holds. Other columns have
counts of values and nulls only: bounds of bodies and maps are large and prune nothing."""

COMMENTS = {
    "logs": "one row per log record",
    "spans": "one row per span",
    "metrics": "one row per data point",
    "dead_letters": "what could not become a row",
    TOPIC: "one row per record of a topic",
}

TARGET_BYTES = 128 * MiB
"""Size of data files that compaction aims at."""
LARGE_PERCENT = 75
"""Files above this share of the target size are not merged."""

REQUIRED_PROPERTIES = {
    # A retry inside PyIceberg would not check the offsets again and could store rows twice.
    "commit.retry.num-retries": "0",
}
"""Properties that correctness depends on. Restored if a user has changed them."""

_PROPERTIES = {
    **REQUIRED_PROPERTIES,
    # By default Spark samples and shuffles rows for a table with a sort order.
    "write.distribution-mode": "none",
    "write.target-file-size-bytes": str(TARGET_BYTES),
    "write.parquet.compression-codec": "zstd",
    # The unit of pruning and parallel reads. The default of 128 MiB is a million rows of ours.
    "write.parquet.row-group-size-bytes": str(16 * MiB),
    "write.metadata.metrics.default": "counts",
    # By default a filter takes 1 MiB, even in a small file.
    "write.parquet.bloom-filter-adaptive-enabled": "true",
    # A commit per minute would leave half a million metadata files in a year.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
    # Every commit writes the list of all snapshots, so keep hours, not the default five days.
    "history.expire.max-snapshot-age-ms": str(6 * HOUR_MS),
    "history.expire.min-snapshots-to-keep": "10",
}

LOADED = "frazil.loaded"
"""Tables with this property are maintained by us, although no appender fills them."""
LOADED_PROPERTIES = {
    **_PROPERTIES,
    "write.metadata.metrics.default": "truncate(16)",
    LOADED: "true",
}
"""Properties of new tables that are loaded from files."""


KEYED_TARGET_BYTES = 64 * MiB
"""Size of data files of keyed tables. A compaction task holds all rows of one in memory."""
TABLE_ID = "frazil.table-id"
"""Id of a keyed table. Other tables do not have this property."""
NEXT_ROWS = "frazil.next-rows"
"""The first row version of each partition that a keyed table does not have."""
KEYED_PROPERTIES = {
    **_PROPERTIES,
    "comment": "rows by primary key; written by Frazil alone",
    "write.target-file-size-bytes": str(KEYED_TARGET_BYTES),
    "write.metadata.metrics.default": "truncate(16)",
}
"""Properties of new keyed tables."""


def is_keyed(properties: Mapping[str, str]) -> bool:
    """Return whether these are properties of a keyed table."""
    return TABLE_ID in properties


def kind_of(table: str) -> str:
    """Return the kind of a table by its name."""
    return TOPIC if table.startswith(TOPIC_PREFIX) else table


def is_small(size_bytes: int, target_bytes: int) -> bool:
    """Return whether a file is small enough to be merged."""
    return size_bytes * 100 < target_bytes * LARGE_PERCENT


def properties_of(name: str) -> dict[str, str]:
    """Return the properties of a new table."""
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

"""Status: the response of /api/v1/status, also shown by `frazil status`.

Unknown numbers are null. In telemetry topics one offset is one request.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import doc
from frazil.removal import RuleStatus
from frazil.serve.status.connectors import ConnectorSummary
from frazil.status import IngestStatus, KafkaStatus, Rate, State, SubscriberStatus, Timing
from frazil.tables import KeyedTableStatus


class LogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Size and queue of the log."""

    used_bytes: int
    bytes_max: int
    is_full: bool
    when_full: str
    queue_batches: int
    queue_bytes: int
    syncing: Annotated[Timing | None, doc("Time of a group commit; null if idle.")]
    topics: list[TopicStatus]


class TopicStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and the progress of each stage."""

    topic: str
    cleanup: Annotated[
        str,
        doc("`expire` removes old records, `compact` older ones of a key, `compact_expire` both."),
    ]
    retention_ms: Annotated[int, doc("How long records are kept; 2^63-1 is forever.")]
    retention_bytes_max: Annotated[int | None, doc("Size limit of each partition, if any.")]
    awaits_lake: Annotated[bool, doc("True if the time begins when records are in the lake.")]
    partitions: list[PartitionStatus]


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One partition. A watermark is the first offset that a stage has not finished."""

    partition: int
    start_offset: int
    durable_watermark: int
    hot_watermark: int | None
    hot_lag_offsets: int | None
    lake_watermark: int | None
    lake_lag_offsets: int | None
    lake_lag_bytes: int | None
    log_bytes: int
    log_segments: int


class HotStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The hot tier."""

    is_whole: Annotated[bool, doc("True if every row of the log is queryable.")]
    lag_offsets: int
    memory_bytes: int
    memory_bytes_max: int
    disk_bytes: int
    disk_bytes_max: int
    rows: Annotated[dict[str, int], doc("Rows by table.")]
    trouble: str | None


class LakeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The Iceberg tables at the last refresh."""

    spark: SparkStatus
    lag_bytes: Annotated[int | None, doc("Bytes of log not in tables yet.")]
    lag_age_s: Annotated[
        float | None,
        doc("Age of the oldest of them; null if none, or nothing fills the tables."),
    ]
    flush_bytes: int
    flush_age_ms: int
    doing: Annotated[DoingStatus | None, doc("Running work on the tables, if any.")]
    last_commit: CommitStatus | None
    commits: Annotated[list[CommitStatus], doc("Latest commits, newest first.")]
    tables: list[TableStatus]
    retention: Annotated[list[RuleStatus], doc("Retention rules, and what they will remove.")]
    trouble: str | None
    given_up: str | None


class SparkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The Spark process."""

    state: str
    pid: int | None
    trouble: str | None


class DoingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A running append round or maintenance."""

    work: Annotated[str, doc("`round` or `maintenance`.")]
    step: Annotated[str, doc("Current step, for people.")]
    table: str | None
    begun_ms: int
    age_s: float
    task_count: Annotated[int, doc("Tasks of the Spark job.")]
    log_bytes: Annotated[int, doc("Bytes of log that the round appends.")]
    done_bytes: Annotated[int, doc("Bytes of log already committed.")]
    done_rows: int


class CommitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One commit to a table."""

    table: str
    snapshot_id: int
    snapshot: Annotated[str, doc("`snapshot_id` as text: it exceeds 2^53.")]
    operation: Annotated[str, doc("append adds rows, replace compacts files.")]
    added_rows: int | None
    committed_ms: int
    age_s: float


class TableStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One Iceberg table."""

    table: str
    snapshot_id: int | None
    rows: int
    files: int
    small_files: Annotated[int, doc("Files that compaction would merge.")]
    bytes: int


class PipeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One pipe."""

    pipe: str
    state: Annotated[str, doc("`running`, `paused`, `waiting` or `failing`.")]
    is_failing: Annotated[bool, doc("True if the last attempt failed, running or not.")]
    table: str
    failures: Annotated[int, doc("Failed attempts since the last success.")]
    last_error: str | None
    success_age_s: Annotated[float | None, doc("Time since the last success; null if none.")]
    next_in_s: Annotated[float | None, doc("Time until the next run; null if there is none.")]


class QueryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """SQL over hot tier and lake."""

    queries_per_s: float
    answering: Annotated[Timing | None, doc("Query to last row; null if idle.")]


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the node."""

    process: Annotated[str, doc("`writer` or `reader`.")]
    pid: int
    resident_bytes: int
    cpu_s: float


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Status of one node."""

    version: str
    pid: Annotated[int, doc("Process id of the writer, which is the node's.")]
    state: State
    started_ms: int
    uptime_s: float
    data: str
    processes: list[ProcessStatus]
    ingest: IngestStatus
    kafka: Annotated[KafkaStatus | None, doc("Null if `kafka.enabled` is false.")]
    rates_window_s: int
    rates: list[Rate]
    log: LogStatus
    hot: Annotated[HotStatus | None, doc("Null if `hot.enabled` is false.")]
    lake: Annotated[LakeStatus | None, doc("Null if disabled or not installed.")]
    pipes: Annotated[list[PipeSummary], doc("Empty without a lake.")]
    connectors: Annotated[list[ConnectorSummary], doc("Sources, then sinks, by name.")]
    query: Annotated[QueryStatus | None, doc("Null if `hot.enabled` is false.")]
    subscribers: list[SubscriberStatus]
    tables: Annotated[list[KeyedTableStatus], doc("Keyed tables, by name.")]

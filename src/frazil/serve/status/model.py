"""Status: how a node does, as one answer. What `frazil status` and the API show.

A number that nobody knows yet is null. An offset of telemetry is a request.
"""

from __future__ import annotations

import msgspec

from frazil.serve.uptime import Rate, State, Timing


class IngestStatus(msgspec.Struct, frozen=True, kw_only=True):
    """OTLP: is it open, and what came."""

    grpc_port: int
    http_port: int
    is_open: bool
    why_closed: str | None
    in_flight_requests: int
    in_flight_bytes: int
    needs_token: bool
    """Does it take nothing from whoever has no token?"""
    is_tls: bool
    acknowledging: Timing | None
    """From a whole body to its durable answer; None when nothing came lately."""
    signals: list[SignalStatus]
    transports: list[TransportStatus]
    refusals: dict[str, int]
    """Requests that were refused since the start, by reason."""


class SignalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one signal since the start."""

    signal: str
    accepted_requests: int
    accepted_records: int
    accepted_bytes: int
    duplicate_requests: int
    refused_requests: int
    refused_records: int


class TransportStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What came by gRPC or by HTTP since the start."""

    transport: str
    accepted_requests: int
    refused_requests: int


class LogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the log takes, of what it may."""

    used_bytes: int
    bytes_max: int
    is_full: bool
    when_full: str
    queue_batches: int
    queue_bytes: int
    syncing: Timing | None
    """What it takes to make a group of requests durable; None when nothing came lately."""
    topics: list[TopicStatus]


class TopicStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A topic and how far each stage has come with it."""

    topic: str
    partitions: list[PartitionStatus]


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Watermarks are the first offsets that a stage has not finished."""

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

    is_whole: bool
    """Is every row visible that the log has?"""
    lag_offsets: int
    memory_bytes: int
    memory_bytes_max: int
    disk_bytes: int
    disk_bytes_max: int
    rows: dict[str, int]
    """By table."""
    trouble: str | None


class LakeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The Iceberg tables, as they were looked up last."""

    spark: SparkStatus
    lag_bytes: int | None
    """Of the log, that are not in tables yet."""
    lag_age_s: float | None
    """How long the first of them wait; None when none do, or when nobody fills the tables."""
    flush_bytes: int
    flush_age_ms: int
    doing: DoingStatus | None
    """What is done to the tables now; None when nothing is."""
    last_commit: CommitStatus | None
    commits: list[CommitStatus]
    """The newest of all tables, whatever they did; the newest first."""
    tables: list[TableStatus]
    trouble: str | None
    given_up: str | None


class SparkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Spark's process."""

    state: str
    pid: int | None
    trouble: str | None


class DoingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A round that fills tables, or maintenance of them."""

    work: str
    """round, or maintenance."""
    step: str
    """In words."""
    table: str | None
    begun_ms: int
    age_s: float
    task_count: int
    """Of the job on Spark."""
    log_bytes: int
    """What the round takes from the log."""
    done_bytes: int
    """Of these, what is committed."""
    done_rows: int


class CommitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One commit to a table."""

    table: str
    snapshot_id: int
    snapshot: str
    """The same as a text, for readers whose numbers are not exact above 2^53."""
    operation: str
    """append brought rows, replace joined files."""
    added_rows: int | None
    committed_ms: int
    age_s: float


class TableStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One Iceberg table."""

    table: str
    snapshot_id: int | None
    rows: int
    files: int
    small_files: int
    """Those that maintenance would join with others, once there are enough of them."""
    bytes: int


class QueryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """SQL over hot tier and lake."""

    queries_per_s: float
    answering: Timing | None
    """From a question to its last row; None when nothing was asked lately."""


class SubscriberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A reader with durable progress."""

    subscriber: str
    topic: str
    lag_offsets: int
    in_flight_batches: int


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One node at one moment."""

    version: str
    pid: int
    state: State
    started_ms: int
    uptime_s: float
    data: str
    ingest: IngestStatus
    rates_window_s: int
    rates: list[Rate]
    log: LogStatus
    hot: HotStatus | None
    """None when `hot.enabled` is false."""
    lake: LakeStatus | None
    """None when `lake.enabled` is false, or something for it is not installed."""
    query: QueryStatus | None
    """None when there is no SQL, as `hot.enabled` is false."""
    subscribers: list[SubscriberStatus]

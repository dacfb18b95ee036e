"""WriterStatus: what the writer process reports about itself."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import doc
from frazil.status.families import Family
from frazil.status.health import Check
from frazil.status.process import ProcessInfo
from frazil.status.uptime import State, Timing


class OtlpAddresses(msgspec.Struct, frozen=True, kw_only=True):
    """The open OTLP ports."""

    grpc_port: int
    http_port: int
    url: str
    """OTLP/HTTP, from this machine."""
    needs_token: bool
    is_tls: bool


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """Ingest rate of one signal."""

    signal: str
    requests_per_s: float
    records_per_s: float
    bytes_per_s: float


class SignalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one signal since the start."""

    signal: str
    accepted_requests: int
    accepted_records: int
    accepted_bytes: int
    duplicate_requests: int
    refused_requests: int
    refused_records: int


class TransportStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of gRPC or HTTP since the start."""

    transport: str
    accepted_requests: int
    refused_requests: int


class IngestStatus(msgspec.Struct, frozen=True, kw_only=True):
    """OTLP ports and admission."""

    grpc_port: int
    http_port: int
    is_open: bool
    why_closed: str | None
    in_flight_requests: int
    in_flight_bytes: int
    needs_token: Annotated[bool, doc("True if clients must send a token.")]
    is_tls: bool
    acknowledging: Annotated[Timing | None, doc("Body to acknowledgement; null if idle.")]
    signals: list[SignalStatus]
    transports: list[TransportStatus]
    refusals: Annotated[dict[str, int], doc("Refused requests by reason, since start.")]
    rejections: Annotated[
        dict[str, int], doc("Records rejected from accepted requests by reason, since start.")
    ]
    truncations: Annotated[
        dict[str, int], doc("Attributes, keys, values and bodies cut by limit, since start.")
    ]
    redactions: Annotated[
        dict[str, int], doc("Values replaced by redaction rules by action, since start.")
    ]
    full_services: Annotated[
        list[str], doc("Services whose new metric series are rejected; at most 20.")
    ]


class KafkaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The Kafka port."""

    port: int
    connections: int
    in_flight_bytes: Annotated[int, doc("Requests not answered yet.")]
    group_count: Annotated[int, doc("Consumer groups.")]
    groups: Annotated[list[GroupStatus], doc("Those with the largest lag first; at most 100.")]
    group_partitions: Annotated[
        list[GroupPartitionStatus],
        doc("Committed offsets, those with the largest lag first; at most 1,000."),
    ]


class GroupStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer group."""

    group: str
    state: str
    members: int
    partitions: Annotated[int, doc("Partitions with a committed offset.")]
    lag_offsets: Annotated[int, doc("Offsets that are not committed yet.")]


class GroupPartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that a group has committed an offset of."""

    group: str
    topic: str
    partition: int
    committed_offset: int
    lag_offsets: int


class LogUse(msgspec.Struct, frozen=True, kw_only=True):
    """Size and queue of the log."""

    used_bytes: int
    bytes_max: int
    is_full: bool
    when_full: str
    queue_batches: int
    queue_bytes: int
    syncing: Timing | None


class SubscriberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A reader with durable progress."""

    subscriber: str
    topic: str
    lag_offsets: int
    in_flight_batches: int


class WriterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The writer process at one moment."""

    pid: int
    state: State
    started_ms: int
    uptime_s: float
    ingest: IngestStatus
    kafka: KafkaStatus | None
    log: LogUse
    subscribers: list[SubscriberStatus]
    rates: list[Rate]
    checks: list[Check]
    families: list[Family]
    process: ProcessInfo

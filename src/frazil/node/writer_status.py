"""Collect what the writer reports about itself: ingest, log, health, metrics. From memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from heapq import nlargest

from frazil.ingest import (
    OtlpPorts,
    redacted_by_action,
    refused_by_reason,
    rejected_by_reason,
    requests_by_transport,
    totals_of,
    truncated_by_limit,
)
from frazil.kafka import GroupLag, KafkaPort
from frazil.log import Log
from frazil.model import Clock, Signal
from frazil.status import (
    Check,
    GroupPartitionStatus,
    GroupStatus,
    Health,
    IngestStatus,
    KafkaStatus,
    LogUse,
    OtlpAddresses,
    Rate,
    Rates,
    SignalStatus,
    SubscriberStatus,
    TransportStatus,
    Uptime,
    WriterStatus,
    own_families,
    process_info,
)

ACKNOWLEDGED, SYNCED = "frazil.ingest.ack.ms", "frazil.log.sync.ms"
GROUPS_MAX, GROUP_PARTITIONS_MAX = 100, 1000
"""Consumer groups, and their partitions, in the status; those with the largest lag."""
RATES = ("accepted_requests", "accepted_records", "accepted_bytes")


def writer_rates(clock: Clock) -> Rates:
    """Return the rates of the writer process, to be stepped once a second."""

    def total(signal: Signal, name: str) -> float:
        return float(getattr(totals_of(signal), name))

    counters: dict[str, Callable[[], float]] = {
        f"{signal.value}.{name}": partial(total, signal, name)
        for signal in Signal
        for name in RATES
    }
    return Rates(clock, counters, (ACKNOWLEDGED, SYNCED))


def addresses_of(otlp: OtlpPorts) -> OtlpAddresses:
    return OtlpAddresses(
        grpc_port=otlp.grpc_port,
        http_port=otlp.http_port,
        url=otlp.own_url,
        needs_token=otlp.needs_token,
        is_tls=otlp.is_tls,
    )


def writer_status(
    log: Log, otlp: OtlpPorts, kafka: KafkaPort | None, uptime: Uptime
) -> WriterStatus:
    """Collect the status. Takes about a millisecond, in any thread."""
    return WriterStatus(
        pid=os.getpid(),
        state=uptime.state,
        started_ms=uptime.started_ms,
        uptime_s=uptime.uptime_s,
        ingest=_ingest_status(otlp, uptime.rates),
        kafka=None if kafka is None else _kafka_status(kafka),
        log=_log_use(log, uptime.rates),
        subscribers=[
            SubscriberStatus(
                subscriber=each.name,
                topic=each.topic,
                lag_offsets=each.lag(),
                in_flight_batches=each.in_flight(),
            )
            for each in log.subscribers()
        ],
        rates=rates_of(uptime.rates),
        checks=writer_checks(log, otlp, uptime),
        families=own_families(),
        process=process_info(),
    )


def _ingest_status(otlp: OtlpPorts, rates: Rates) -> IngestStatus:
    admission = otlp.admission()
    return IngestStatus(
        grpc_port=otlp.grpc_port,
        http_port=otlp.http_port,
        is_open=admission.why_closed is None,
        why_closed=admission.why_closed,
        in_flight_requests=admission.request_count,
        in_flight_bytes=admission.in_flight_bytes,
        needs_token=otlp.needs_token,
        is_tls=otlp.is_tls,
        acknowledging=rates.latency(ACKNOWLEDGED),
        signals=[
            SignalStatus(signal=signal.value, **asdict(totals_of(signal))) for signal in Signal
        ],
        transports=[
            TransportStatus(
                transport=transport, accepted_requests=accepted, refused_requests=refused
            )
            for transport, (accepted, refused) in requests_by_transport().items()
        ],
        refusals=refused_by_reason(),
        rejections=rejected_by_reason(),
        truncations=truncated_by_limit(),
        redactions=redacted_by_action(),
        full_services=otlp.full_services(),
    )


def _kafka_status(kafka: KafkaPort) -> KafkaStatus:
    by_group: dict[str, list[GroupLag]] = {}
    lags = kafka.groups.recent_lag.get()
    for each in lags:
        by_group.setdefault(each.group_id, []).append(each)
    groups = [
        GroupStatus(
            group=name,
            state=of_group[0].state,
            members=of_group[0].members,
            partitions=len(of_group),
            lag_offsets=sum(each.lag for each in of_group),
        )
        for name, of_group in by_group.items()
    ]
    return KafkaStatus(
        **asdict(kafka.use()),
        group_count=len(kafka.groups.groups),
        groups=nlargest(GROUPS_MAX, groups, key=lambda group: group.lag_offsets),
        group_partitions=[
            GroupPartitionStatus(
                group=each.group_id,
                topic=each.partition.topic,
                partition=each.partition.partition,
                committed_offset=each.committed_offset,
                lag_offsets=each.lag,
            )
            for each in nlargest(GROUP_PARTITIONS_MAX, lags, key=lambda lag: lag.lag)
        ],
    )


def _log_use(log: Log, rates: Rates) -> LogUse:
    return LogUse(
        used_bytes=log.budget.used_bytes,
        bytes_max=log.budget.hard_bytes_max,
        is_full=log.budget.is_full,
        when_full=log.config.when_full,
        queue_batches=log.writer.queue_count,
        queue_bytes=log.writer.queue_bytes,
        syncing=rates.latency(SYNCED),
    )


def rates_of(rates: Rates) -> list[Rate]:
    """Return the ingest rates of every signal."""
    return [_rate(signal, rates) for signal in Signal]


def _rate(signal: Signal, rates: Rates) -> Rate:
    requests, records, size = (round(rates.per_s(f"{signal.value}.{name}"), 1) for name in RATES)
    return Rate(
        signal=signal.value, requests_per_s=requests, records_per_s=records, bytes_per_s=size
    )


_Finding = tuple[Health, str | None, str | None]
"""State of a component, why, and what to do."""
_OK: _Finding = ("ok", None, None)


def writer_checks(log: Log, otlp: OtlpPorts, uptime: Uptime) -> list[Check]:
    """Check every component of the writer, in memory only."""
    findings = {"node": _node(uptime), "log": _log(log), "ingest": _ingest(otlp)}
    return [
        Check(component=room, state=state, why=why, next_step=next_step)
        for room, (state, why, next_step) in findings.items()
    ]


def _node(uptime: Uptime) -> _Finding:
    state = uptime.state
    return _OK if state == "running" else ("failed", f"this node is {state}", None)


def _log(log: Log) -> _Finding:
    failure, budget = log.writer.failure, log.budget
    if failure is not None:
        return "failed", f"writing stopped: {failure}", "check the disk, then restart the node"
    if budget.is_disk_full:
        remedy = "free disk space; the node then accepts requests again"
        return "failed", "the disk is full, and requests are refused", remedy
    used = f"{budget.used_bytes} of {budget.hard_bytes_max} bytes"
    if budget.is_full:
        remedy = f"find the slowest reader ({_slowest(log)}), free disk space, or raise "
        return "failed", f"the log is full: {used}", f"{remedy}log.disk_bytes_max"
    if budget.is_tight:
        remedy = f"find the slowest reader: {_slowest(log)}"
        return "degraded", f"the log is almost full: {used}", remedy
    if budget.is_disk_short:
        remedy = "free disk space, see docs/operating.md, Disk full"
        return "degraded", "the disk is short of space: the log keeps only what is required", remedy
    return _OK


def _slowest(log: Log) -> str:
    """Describe the reader with the largest lag."""
    lags = {subscriber.name: subscriber.lag() for subscriber in log.subscribers()}
    waiting = [
        (partition.view.durable_watermark, log.lake_watermark(topic.name, partition.index))
        for topic in log.topics()
        if topic.config.awaits_lake
        for partition in topic.partitions
    ]
    if any(watermark is not None for _, watermark in waiting):
        lags["the lake"] = sum(end - (watermark or 0) for end, watermark in waiting)
    elif waiting:
        return "telemetry is kept until a lake has it, and no lake has reported any yet"
    if not lags:
        return "it has no readers"
    name = max(lags, key=lambda name: lags[name])
    return f"{name} lags by {lags[name]} offsets"


def _ingest(otlp: OtlpPorts) -> _Finding:
    admission = otlp.admission()
    why = admission.why_closed
    if why is None:
        return _OK
    if admission.is_draining:
        return "failed", why, None
    remedy = "it recovers automatically; otherwise see the log of the node"
    return "degraded", f"clients must retry: {why}", remedy

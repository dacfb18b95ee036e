"""Collect the status of a node from memory: no file, catalog, Spark or long-held lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice

from frazil.ingest import refused_by_reason, requests_by_transport, totals_of
from frazil.lake import (
    TARGET_BYTES,
    Lake,
    SnapshotInfo,
    TableView,
    bytes_behind,
    is_small,
)
from frazil.log import Partition, Topic
from frazil.model import Signal
from frazil.serve.context import NodeContext
from frazil.serve.status import model
from frazil.serve.uptime import ACKNOWLEDGED, ANSWERED, SYNCED, WINDOW_S
from frazil.version import __version__

COMMITS_MAX = 20


def status_of(context: NodeContext) -> model.Status:
    """Collect the status. Takes about 1 ms; call it on the event loop."""
    log = _log_status(context)
    return model.Status(
        version=__version__,
        pid=os.getpid(),
        state=context.uptime.state,
        started_ms=context.uptime.started_ms,
        uptime_s=round(context.uptime.uptime_s, 3),
        data=context.data,
        ingest=_ingest_status(context),
        rates_window_s=WINDOW_S,
        rates=context.uptime.rates.now(),
        log=log,
        hot=_hot_status(context),
        lake=None
        if context.lake is None
        else _lake_status(context.lake, log, context.clock.wall_ms()),
        query=_query_status(context),
        subscribers=[
            model.SubscriberStatus(
                subscriber=each.name,
                topic=each.topic,
                lag_offsets=each.lag(),
                in_flight_batches=each.in_flight(),
            )
            for each in context.log.subscribers()
        ],
    )


def _ingest_status(context: NodeContext) -> model.IngestStatus:
    admission = context.otlp.admission()
    return model.IngestStatus(
        grpc_port=context.otlp.grpc_port,
        http_port=context.otlp.http_port,
        is_open=admission.why_closed is None,
        why_closed=admission.why_closed,
        in_flight_requests=admission.request_count,
        in_flight_bytes=admission.in_flight_bytes,
        needs_token=context.otlp.needs_token,
        is_tls=context.otlp.is_tls,
        acknowledging=context.uptime.rates.latency(ACKNOWLEDGED),
        signals=[
            model.SignalStatus(signal=signal.value, **asdict(totals_of(signal)))
            for signal in Signal
        ],
        transports=[
            model.TransportStatus(
                transport=transport, accepted_requests=accepted, refused_requests=refused
            )
            for transport, (accepted, refused) in requests_by_transport().items()
        ],
        refusals=refused_by_reason(),
    )


def _log_status(context: NodeContext) -> model.LogStatus:
    log = context.log
    return model.LogStatus(
        used_bytes=log.budget.used_bytes,
        bytes_max=log.budget.hard_bytes_max,
        is_full=log.budget.is_full,
        when_full=log.config.when_full,
        queue_batches=log.writer.queue_count,
        queue_bytes=log.writer.queue_bytes,
        syncing=context.uptime.rates.latency(SYNCED),
        topics=[
            model.TopicStatus(
                topic=topic.name,
                partitions=[_partition_status(context, topic, each) for each in topic.partitions],
            )
            for topic in log.topics()
        ],
    )


def _partition_status(
    context: NodeContext, topic: Topic, partition: Partition
) -> model.PartitionStatus:
    hot = None if context.tier is None else context.tier.watermarks(topic.name).get(partition.index)
    lake = context.log.lake_watermark(topic.name, partition.index)
    view = partition.view  # read last, so that no lag is negative
    end = view.durable_watermark
    return model.PartitionStatus(
        partition=partition.index,
        start_offset=view.start_offset,
        durable_watermark=end,
        hot_watermark=hot,
        hot_lag_offsets=None if hot is None else end - hot,
        lake_watermark=lake,
        lake_lag_offsets=None if lake is None else end - lake,
        lake_lag_bytes=None if lake is None else bytes_behind(view, lake),
        log_bytes=view.size_bytes,
        log_segments=len(view.segments),
    )


def _hot_status(context: NodeContext) -> model.HotStatus | None:
    tier = context.tier
    if tier is None:
        return None
    died = None if tier.died is None else f"the thread died: {tier.died!r}"
    return model.HotStatus(
        is_whole=tier.is_complete,
        lag_offsets=tier.lag,
        memory_bytes=tier.memory_bytes,
        memory_bytes_max=tier.config.memory_bytes_max,
        disk_bytes=tier.disk_bytes,
        disk_bytes_max=tier.config.disk_bytes_max,
        rows={
            table: sum(piece.row_count for piece in pieces)
            for table, pieces in tier.visible_pieces().items()
        },
        trouble=died or tier.trouble or tier.disk_trouble,
    )


def _lake_status(lake: Lake, log: model.LogStatus, now_ms: int) -> model.LakeStatus:
    view = lake.view.latest
    tables = [] if view is None else list(view.tables.values())
    lags = [part.lake_lag_bytes for topic in log.topics for part in topic.partitions]
    known_lags = [lag for lag in lags if lag is not None]
    return model.LakeStatus(
        spark=model.SparkStatus(
            state=lake.session.state, pid=lake.session.pid, trouble=lake.session.trouble
        ),
        lag_bytes=sum(known_lags) if known_lags else None,
        lag_age_s=None if lake.pending_age_ms is None else lake.pending_age_ms / 1000,
        flush_bytes=lake.config.flush_bytes,
        flush_age_ms=lake.config.flush_age_ms,
        doing=_doing_status(lake, now_ms),
        last_commit=next(iter(_commits(tables, now_ms, 1, only="append")), None),
        commits=_commits(tables, now_ms, COMMITS_MAX),
        tables=[
            model.TableStatus(
                table=table.name,
                snapshot_id=table.snapshot_id,
                rows=table.row_count,
                files=len(table.files),
                small_files=sum(is_small(file.size_bytes, TARGET_BYTES) for file in table.files),
                bytes=sum(file.size_bytes for file in table.files),
            )
            for table in tables
        ],
        trouble=lake.trouble if lake.died is None else f"the thread died: {lake.died!r}",
        given_up=None if lake.given_up is None else str(lake.given_up),
    )


def _doing_status(lake: Lake, now_ms: int) -> model.DoingStatus | None:
    activity = lake.activity
    if activity is None:
        return None
    return model.DoingStatus(**asdict(activity), age_s=max(0, now_ms - activity.begun_ms) / 1000)


def _commits(
    tables: list[TableView], now_ms: int, count: int, only: str | None = None
) -> list[model.CommitStatus]:
    """Return the newest commits. Snapshots of a table are ordered, so few are read."""
    newest = [
        (facts.committed_ms, table.name, facts)
        for table in tables
        for facts in islice(_backwards(table.snapshots, only), count)
    ]
    newest.sort(key=lambda each: each[:2], reverse=True)
    return [
        model.CommitStatus(
            table=name,
            snapshot_id=facts.snapshot_id,
            snapshot=str(facts.snapshot_id),
            operation=facts.operation,
            added_rows=facts.added_rows,
            committed_ms=committed_ms,
            age_s=max(0, now_ms - committed_ms) / 1000,
        )
        for committed_ms, name, facts in newest[:count]
    ]


def _backwards(snapshots: Sequence[SnapshotInfo], only: str | None) -> Iterator[SnapshotInfo]:
    return (facts for facts in reversed(snapshots) if only in (None, facts.operation))


def _query_status(context: NodeContext) -> model.QueryStatus | None:
    if context.sql is None:
        return None
    rates = context.uptime.rates
    return model.QueryStatus(
        queries_per_s=round(rates.queries_per_s, 2), answering=rates.latency(ANSWERED)
    )

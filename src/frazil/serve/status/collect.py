"""Collect the status of a node: from memory, the log's watermarks, and the writer process; no
catalog, Spark or long-held lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice

from msgspec import structs

from frazil.lake import (
    TARGET_BYTES,
    Lake,
    SnapshotInfo,
    TableView,
    bytes_behind,
    is_small,
)
from frazil.log import ReadablePartition, ReadableTopic
from frazil.metrics import Counter, find
from frazil.model import Clock
from frazil.removal import rule_statuses
from frazil.serve.context import NodeContext
from frazil.serve.status import model
from frazil.serve.status.connectors import connector_summaries
from frazil.status import WINDOW_S, ProcessInfo, Rates, WriterStatus, process_info
from frazil.version import __version__

COMMITS_MAX = 20
QUERIES, ANSWERED = "frazil.query.queries", "frazil.query.duration.ms"
"""Names of the query engine's metrics."""


def status_of(context: NodeContext) -> model.Status:
    """Collect the status. Takes some milliseconds; call it in a thread."""
    return status_with(context, context.writer_status())


def status_with(context: NodeContext, writer: WriterStatus) -> model.Status:
    """Collect the status, with what the writer has reported."""
    log = _log_status(context, writer)
    return model.Status(
        version=__version__,
        pid=writer.pid,
        state=writer.state,
        started_ms=writer.started_ms,
        uptime_s=round(writer.uptime_s, 3),
        data=context.data,
        processes=[
            _process_status("writer", writer.process),
            _process_status("reader", process_info()),
        ],
        ingest=writer.ingest,
        kafka=writer.kafka,
        rates_window_s=WINDOW_S,
        rates=writer.rates,
        log=log,
        hot=_hot_status(context),
        lake=None
        if context.lake is None
        else _lake_status(context.lake, log, context.clock.wall_ms()),
        pipes=_pipe_summaries(context),
        connectors=connector_summaries(context.connectors, context.clock.wall_ms()),
        query=_query_status(context),
        subscribers=writer.subscribers,
        tables=[] if context.tables is None else context.tables.statuses(),
    )


def _process_status(name: str, info: ProcessInfo) -> model.ProcessStatus:
    return model.ProcessStatus(
        process=name,
        pid=info.pid,
        resident_bytes=info.resident_bytes,
        cpu_s=round(info.cpu_s, 2),
    )


def _log_status(context: NodeContext, writer: WriterStatus) -> model.LogStatus:
    return model.LogStatus(
        **structs.asdict(writer.log),
        topics=[
            model.TopicStatus(
                topic=topic.name,
                cleanup=topic.config.cleanup,
                retention_ms=topic.config.retention_ms,
                retention_bytes_max=topic.config.retention_bytes_max,
                awaits_lake=topic.config.awaits_lake,
                partitions=[_partition_status(context, topic, each) for each in topic.partitions],
            )
            for topic in context.log.topics()
        ],
    )


def _partition_status(
    context: NodeContext, topic: ReadableTopic, partition: ReadablePartition
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
        retention=rule_statuses(lake, now_ms),
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


def _pipe_summaries(context: NodeContext) -> list[model.PipeSummary]:
    now_ms = context.clock.wall_ms()
    return [
        model.PipeSummary(
            pipe=each.pipe.name,
            state=each.word,
            is_failing=each.state.is_failing,
            table=each.pipe.copy.table,
            failures=each.state.failures,
            last_error=each.state.message or None if each.state.is_failing else None,
            success_age_s=None
            if each.state.succeeded_ms is None
            else max(0, now_ms - each.state.succeeded_ms) / 1000,
            next_in_s=None if each.next_ms is None else max(0, each.next_ms - now_ms) / 1000,
        )
        for each in (() if context.pipes is None else context.pipes.statuses())
    ]


def _query_status(context: NodeContext) -> model.QueryStatus | None:
    if context.sql is None:
        return None
    return model.QueryStatus(
        queries_per_s=round(context.rates.per_s(QUERIES), 2),
        answering=context.rates.latency(ANSWERED),
    )


def reader_rates(clock: Clock) -> Rates:
    """Return the rates of the reader process, to be stepped once a second."""

    def queries() -> float:
        counter = find(QUERIES)
        return counter.total() if isinstance(counter, Counter) else 0

    return Rates(clock, {QUERIES: queries}, (ANSWERED,))

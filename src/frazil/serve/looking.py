"""How a node does now, looked up.

Only memory is looked at: no file, no catalog, no Spark, no lock that is held for long.
"""

from __future__ import annotations

import os

from frazil.ingest import Signal, totals_of
from frazil.lake import Lake, SnapshotFacts, TableView, bytes_behind
from frazil.log import Partition, Topic
from frazil.serve.life import WINDOW_S
from frazil.serve.rooms import Rooms
from frazil.serve.status import (
    CommitStatus,
    HotStatus,
    IngestStatus,
    LakeStatus,
    LogStatus,
    PartitionStatus,
    SignalStatus,
    SparkStatus,
    Status,
    SubscriberStatus,
    TableStatus,
    TopicStatus,
)
from frazil.version import __version__


def status_of(rooms: Rooms) -> Status:
    """How a node does now. Takes about a millisecond; call it from the event loop."""
    log = _log_status(rooms)
    return Status(
        version=__version__,
        pid=os.getpid(),
        state=rooms.life.state,
        started_ms=rooms.life.started_ms,
        uptime_s=round(rooms.life.uptime_s, 3),
        data=rooms.data,
        ingest=_ingest_status(rooms),
        rates_window_s=WINDOW_S,
        rates=rooms.life.rates.now(),
        log=log,
        hot=_hot_status(rooms),
        lake=None if rooms.lake is None else _lake_status(rooms.lake, log, rooms.clock.wall_ms()),
        subscribers=[
            SubscriberStatus(
                subscriber=each.name,
                topic=each.topic,
                lag_offsets=each.lag(),
                in_flight_batches=each.in_flight(),
            )
            for each in rooms.log.subscribers()
        ],
    )


def _ingest_status(rooms: Rooms) -> IngestStatus:
    gate = rooms.otlp.gate
    why = gate.why_closed
    totals = {signal.value: totals_of(signal) for signal in Signal}
    return IngestStatus(
        grpc_port=rooms.otlp.grpc_port,
        http_port=rooms.otlp.http_port,
        is_open=why is None,
        why_closed=why,
        in_flight_requests=gate.request_count,
        in_flight_bytes=gate.in_flight_bytes,
        signals=[
            SignalStatus(
                signal=signal,
                accepted_requests=total.accepted_requests,
                accepted_records=total.accepted_records,
                accepted_bytes=total.accepted_bytes,
                duplicate_requests=total.duplicate_requests,
                refused_requests=total.refused_requests,
                refused_records=total.refused_records,
            )
            for signal, total in totals.items()
        ],
    )


def _log_status(rooms: Rooms) -> LogStatus:
    log = rooms.log
    return LogStatus(
        used_bytes=log.budget.used_bytes,
        bytes_max=log.budget.hard_bytes_max,
        is_full=log.budget.is_full,
        when_full=log.config.when_full,
        queue_batches=log.writer.queue_count,
        queue_bytes=log.writer.queue_bytes,
        topics=[
            TopicStatus(
                topic=topic.name,
                partitions=[_partition_status(rooms, topic, each) for each in topic.partitions],
            )
            for topic in log.topics()
        ],
    )


def _partition_status(rooms: Rooms, topic: Topic, partition: Partition) -> PartitionStatus:
    hot = None if rooms.tier is None else rooms.tier.reach(topic.name, partition.index)
    lake = rooms.log.lake_watermark(topic.name, partition.index)
    view = partition.view  # after the others, so that no lag is below zero
    end = view.durable_watermark
    return PartitionStatus(
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


def _hot_status(rooms: Rooms) -> HotStatus | None:
    tier = rooms.tier
    if tier is None:
        return None
    died = None if tier.died is None else f"its thread died: {tier.died!r}"
    return HotStatus(
        is_whole=tier.is_whole,
        lag_offsets=tier.lag,
        memory_bytes=tier.memory_bytes,
        memory_bytes_max=tier.config.memory_bytes_max,
        disk_bytes=tier.disk_bytes,
        disk_bytes_max=tier.config.disk_bytes_max,
        rows={
            table: sum(piece.row_count for piece in pieces)
            for table, pieces in tier.snapshot().items()
        },
        trouble=died or tier.trouble or tier.disk_trouble,
    )


def _lake_status(lake: Lake, log: LogStatus, now_ms: int) -> LakeStatus:
    view = lake.view.latest
    tables = [] if view is None else list(view.tables.values())
    lags = [part.lake_lag_bytes for topic in log.topics for part in topic.partitions]
    known = [lag for lag in lags if lag is not None]
    return LakeStatus(
        spark=SparkStatus(
            state=lake.session.state, pid=lake.session.pid, trouble=lake.session.trouble
        ),
        lag_bytes=sum(known) if known else None,
        flush_bytes=lake.config.flush_bytes,
        flush_age_ms=lake.config.flush_age_ms,
        last_commit=_last_commit(tables, now_ms),
        tables=[
            TableStatus(
                table=table.name,
                snapshot_id=table.snapshot_id,
                rows=table.row_count,
                files=len(table.files),
                bytes=sum(file.size_bytes for file in table.files),
            )
            for table in tables
        ],
        trouble=lake.trouble if lake.died is None else f"its thread died: {lake.died!r}",
        given_up=None if lake.given_up is None else str(lake.given_up),
    )


def _last_commit(tables: list[TableView], now_ms: int) -> CommitStatus | None:
    newest: tuple[str, SnapshotFacts] | None = None
    for table in tables:
        last = next((s for s in reversed(table.snapshots) if s.operation == "append"), None)
        if last is not None and (newest is None or last.committed_ms > newest[1].committed_ms):
            newest = table.name, last
    if newest is None:
        return None
    name, facts = newest
    return CommitStatus(
        table=name,
        snapshot_id=facts.snapshot_id,
        added_rows=facts.added_rows,
        committed_ms=facts.committed_ms,
        age_s=max(0, now_ms - facts.committed_ms) / 1000,
    )

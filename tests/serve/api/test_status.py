"""How a node does: every number is true, and none of them waits for anybody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.log_source import LogSource
from frazil.lake.append.task import WrittenSlice
from frazil.model import Signal, SystemClock
from frazil.node.writer_status import ACKNOWLEDGED, SYNCED, rates_of, writer_rates
from frazil.serve import NodeContext, Status, status_of
from frazil.serve.status.model import DoingStatus, PartitionStatus
from frazil.status import WINDOW_S
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http
from tests.lake.inline_tasks import run_inline
from tests.serve.open_rooms import open_rooms
from tests.sim.clock import SimClock


def send(rooms: NodeContext, *names: str) -> None:
    """One request per name."""
    for name in names:
        answer = send_http(
            rooms.otlp.http_port,
            "/v1/logs",
            logs(log(1, event_name=name), log(2, event_name=name)),
            {"Content-Type": PROTOBUF},
        )
        assert answer.status == 200


def logs_part(status: Status) -> PartitionStatus:
    (topic,) = (t for t in status.log.topics if t.topic == Signal.LOGS.topic)
    (part,) = topic.partitions
    return part


def test_status_has_the_watermarks_of_each_stage(tmp_path: Path) -> None:
    """Durable first, visible after a step; the lake is unknown until it is read."""
    with open_rooms(tmp_path) as rooms:
        send(rooms, "a", "b", "c")
        part = logs_part(status_of(rooms))
        assert (part.start_offset, part.durable_watermark) == (0, 3)
        assert (part.hot_watermark, part.hot_lag_offsets) == (0, 3)
        assert (part.lake_watermark, part.lake_lag_offsets, part.lake_lag_bytes) == (None,) * 3
        assert rooms.tier is not None
        rooms.tier.step()
        rooms.log.publish(Signal.LOGS.topic, 0, 1)
        status = status_of(rooms)
        part = logs_part(status)
        assert (part.hot_watermark, part.hot_lag_offsets) == (3, 0)
        assert (part.lake_watermark, part.lake_lag_offsets) == (1, 2)
        assert part.lake_lag_bytes is not None
        assert 0 < part.lake_lag_bytes < part.log_bytes <= status.log.used_bytes
        assert status.hot is not None
        assert status.hot.rows["logs"] == 6
        assert status.hot.memory_bytes > 0
        assert status.hot.is_whole
        assert status.lake is None
        assert {each.subscriber for each in status.subscribers} >= {"hot_logs"}


def test_status_round_trips_as_json(tmp_path: Path) -> None:
    """Whoever reads it as JSON gets what was there."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        status = status_of(rooms)
        assert msgspec.json.decode(msgspec.json.encode(status), type=Status) == status
        assert status.data == str(tmp_path)
        assert status.lake is not None
        assert status.lake.spark.state == "not_started"
        assert status.ingest.grpc_port == rooms.otlp.grpc_port


def test_the_last_commit_is_shown(tmp_path: Path) -> None:
    """As the tables were looked up last: which table, how many rows, when."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        lake = rooms.lake
        assert lake is not None
        send(rooms, "a", "b")

        def append() -> None:
            appender = Appender.open(
                LogSource(rooms.log, tmp_path),
                lake.catalog,
                lake.config,
                run=run_inline,
                clock=SystemClock(),
                rand=lake._rand,
            )
            appender.append()

        lake.run(append)
        status = status_of(rooms).lake
        assert status is not None
        assert status.last_commit is not None
        assert (status.last_commit.table, status.last_commit.added_rows) == ("logs", 4)
        assert status.last_commit.age_s < 600
        (table,) = (each for each in status.tables if each.table == "logs")
        assert (table.rows, table.files) == (4, 1)
        assert table.bytes > 0
        assert table.small_files == 1
        assert status.lag_bytes == 0
        newest = status.commits[0]
        assert newest == status.last_commit
        assert (newest.operation, newest.snapshot) == ("append", str(newest.snapshot_id))


def test_a_closed_gate_has_a_reason(tmp_path: Path) -> None:
    """Nobody has to guess why nothing comes in."""
    with open_rooms(tmp_path) as rooms:
        assert status_of(rooms).ingest.is_open
        rooms.ports._gate.drain()
        ingest = status_of(rooms).ingest
        assert not ingest.is_open
        assert ingest.why_closed == "this node is stopping"


def test_rates_cover_the_window(tmp_path: Path) -> None:
    """What came before the window does not count, and nothing is nothing."""
    clock = SimClock()
    with open_rooms(tmp_path) as rooms:
        rates = writer_rates(clock)
        assert {rate.records_per_s for rate in rates_of(rates)} == {0.0}
        send(rooms, "a", "b", "c", "d", "e")
        clock.advance(1000)
        rates.step()
        (found,) = (rate for rate in rates_of(rates) if rate.signal == "logs")
        assert (found.requests_per_s, found.records_per_s) == (5.0, 10.0)
        assert found.bytes_per_s > 100
        for _ in range(WINDOW_S + 1):
            clock.advance(1000)
            rates.step()
        assert {rate.records_per_s for rate in rates_of(rates)} == {0.0}


def test_latencies_cover_the_window(tmp_path: Path) -> None:
    """How long a sync and an acknowledgement took; nothing is said when there was none."""
    clock = SimClock()
    with open_rooms(tmp_path) as rooms:
        rates = writer_rates(clock)
        assert rates.latency(SYNCED) is None
        send(rooms, "a", "b", "c")
        clock.advance(1000)
        rates.step()
        for name in (SYNCED, ACKNOWLEDGED):
            found = rates.latency(name)
            assert found is not None
            assert found.count >= 3
            assert 0 < found.p50_ms <= found.p99_ms
        for _ in range(WINDOW_S + 1):
            clock.advance(1000)
            rates.step()
        assert rates.latency(SYNCED) is None


def test_totals_by_transport_and_refusals_by_reason(tmp_path: Path) -> None:
    with open_rooms(tmp_path) as rooms:
        before = status_of(rooms).ingest
        send(rooms, "a")
        wrong = {"Content-Type": PROTOBUF}
        assert send_http(rooms.otlp.http_port, "/v1/logs", b"\xff\xff", wrong).status == 400
        after = status_of(rooms).ingest
        old, new = (
            next(each for each in found.transports if each.transport == "http")
            for found in (before, after)
        )
        assert new.accepted_requests - old.accepted_requests == 1
        assert new.refused_requests - old.refused_requests == 1
        assert sum(after.refusals.values()) - sum(before.refusals.values()) == 1
        assert not after.needs_token
        assert not after.is_tls


def test_a_running_round_is_in_the_status(tmp_path: Path) -> None:
    """While tasks write and while tables are committed: how much, and how much of it is done."""
    seen: list[DoingStatus | None] = []
    with open_rooms(tmp_path, has_lake=True) as rooms:
        lake = rooms.lake
        assert lake is not None
        send(rooms, "a", "b")

        def look_and_run(work: Sequence[Work]) -> list[WrittenSlice]:
            seen.append(_doing(rooms))
            return run_inline(work)

        def append() -> None:
            lake._appender = Appender.open(
                LogSource(rooms.log, tmp_path),
                lake.catalog,
                lake.config,
                run=look_and_run,
                clock=SystemClock(),
                rand=lake._rand,
                report=lake._set_activity,
            )
            lake._appender.append()

        assert _doing(rooms) is None
        lake.run(append)
        assert _doing(rooms) is None
        with lake._maintenance._reporting("logs", "compacting files"):
            seen.append(_doing(rooms))
    writing, joining = seen
    assert writing is not None
    assert (writing.work, writing.step, writing.task_count) == ("round", "writing files", 1)
    assert writing.log_bytes > 0
    assert writing.done_bytes == 0
    assert joining is not None
    assert (joining.work, joining.table) == ("maintenance", "logs")


def _doing(rooms: NodeContext) -> DoingStatus | None:
    status = status_of(rooms).lake
    assert status is not None
    return status.doing

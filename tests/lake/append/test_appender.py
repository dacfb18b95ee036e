"""The appender commits every offset once, in snapshots that are prefixes of the log, whatever step
fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyiceberg.catalog import Catalog

from frazil import tracing
from frazil.errors import Conflict, Fenced, Overloaded
from frazil.lake.append import appender as appending
from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.commit import commit, next_offsets
from frazil.lake.append.log_source import LogSource
from frazil.lake.append.task import WrittenSlice
from frazil.lake.catalog.catalog import open_catalog
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.settings import LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs, span, spans
from tests.lake.inline_tasks import run_inline

CLOCK = SystemClock()
SMALL = LakeConfig(slice_bytes=20_000)
"""Small slices, so that a round has several tasks."""
ROWS = 3
"""Rows of a request."""


@dataclass(slots=True)
class World:
    """A log and a catalog."""

    log: Log
    folder: Path
    catalog: Catalog
    count: int = 0

    def open(self, run: Any = run_inline, *, is_disk_short: bool = False) -> Appender:
        return Appender.open(
            LogSource(self.log, self.folder),
            self.catalog,
            SMALL,
            run=run,
            clock=CLOCK,
            rand=random.SystemRandom(),
            is_disk_short=lambda: is_disk_short,
        )

    def add(self, count: int) -> None:
        """Append requests of log records, and as many of spans."""
        for number in range(self.count, self.count + count):
            named = [log_record(number, event_name=f"{number}-{row}") for row in range(ROWS)]
            self._put("otlp_logs", logs(*named))
            self._put("otlp_spans", spans(*(span(number) for _ in range(ROWS))))
        self.count += count

    def add_own(self) -> None:
        """Append a request that carries a node's own spans."""
        self._put("otlp_spans", spans(span(1)), ((tracing.OWN_HEADER, None),))

    def add_bad(self) -> None:
        """Append a request in which one record cannot become a row."""
        bad = log_record(self.count, trace_id=b"short")
        self._put("otlp_logs", logs(log_record(self.count), bad))
        self.count += 1

    def _put(self, topic: str, body: bytes, headers: tuple[tuple[str, None], ...] = ()) -> None:
        record = Record(
            offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body, headers=headers
        )
        self.log.append(topic, append_of_records([record])).result()

    def rows(self, table: str = "logs", snapshot_id: int | None = None) -> list[tuple[int, int]]:
        """Return (offset, row) of every row of a table, read by PyIceberg."""
        scan = self.catalog.load_table(f"frazil.{table}").scan(snapshot_id=snapshot_id)
        found = scan.select("_offset", "_row").to_arrow().to_pydict()
        return sorted(zip(found["_offset"], found["_row"], strict=True))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    from frazil.disk import RealDisk

    folder = tmp_path / "data"
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog = open_catalog(SMALL, folder)
        yield World(log=log, folder=folder, catalog=catalog)
        catalog.close()


def expected(count: int) -> list[tuple[int, int]]:
    return [(offset, row) for offset in range(count) for row in range(ROWS)]


def test_each_round_continues_where_the_last_ended(world: World) -> None:
    """Without new records there is no commit. The lake watermark is published."""
    appender = world.open()
    assert appender.append() == []
    world.add(200)
    done = appender.append()
    assert [(d.table, c.begin, c.end, d.row_count) for d in done for c in d.covered] == [
        ("logs", 0, 200, 600),
        ("spans", 0, 200, 600),
    ]
    world.add(30)
    assert [(c.begin, c.end) for d in appender.append() for c in d.covered] == [
        (200, 230),
        (200, 230),
    ]
    assert appender.append() == []
    assert world.rows("logs") == world.rows("spans") == expected(230)
    assert world.log._retention.published("otlp_logs", 0) == 230


class RecordingTracer:
    """A tracer, and its only span: keeps the attributes of spans that are not dropped."""

    def __init__(self) -> None:
        self.exported: list[dict[str, tracing.Fact]] = []

    def span(self, name: str, parent: str | None, facts: dict[str, tracing.Fact]) -> tracing.Span:
        return self

    def ids(self) -> None:
        return None

    def flush(self, within_s: float) -> None:
        return

    def note(self, **facts: tracing.Fact) -> None:
        self.exported.append(facts)

    def drop(self) -> None:
        self.exported.pop()

    def end(self) -> None:
        return

    def __enter__(self) -> tracing.Span:
        return self

    def __exit__(self, *_: object) -> None:
        return


def test_a_round_of_only_own_spans_is_not_traced(world: World) -> None:
    """Even if they were stored before a restart: the records carry the mark."""
    world.add_own()
    tracer = RecordingTracer()
    tracing.set_tracer(tracer)
    try:
        appender = world.open()
        assert [done.row_count for done in appender.append()] == [1]
        assert tracer.exported == []
        world.add_own()
        world.add(1)
        appender.append()
    finally:
        tracing.set_tracer(None)
    assert tracer.exported == [{"commits": 2, "offsets": 3, "rows": 1 + 2 * ROWS}]


def test_every_snapshot_is_a_prefix_of_the_log(world: World) -> None:
    """Its summary has the offsets."""
    appender = world.open()
    for count in (10, 1, 40):
        world.add(count)
        appender.append()
    table = world.catalog.load_table("frazil.logs")
    ends = [10, 11, 51]
    assert len(table.metadata.snapshots) == len(ends)
    for snapshot, end in zip(table.metadata.snapshots, ends, strict=True):
        assert world.rows("logs", snapshot.snapshot_id) == expected(end)
        assert snapshot.summary is not None
        assert snapshot.summary["frazil.offsets"] == f'{{"otlp_logs": {{"0": {end}}}}}'


class Broken(Exception):
    """The error that a test injects."""


def break_run_before(_: Sequence[Work]) -> list[WrittenSlice]:
    raise Broken


def break_run_between(work: Sequence[Work]) -> list[WrittenSlice]:
    run_inline(work[: len(work) // 2])
    raise Broken


def break_run_after(work: Sequence[Work]) -> list[WrittenSlice]:
    run_inline(work)
    raise Broken


@pytest.mark.parametrize("run", [break_run_before, break_run_between, break_run_after])
def test_files_of_failed_tasks_are_not_committed(world: World, run: Any) -> None:
    """The next round repeats them."""
    world.add(100)
    with pytest.raises(Broken):
        world.open(run).append()
    assert world.rows("logs") == []
    world.open().append()
    assert world.rows("logs") == world.rows("spans") == expected(100)


@pytest.mark.parametrize("broken_at", [1, 2, 3])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_round_that_fails_at_a_commit_is_repeated_exactly_once(
    world: World, monkeypatch: pytest.MonkeyPatch, broken_at: int, is_done: bool
) -> None:
    """For dead letters, logs and spans: before the commit, or after it without a response."""
    world.add(40)
    world.add_bad()
    world.add(40)
    calls = []

    def breaking(*given: Any, **more: Any) -> int:
        calls.append(1)
        if len(calls) != broken_at:
            return commit(*given, **more)
        if is_done:
            commit(*given, **more)
        raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(appending, "commit", breaking)
        with pytest.raises(Broken):
            world.open().append()
    world.add_bad()
    again = world.open()
    while again.append():
        pass
    rows = [place for place in expected(81) if place[0] != 40]
    assert world.rows("logs") == sorted([*rows, (40, 0), (81, 0)])
    assert world.rows("spans") == expected(80)
    assert world.rows("dead_letters") == [(40, 1), (81, 1)]


def test_a_later_appender_fences_the_earlier_one(world: World) -> None:
    """Even if the earlier one has already planned and written."""
    world.add(10)

    def overtaken(work: Sequence[Work]) -> list[WrittenSlice]:
        written = run_inline(work)
        world.open().append()
        return written

    with pytest.raises(Fenced):
        world.open(overtaken).append()
    assert world.rows("logs") == expected(10)


def test_an_idle_appender_detects_that_it_is_fenced(world: World) -> None:
    earlier = world.open()
    later = world.open()
    world.add(10)
    later.append()
    with pytest.raises(Fenced, match="was taken over by appender"):
        earlier.append()


def test_append_all_ends_while_records_keep_coming(world: World) -> None:
    world.add(10)

    def run_meanwhile(work: Sequence[Work]) -> list[WrittenSlice]:
        world.add(10)
        return run_inline(work)

    appender = world.open(run_meanwhile)
    assert [done.row_count for new in appender.append_all() for done in new] == [10 * ROWS] * 2
    assert len(list(appender.append_all())) == 1
    assert world.rows("logs") == expected(20)


@pytest.mark.parametrize("is_disk_short", [False, True])
def test_rounds_are_small_while_the_disk_is_short(
    world: World, is_disk_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lets the log give back space before the next one needs some."""
    monkeypatch.setattr(f"{__name__}.SMALL", structs.replace(SMALL, flush_bytes=20_000))
    world.add(300)
    rounds = list(world.open(is_disk_short=is_disk_short).append_all())
    assert (len(rounds) > 1) == is_disk_short
    assert world.rows() == expected(300)


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_full_disk_gets_back_files_that_were_not_committed(
    world: World, is_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each attempt would leave its files, and take the space that the next one needs."""

    def commit_on_a_full_disk(*arguments: Any, **more: Any) -> int:
        if is_committed:
            commit(*arguments, **more)
        raise Overloaded("the disk is full")

    def file_count() -> int:
        return len(list((world.folder / "lake/warehouse/frazil/logs").rglob("*.parquet")))

    world.add(3)
    appender = world.open()
    with monkeypatch.context() as patch:
        patch.setattr(appending, "commit", commit_on_a_full_disk)
        with pytest.raises(Overloaded):
            appender.append()
    assert (file_count() > 0) == is_committed
    appender.append()
    assert world.rows() == expected(3)


def test_incomplete_task_results_are_a_conflict(world: World) -> None:
    world.add(200)
    with pytest.raises(Conflict, match="was planned"):
        world.open(lambda work: run_inline(work)[:-1]).append()
    assert world.rows("logs") == []


def test_the_next_offset_is_read_from_the_table(world: World) -> None:
    """After the log and the appender are opened again."""
    world.add(20)
    world.open().append()
    world.add(20)
    world.open().append()
    assert world.rows("logs") == expected(40)
    assert next_offsets(world.catalog.load_table("frazil.logs")) == {("otlp_logs", 0): 40}

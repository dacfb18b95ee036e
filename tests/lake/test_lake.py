"""The lake's thread runs rounds automatically, on request, and again after a failure."""

from __future__ import annotations

import importlib.util
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from frazil.disk import DiskReserve, RealDisk
from frazil.errors import Overloaded, Unavailable
from frazil.lake import Lake, LakeView, TablesView
from frazil.lake import lake as filling
from frazil.lake.append.commit import next_offsets
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.job_queue import JOBS_MAX
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, SystemClock, TopicPartition
from frazil.settings import LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.lake.inline_tasks import run_inline

CLOCK = SystemClock()
WAIT_S = 120
NEVER_MS = 10**9
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@contextmanager
def opened(
    folder: Path, *, auto_flush: bool = False, reserve_bytes: int = 0, **settings: Any
) -> Iterator[tuple[Log, Lake]]:
    config = LakeConfig(driver_memory_bytes=512 * MiB, **settings)
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        log.create_topic("otlp_logs", TopicConfig(awaits_lake=True))
        with Lake.open(
            log,
            folder,
            config,
            clock=CLOCK,
            rand=random.SystemRandom(),
            auto_flush=auto_flush,
            reserve=DiskReserve(RealDisk(folder), reserve_bytes),
        ) as lake:
            yield log, lake


def add(log: Log) -> None:
    body = logs(log_record(1), log_record(2))
    record = Record(offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body)
    log.append("otlp_logs", append_of_records([record])).result()


def held(folder: Path) -> int:
    """The next offset of the table."""
    catalog = open_catalog(LakeConfig(), folder)
    try:
        return next_offsets(catalog.load_table("frazil.logs")).get(
            TopicPartition("otlp_logs", 0), 0
        )
    finally:
        catalog.close()


def eventually(is_true: Any) -> None:
    end = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_rounds_run_by_age_by_size_and_at_close(tmp_path: Path) -> None:
    """The lake watermark is published."""
    with opened(tmp_path, auto_flush=True, flush_age_ms=1) as (log, lake):
        add(log)
        eventually(lambda: log._retention.published("otlp_logs", 0) == 1)
        assert held(tmp_path) == 1
        lake.config = LakeConfig(flush_bytes=1)
        add(log)
        eventually(lambda: held(tmp_path) == 2)
        lake.config = LakeConfig()
        add(log)
        assert lake.trouble is None
    assert held(tmp_path) == 3


def test_rounds_run_only_on_request_without_auto_flush(tmp_path: Path) -> None:
    """Spark is not started before; a flush commits all that is durable."""
    with opened(tmp_path) as (log, lake):
        assert lake.flush() == []
        assert lake.session.pid is None
        for _ in range(3):
            add(log)
        (done,) = lake.flush()
        assert (done.table, done.row_count, done.dead_count) == ("logs", 6, 0)
        assert done.to_dict()["covered"] == (
            {"topic": "otlp_logs", "partition": 0, "begin": 0, "end": 3},
        )
        assert lake.flush() == []
        add(log)
    assert held(tmp_path) == 3


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[LakeView]:
    """The views that were refreshed. None is refreshed by time."""
    monkeypatch.setattr(filling, "VIEW_MS", NEVER_MS)
    monkeypatch.setattr(filling, "run_on", lambda _: run_inline)
    found: list[LakeView] = []
    refresh = LakeView.refresh

    def counting(view: LakeView) -> TablesView:
        found.append(view)
        return refresh(view)

    monkeypatch.setattr(LakeView, "refresh", counting)
    return found


def test_a_flush_refreshes_the_view_once(tmp_path: Path, seen: list[LakeView]) -> None:
    """Queries see its rows when it returns."""
    with opened(tmp_path) as (log, lake):
        add(log)
        (done,) = lake.flush()
        assert done.row_count == 2
        assert seen == [lake.view]
        assert lake.view.held("logs", "otlp_logs", 0) == 1


def test_a_full_disk_makes_a_round_due(
    tmp_path: Path, seen: list[LakeView], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few records wait: what is in the tables can be removed elsewhere."""
    assert seen == []
    monkeypatch.setattr(filling, "FULL_AGE_MS", 1)
    more_than_any_disk = 1 << 60
    with opened(
        tmp_path, auto_flush=True, flush_age_ms=NEVER_MS, reserve_bytes=more_than_any_disk
    ) as (log, _):
        add(log)
        eventually(lambda: log._retention.published("otlp_logs", 0) == 1)


def test_the_view_is_not_refreshed_without_queries(
    tmp_path: Path, seen: list[LakeView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "VIEW_MS", 1)
    rand = random.SystemRandom()
    with Log.open(RealDisk(tmp_path), clock=CLOCK, rand=rand) as log:
        log.create_topic("otlp_logs", TopicConfig(awaits_lake=True))
        with Lake(
            LogSource(log, tmp_path),
            tmp_path,
            LakeConfig(),
            clock=CLOCK,
            rand=rand,
            auto_flush=False,
            has_queries=False,
        ).start() as lake:
            add(log)
            assert len(lake.flush()) == 1
            lake.run(lambda: None)
    assert held(tmp_path) == 1
    assert seen == []


def test_a_failed_round_is_reported_and_retried(tmp_path: Path) -> None:
    """The log keeps everything until then."""
    (tmp_path / "lake").write_text("in the way")
    with opened(tmp_path, auto_flush=True, flush_age_ms=60_000) as (log, lake):
        add(log)
        eventually(lambda: lake.trouble is not None)
        assert lake.trouble is not None
        assert "lake" in lake.trouble
        (tmp_path / "lake").unlink()
        eventually(lambda: lake.trouble is None)


def test_jobs_run_one_after_the_other(tmp_path: Path) -> None:
    """Callers get the result or the error; above the limit they are refused."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(WAIT_S)
        return threading.current_thread().name

    def wrong() -> None:
        raise ValueError("wrong")

    answers: list[str] = []
    with opened(tmp_path) as (_, lake):
        askers = [
            threading.Thread(target=lambda: answers.append(lake.run(slow)))
            for _ in range(JOBS_MAX + 1)
        ]
        askers[0].start()
        assert begun.wait(WAIT_S)
        for asker in askers[1:]:
            asker.start()
        eventually(lambda: lake._jobs._jobs.full())
        with pytest.raises(Overloaded, match="waiting jobs"):
            lake.run(slow)
        go_on.set()
        for asker in askers:
            asker.join()
        assert answers == ["frazil-lake"] * len(askers)
        with pytest.raises(ValueError, match="wrong"):
            lake.run(wrong)
    with pytest.raises(Unavailable, match="closed"):
        lake.run(slow)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with (
        pytest.raises(Unavailable, match=r"needs pyiceberg.*pip install 'frazil\[lake\]'"),
        opened(tmp_path),
    ):
        raise AssertionError("there is nothing to open")


def test_close_abandons_a_job_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later jobs are refused."""
    monkeypatch.setattr(filling, "CLOSE_S", 0.05)
    begun, over = threading.Event(), threading.Event()

    def job() -> bool:
        begun.set()
        return over.wait(WAIT_S)

    with opened(tmp_path) as (_, lake):
        asking = threading.Thread(target=lake.run, args=(job,))
        asking.start()
        assert begun.wait(WAIT_S)
        lake.close()
        with pytest.raises(Unavailable, match="closed"):
            lake.run(job)
        over.set()
        asking.join()

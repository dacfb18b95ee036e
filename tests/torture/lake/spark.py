"""The appender on real Spark: the process of a task, the JVM and the driver are killed.

A planned slice carries its fault, so that it strikes in the process in which Spark runs the task.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import SystemRandom
from unittest import mock

from frazil.disk import RealDisk
from frazil.errors import FrazilError
from frazil.lake import Lake
from frazil.lake.append.log_source import LogSource
from frazil.lake.append.slice import Slice, SliceLocation, SourcePartition
from frazil.log import Log, Record
from frazil.model import MiB, Rand, SystemClock
from tests.torture.checker import Verdict
from tests.torture.lake import life
from tests.torture.lake.folder import Folder, met, wait
from tests.torture.lake.life import GAVE_UP_CODE, Job, report

WAIT_S_MAX = 60
"""Maximum wait for a task to start, and of a task to be killed."""
SPARK_SETTINGS = {"driver_memory_bytes": 512 * MiB, "slice_bytes": 4096}
STEPS = ("worker_killed", "worker_killed_once", "jvm_killed", "jvm_killed_between", "driver_killed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A slice whose first reader is killed, or waits while another process is killed."""

    origin: SliceLocation
    broken: Path
    step: str

    def read(self) -> Iterator[list[Record]]:
        for count, batch in enumerate(self.origin.read()):
            yield batch
            if count == 0 and self._is_first():
                if self.step.startswith("worker_killed"):
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(WAIT_S_MAX)

    def _is_first(self) -> bool:
        try:
            os.close(os.open(self.broken, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def on_spark(folder: Folder, step: str, _: Rand) -> tuple[Verdict, Counter[str]]:
    """Run a life on Spark with a fault, a check, a life without faults, and a check."""
    verdict = Verdict()
    # By default, a task of a local Spark has one attempt.
    master = "local[2,3]" if step == "worker_killed_once" else "local[2]"
    settings = {
        name: getattr(folder.config, name) for name in ("catalog", "warehouse")
    } | SPARK_SETTINGS
    job = folder.job(step, is_loaded=False)
    job = replace(job, config=type(job.config)(**settings, master=master))
    process = start(job)
    if step == "driver_killed":
        _await(job)
        process.kill()
    code = wait(process)
    if code != (-signal.SIGKILL if step == "driver_killed" else 0):
        verdict.add("untrue", f"the life on Spark ended with {code}: {met(job)}")
    is_broken = job.broken.exists()
    verdict.merge(folder.judge(is_whole=code == 0), "at once:")
    folder.go_on(verdict)
    return verdict, Counter({step: int(is_broken), "lives": 2})


def start(job: Job) -> BaseProcess:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=live, args=(job,))
    process.start()
    return process


def live(job: Job) -> None:
    """Append all of the log to the tables, retry after failures, and exit."""
    logging.disable(logging.CRITICAL)
    code = GAVE_UP_CODE
    try:
        code = _live(job)
    except BaseException:  # noqa: BLE001 - the process must end here and report why
        report(job.met, traceback.format_exc())
    finally:
        os._exit(code)


def _live(job: Job) -> int:
    clock, rand = SystemClock(), SystemRandom()
    with (
        Log.open(RealDisk(job.folder), life.LOG_CONFIG, clock=clock, rand=rand) as log,
        Lake.open(log, job.folder, job.config, clock=clock, rand=rand, auto_flush=False) as lake,
    ):
        for topic, config in life.TOPIC_CONFIG.items():
            log.create_topic(topic, config)
        life.send(log, job)
        if job.step == "jvm_killed_between":
            _flush(lake, job)
            life.send(log, replace(job, numbers=_more(job.numbers)))
            _kill_spark(lake)
            job.broken.touch()
        else:
            _mark(job)
        if job.step == "jvm_killed":
            threading.Thread(target=_kill_in_job, args=(lake, job)).start()
        _flush(lake, job)
    return 0


def _more(numbers: range) -> range:
    """Return as many request numbers that no other life uses."""
    return range(numbers.start + 5000, numbers.stop + 5000)


def _flush(lake: Lake, job: Job) -> None:
    for _ in range(life.FAILURES_MAX):
        try:
            lake.flush()
        except FrazilError as error:
            report(job.met, f"{type(error).__name__} {error}")
        else:
            return
    raise AssertionError(f"{life.FAILURES_MAX} flushes failed")


def _mark(job: Job) -> None:
    original = LogSource.plan

    def plan(
        self: LogSource, source: SourcePartition, begin: int, end: int | None, bytes_max: int
    ) -> list[Slice]:
        return [
            replace(each, origin=Marked(origin=each.origin, broken=job.broken, step=job.step))
            for each in original(self, source, begin, end, bytes_max)
        ]

    mock.patch.object(LogSource, "plan", plan).start()


def _await(job: Job) -> None:
    """Wait until a task has reached the fault."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not job.broken.exists():
        assert time.monotonic() < deadline, "no task has begun"
        time.sleep(0.01)


def _kill_in_job(lake: Lake, job: Job) -> None:
    _await(job)
    _kill_spark(lake)


def _kill_spark(lake: Lake) -> None:
    pid = lake.session.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

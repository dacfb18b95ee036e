"""A process with a log under load and an appender, until it ends or is killed.

It reports the step that was reached and its errors in files outside the data folder.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import SystemRandom

from pyiceberg.catalog import Catalog

from frazil.disk import RealDisk
from frazil.errors import Fenced, FrazilError
from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.log_source import LogSource
from frazil.lake.append.task import WrittenSlice, run_slice
from frazil.lake.catalog.catalog import open_catalog
from frazil.log import Log, exit_process
from frazil.model import SystemClock
from frazil.settings import LakeConfig, LogConfig, TopicConfig
from tests.torture.lake import load

LOG_CONFIG = LogConfig(
    segment_bytes_max=2 * 1024,
    batch_bytes_max=64 * 1024,
    disk_bytes_max=64 * 1024 * 1024,
    index_interval_bytes=512,
)
"""Small, so that retention has something to remove and an append has several tasks."""
TOPIC_CONFIG = {
    topic: TopicConfig(partitions=count, awaits_lake=True, retention_ms=0)
    for topic, count in load.PARTITIONS.items()
}
PAUSE_S = 0.02
"""Pause between two requests, so that every append has some."""
FENCED_CODE, GAVE_UP_CODE, SETUP_CODE = 4, 5, 6
FAILURES_MAX = 8
"""A life gives up after this many errors."""


class FastClock(SystemClock):
    """A clock that sleeps a tenth of the requested time."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of a life, and the fault to inject."""

    folder: Path
    scratch: Path
    """Folder for its reports."""
    config: LakeConfig
    numbers: range
    """Requests to send."""
    step: str = ""
    """Step at which the fault strikes; empty for none."""
    at: int = 1
    """Strike when the step is reached for the n-th time."""
    act: str = ""
    """Fault to inject instead of the step's own."""
    mount: Path = Path()
    """The disk to fill."""
    mutant: str = ""
    is_loaded: bool = True
    """Send while the appender runs; otherwise before it starts."""

    @property
    def ledger(self) -> Path:
        return self.scratch / "ledger"

    @property
    def broken(self) -> Path:
        """Exists once the step was reached."""
        return self.scratch / "broken"

    @property
    def damage(self) -> Path:
        """Path and position of the flipped bit."""
        return self.scratch / "damage"

    @property
    def met(self) -> Path:
        """Errors, one per line."""
        return self.scratch / "met"


opened: Log | None = None
"""The log of this process."""


def start(job: Job) -> BaseProcess:
    """Start a life in a new process of the fork server, which has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.lake.warm"])
    process = context.Process(target=live, args=(job,))
    process.start()
    return process


def live(job: Job) -> None:
    """Run the life and exit, with 0 when the tables hold all requests."""
    from tests.torture.lake.breaks import install
    from tests.torture.lake.mutants import mutate

    logging.disable(logging.CRITICAL)
    code = SETUP_CODE
    try:
        if job.mutant:
            mutate(job.mutant)
        if job.step:
            install(job)
        code = 1
        code = _live(job)
    except BaseException:  # noqa: BLE001 - the process must end here and report why
        report(job.met, traceback.format_exc())
    finally:
        os._exit(code)


def _live(job: Job) -> int:
    global opened
    opened = log = Log.open(
        RealDisk(job.folder),
        LOG_CONFIG,
        clock=SystemClock(),
        rand=SystemRandom(),
        holder="a torture test",
        fatal=exit_process,
    )
    for topic, config in TOPIC_CONFIG.items():
        log.create_topic(topic, config)
    sending = threading.Thread(target=send, args=(log, job), daemon=True)
    sending.start()
    if not job.is_loaded:
        sending.join()
    failures = 0
    while failures < FAILURES_MAX:
        try:
            _append_all(log, job, sending)
        except Fenced as error:
            report(job.met, f"Fenced {error}")
            return FENCED_CODE
        except FrazilError as error:
            report(job.met, f"{type(error).__name__} {error}")
            failures += 1
        else:
            log.close()
            return 0
    return GAVE_UP_CODE


def _append_all(log: Log, job: Job, sending: threading.Thread) -> None:
    """Append until the sender has ended and nothing is left."""
    catalog = open_catalog(job.config, job.folder)
    try:
        appender = open_appender(log, catalog, job)
        is_last = False
        while not is_last:
            is_last = not sending.is_alive()
            while appender.append():
                log.maintain()
    finally:
        catalog.close()


def open_appender(log: Log, catalog: Catalog, job: Job) -> Appender:
    return Appender.open(
        LogSource(log, job.folder),
        catalog,
        job.config,
        run=lambda work: run_inline(log, work),
        clock=FastClock(),
        rand=SystemRandom(),
    )


def run_inline(log: Log, work: Sequence[Work]) -> list[WrittenSlice]:
    """Run tasks one after the other. Maintain the log first, as a node does all the time."""
    log.maintain()
    return [run_slice(*task) for task in work]


def send(log: Log, job: Job) -> None:
    ledger = os.open(job.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        for number in job.numbers:
            load.append(log, number, ledger)
            if job.is_loaded:
                SystemClock().sleep(PAUSE_S)
    except FrazilError as error:
        report(job.met, f"sender: {type(error).__name__} {error}")
    finally:
        os.close(ledger)


def report(path: Path, text: str) -> None:
    """Append a line that survives a kill of this process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, " | ".join(text.splitlines()).encode() + b"\n")
    os.close(descriptor)

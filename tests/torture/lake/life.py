"""A process with a log under load and an appender, until it ends or is ended.

What it has to say goes into files outside the data folder: which step it broke at, and what it met.
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
from frazil.lake.config import LakeConfig
from frazil.log import Log, LogConfig, TopicConfig, exit_process
from frazil.model import SystemClock
from tests.torture.lake import load

LOG_CONFIG = LogConfig(
    segment_bytes_max=2 * 1024,
    batch_bytes_max=64 * 1024,
    disk_bytes_max=64 * 1024 * 1024,
    index_interval_bytes=512,
)
"""Small, so that retention has something to remove and a round has several tasks."""
TOPIC_CONFIG = {
    topic: TopicConfig(partitions=count, awaits_lake=True, retention_ms=0)
    for topic, count in load.PARTITIONS.items()
}
PAUSE_S = 0.02
"""Between two requests, so that some come in every round."""
FENCED_CODE, GAVE_UP_CODE = 4, 5
FAILURES_MAX = 8
"""A life that meets so many errors is not going to meet anything else."""


class Impatient(SystemClock):
    """Waits a tenth of what it is asked to."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a life is to do, and how it is to be broken."""

    folder: Path
    scratch: Path
    """Where it says what it met."""
    config: LakeConfig
    numbers: range
    """Requests to be sent."""
    step: str = ""
    """Where to break; nowhere without."""
    at: int = 1
    """Break there for the so-manieth time."""
    act: str = ""
    """What to do there, if not the usual."""
    mount: Path = Path()
    """The disk that can get full."""
    mutant: str = ""
    is_loaded: bool = True
    """Requests come while the appender works; otherwise they come before."""

    @property
    def ledger(self) -> Path:
        return self.scratch / "ledger"

    @property
    def broken(self) -> Path:
        """There once the step was reached."""
        return self.scratch / "broken"

    @property
    def damage(self) -> Path:
        """Where in the log a bit was flipped."""
        return self.scratch / "damage"

    @property
    def met(self) -> Path:
        """Errors, one a line."""
        return self.scratch / "met"


opened: Log | None = None
"""The log of this life."""


def start(job: Job) -> BaseProcess:
    """Begin a life in a process of its own, which no thread of this one can harm."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.lake.warm"])
    process = context.Process(target=live, args=(job,))
    process.start()
    return process


def live(job: Job) -> None:
    """The life. It ends with 0 when all is in the tables."""
    from tests.torture.lake.breaks import install
    from tests.torture.lake.mutants import mutate

    logging.disable(logging.CRITICAL)
    code = 1
    try:
        if job.mutant:
            mutate(job.mutant)
        if job.step:
            install(job)
        code = _live(job)
    except BaseException:  # noqa: BLE001 - the process must end here, and say why
        say(job.met, traceback.format_exc())
    finally:
        os._exit(code)


def _live(job: Job) -> int:
    global opened
    opened = log = Log.open(
        RealDisk(job.folder),
        LOG_CONFIG,
        clock=SystemClock(),
        rand=SystemRandom(),
        holder="the torturer",
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
            say(job.met, f"Fenced {error}")
            return FENCED_CODE
        except FrazilError as error:
            say(job.met, f"{type(error).__name__} {error}")
            failures += 1
        else:
            log.close()
            return 0
    return GAVE_UP_CODE


def _append_all(log: Log, job: Job, sending: threading.Thread) -> None:
    """Rounds until nothing is sent any more and nothing is left."""
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
        run=lambda work: run_here(log, work),
        clock=Impatient(),
        rand=SystemRandom(),
    )


def run_here(log: Log, work: Sequence[Work]) -> list[WrittenSlice]:
    """Tasks, one after the other. The log is tidied up meanwhile, as a node does all the time."""
    log.maintain()
    return [run_slice(*each) for each in work]


def send(log: Log, job: Job) -> None:
    ledger = os.open(job.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        for number in job.numbers:
            load.append(log, number, ledger)
            if job.is_loaded:
                SystemClock().sleep(PAUSE_S)
    except FrazilError as error:
        say(job.met, f"sender: {type(error).__name__} {error}")
    finally:
        os.close(ledger)


def say(path: Path, text: str) -> None:
    """A line that stays when the process is killed the next moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, " | ".join(text.splitlines()).encode() + b"\n")
    os.close(descriptor)

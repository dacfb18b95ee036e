"""Faults from outside the process: it is stopped, power is cut, a disk is full, the log is damaged.

Disks are mounted images, which need root. Elsewhere these steps are left out.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.lake import life
from tests.torture.lake.breaks import BALLAST, flip
from tests.torture.lake.folder import Folder, met, wait
from tests.torture.lake.life import FENCED_CODE, GAVE_UP_CODE, Job
from tests.torture.log.powercut import EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH, Machine

STOP_S_MAX = 60
POWER_STEPS = (
    *("half_written", "file_synced", "tasks_done", "dead_committed", "half_manifest"),
    *("manifests_written", "metadata_written", "in_swap", "swapped", "committed", "published"),
)

Outcome = tuple[Verdict, Counter[str]]


def zombie(folder: Folder, step: str, rand: Rand) -> Outcome:
    """Stop an appender, let another one take over and finish, then continue the first."""
    verdict = Verdict()
    job = folder.job(step, rand.randint(1, 3), is_loaded=False)
    first = life.start(job)
    if not stopped(first, job):
        return folder.finished(first, job, step)
    # The second one has a copy of the log, as on another machine.
    other = folder.data.with_name("other")
    shutil.copytree(folder.data, other)
    second = folder.job(folder=other)
    if (code := wait(life.start(second))) != 0:
        verdict.add("untrue", f"the second appender ended with {code}: {met(second)}")
    assert first.pid is not None
    os.kill(first.pid, signal.SIGCONT)
    if (code := wait(first)) != FENCED_CODE:
        verdict.add("untrue", f"the first appender ended with {code}: {met(job)}")
    shutil.rmtree(folder.data)
    other.rename(folder.data)
    verdict.merge(folder.judge(is_whole=True), "at once:")
    folder.go_on(verdict)
    return verdict, Counter({step: 1, "lives": 3})


def damaged(folder: Folder, step: str, _: Rand) -> Outcome:
    """Check that the appender reports a damaged log, and loses nothing once it is repaired."""
    verdict = Verdict()
    job = folder.job(step, is_loaded=False)
    code = wait(life.start(job))
    if code != GAVE_UP_CODE or "Corrupt" not in met(job):
        verdict.add("untrue", f"with a damaged log the life ended with {code}: {met(job)}")
    path, position = job.damage.read_text().rsplit(maxsplit=1)
    flip(Path(path), int(position))
    job.damage.unlink()
    verdict.merge(folder.judge(is_whole=False), "at once:")
    folder.go_on(verdict)
    return verdict, Counter({step: 1, "lives": 2})


def full(folder: Folder, step: str, rand: Rand) -> Outcome:
    """Check that a full disk gives retryable errors, and that work continues with free space."""
    verdict = Verdict()
    with small_disk() as machine:
        where = "catalog.db" if step.startswith("catalog") else "warehouse"
        moved = folder.on(machine.mount_point, where)
        job = moved.job(step, rand.randint(1, 2), mount=machine.mount_point)
        code = wait(life.start(job))
        is_broken = job.broken.exists()
        if code not in ({0, GAVE_UP_CODE} if is_broken else {0}):
            verdict.add("untrue", f"with a full disk the life ended with {code}: {met(job)}")
        for line in met(job).splitlines() if is_broken else ():
            if not line.startswith(("Overloaded", "Unavailable", "Unresolved")):
                verdict.add("untrue", f"wrong error for a full disk: {line}")
        (machine.mount_point / BALLAST).unlink(missing_ok=True)
        verdict.merge(moved.judge(is_whole=False), "at once:")
        moved.go_on(verdict)
    return verdict, Counter({step: int(is_broken), "lives": 2})


def power_cut(folder: Folder, step: str, rand: Rand) -> Outcome:
    """Cut the power of the disk that holds everything, at three random steps."""
    verdict, fired = Verdict(), Counter[str]()
    with small_disk() as machine:
        moved = folder.on(machine.mount_point, "data", "catalog.db", "warehouse")
        for at in rand.sample(POWER_STEPS, 3):
            job = moved.job(at, rand.randint(1, 3), act="stop")
            process = life.start(job)
            if not stopped(process, job):
                verdict.merge(moved.finished(process, job, at)[0], "no power cut:")
                continue
            cut_power(machine, process)
            fired[step] += 1
            verdict.merge(moved.judge(is_whole=False), f"at {at}:")
        moved.go_on(verdict)
    return verdict, fired


def cut_power(machine: Machine, process: BaseProcess) -> None:
    """Drop what is not durable, kill the process, and mount the image again."""
    descriptor = os.open(machine.mount_point, os.O_RDONLY)
    fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(descriptor)
    process.kill()
    process.join()
    machine.unmount()
    machine.mount()


@contextmanager
def small_disk() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        machine.make()
        try:
            yield machine
        finally:
            machine.unmount()


def stopped(process: BaseProcess, job: Job) -> bool:
    """Wait until a life is stopped at its step. Return False when it ended before."""
    deadline = time.monotonic() + STOP_S_MAX
    while time.monotonic() < deadline:
        if process.exitcode is not None:
            return False
        if job.broken.exists() and _state(process) == "T":
            return True
        time.sleep(0.005)
    raise AssertionError(f"the life did not stop within {STOP_S_MAX} s")


def _state(process: BaseProcess) -> str:
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
    except FileNotFoundError:
        return ""
    return text.rpartition(")")[2].split()[0]

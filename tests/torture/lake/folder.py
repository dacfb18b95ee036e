"""Folder: one data folder with its tables, and its expected contents."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from frazil.settings import LakeConfig
from tests.torture.checker import Verdict
from tests.torture.lake import life
from tests.torture.lake.judge import LogContents, judge
from tests.torture.lake.life import Job

LIFE_S_MAX = 300
REQUESTS = 48
"""Requests per life."""
SLICE_BYTES = 4096
"""Small, so that an append has several tasks."""


class Folder:
    """A data folder with its catalog and warehouse. Owned by the test process."""

    def __init__(self, scratch: Path, mutant: str = "") -> None:
        self.scratch = scratch
        self.contents = LogContents()
        self._next = 0
        self._mutant = mutant
        self._moved: dict[str, Path] = {}
        self.start_over()

    def start_over(self) -> None:
        """Delete all data and the ledger."""
        self.contents = LogContents()
        for name in ("data", "warehouse", "catalog"):
            shutil.rmtree(self.scratch / name, ignore_errors=True)
        (self.scratch / "ledger").write_bytes(b"")

    def on(self, mount: Path, *names: str) -> Folder:
        """Return a new folder with the named parts on another disk."""
        inner = self.scratch / f"on-{self._next}"
        inner.mkdir()
        made = Folder(inner, self._mutant)
        made._moved = {name: mount / name for name in names}
        made._next = self._next = self._next + 10_000
        return made

    @property
    def data(self) -> Path:
        return self._moved.get("data", self.scratch / "data")

    @property
    def config(self) -> LakeConfig:
        catalog = self._moved.get("catalog.db", self.scratch / "catalog" / "catalog.db")
        warehouse = self._moved.get("warehouse", self.scratch / "warehouse")
        return LakeConfig(
            slice_bytes=SLICE_BYTES,
            catalog={"uri": f"sqlite:///{catalog}"},
            warehouse=str(warehouse),
        )

    def job(self, step: str = "", at: int = 1, count: int = REQUESTS, **more: Any) -> Job:
        numbers = range(self._next, self._next + count)
        self._next += count
        for name in ("broken", "met"):
            (self.scratch / name).unlink(missing_ok=True)
        given: dict[str, Any] = {"folder": self.data, **more}
        return Job(
            scratch=self.scratch,
            config=self.config,
            numbers=numbers,
            step=step,
            at=at,
            mutant=self._mutant,
            **given,
        )

    def judge(self, *, is_whole: bool) -> Verdict:
        return judge(
            self.contents, self.data, self.scratch / "ledger", self.config, is_whole=is_whole
        )

    def finished(self, process: BaseProcess, job: Job, step: str) -> tuple[Verdict, Counter[str]]:
        """Wait for the end of a life, check the tables, and run a life without faults."""
        verdict = Verdict()
        code = wait(process)
        is_broken = job.broken.exists()
        if code not in ({0, -signal.SIGKILL, life.FENCED_CODE} if is_broken else {0}):
            verdict.add("untrue", f"the life ended with {code}: {met(job)}")
        verdict.merge(self.judge(is_whole=code == 0), "at once:")
        self.go_on(verdict)
        return verdict, Counter({step: int(is_broken), "lives": 2})

    def go_on(self, verdict: Verdict) -> None:
        """Run a life without faults, and check that the tables are complete."""
        if not verdict.is_valid:
            return
        job = self.job(count=12)
        code = wait(life.start(job))
        if code != 0:
            verdict.add("untrue", f"the next life ended with {code}: {met(job)}")
        verdict.merge(self.judge(is_whole=True), "afterwards:")


def wait(process: BaseProcess) -> int:
    """Wait for a life to end, and return its exit code."""
    process.join(LIFE_S_MAX)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"a life did not end within {LIFE_S_MAX} s")
    assert process.exitcode != life.SETUP_CODE, "a step or mutant no longer fits the lake's code"
    return process.exitcode


def met(job: Job) -> str:
    """Return the errors that a life reported."""
    return job.met.read_text() if job.met.exists() else "nothing"

"""JobQueue: jobs that other threads give to the lake's thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from frazil.errors import Overloaded, Unavailable

JOBS_MAX = 16
"""Jobs that may wait."""

T = TypeVar("T")


class JobQueue:
    """Any thread submits; the lake's thread runs."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue(JOBS_MAX)
        self._closed = threading.Event()
        self._reason = "the lake is closed"
        self._submitting = threading.Lock()
        """Every job submitted before the close is run."""

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def submit(self, job: Callable[[], T], finish: Callable[[], None]) -> Future[T]:
        """Queue a job. `finish` runs after it, before the future is resolved."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 # top of loop: the future carries it
                finish()
                future.set_exception(error)
            else:
                finish()
                future.set_result(result)

        with self._submitting:
            if self.is_closed:
                raise Unavailable(self._reason)
            try:
                self._jobs.put_nowait(run)
            except queue.Full:
                raise Overloaded(
                    f"the lake has {JOBS_MAX} waiting jobs, which is the limit; retry later"
                ) from None
        return future

    def run_next(self, timeout_s: float) -> None:
        """Run the next job, if one comes in time."""
        with suppress(queue.Empty):
            self._jobs.get(timeout=timeout_s)()

    def run_rest(self) -> None:
        """Run all jobs that wait."""
        while not self._jobs.empty():
            self._jobs.get()()

    def close(self, reason: str | None = None) -> None:
        """Refuse further jobs."""
        with self._submitting:
            self._reason = reason or self._reason
            self._closed.set()

"""Writer: the one thread that appends. Group commit: many batches, one fdatasync, many answers.

While one group is being synced the next one gathers, so groups grow with the load and a lone
batch never waits for company. A batch is answered after the sync that covers it, never earlier.
A failed sync is final: whoever waits is told that the outcome is unknown, nobody is acknowledged
after, and the process ends; the next one reads what the disk really has.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from frazil.disk import Budget, is_full
from frazil.errors import FrazilError, Overloaded, Unavailable, Unresolved
from frazil.log.append import Append, Appended
from frazil.log.config import LogConfig
from frazil.log.partition import Partition
from frazil.metrics import Counter, Gauge, Histogram
from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXIT_CODE = 74
"""What a process ends with when the disk fails under it (EX_IOERR)."""
FRAME_OVERHEAD_BYTES = 32

QUEUED = Gauge("frazil.log.queue.bytes", "Bytes waiting for the writer.")
QUEUE_REFUSED = Counter("frazil.log.queue.refusals", "Appends refused because the queue is full.")
DISK_REFUSED = Counter("frazil.log.disk_full.refusals", "Appends refused because the disk is full.")
SYNC_MS = Histogram("frazil.log.sync.ms", "Time one group's fdatasync takes.")


def exit_process(error: BaseException) -> None:
    """End at once: nothing may be acknowledged after a failed sync."""
    logger.critical("storage failed, ending the process", extra={"reason": str(error)})
    logging.shutdown()
    os._exit(EXIT_CODE)


@dataclass(slots=True)
class _Waiting:
    partition: Partition
    append: Append
    answer: Future[Appended]


@dataclass(slots=True)
class _Errand:
    run: Callable[[], object]
    answer: Future[Any]


@dataclass(slots=True)
class _Group:
    """What one step does with one partition."""

    waiting: list[_Waiting] = field(default_factory=list)
    staged: list[tuple[Future[Appended], Appended]] = field(default_factory=list)


class Writer:
    """`submit` and `run` may be called from any thread; `step` by one owner, usually `start`'s."""

    def __init__(
        self,
        config: LogConfig,
        clock: Clock,
        budget: Budget,
        *,
        fatal: Callable[[BaseException], None],
        reclaim: Callable[[], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._budget = budget
        self._fatal = fatal
        self._reclaim = reclaim
        self._changed = threading.Condition()
        self._queue: deque[_Waiting | _Errand] = deque()
        self._queue_bytes = 0
        self._in_hand: list[_Waiting | _Errand] = []
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._published = threading.Condition()

    def submit(self, partition: Partition, append: Append) -> Future[Appended]:
        """Queue a batch. The future answers once it is durable, or says why it is not stored."""
        length = len(append.payload) + FRAME_OVERHEAD_BYTES
        answer: Future[Appended] = Future()
        with self._changed:
            self._check_open()
            self._budget.admit(self._queue_bytes + length)
            if (
                self._queue_bytes + length > self._config.queue_bytes_max
                or len(self._queue) >= self._config.queue_count_max
            ):
                QUEUE_REFUSED.add()
                raise Overloaded(
                    f"{len(self._queue)} batches of {self._queue_bytes} bytes wait for the disk; "
                    "send again later",
                    retry_after_ms=100,
                )
            self._queue.append(_Waiting(partition, append, answer))
            self._queue_bytes += length
            self._changed.notify()
        return answer

    def run(self, errand: Callable[[], T]) -> Future[T]:
        """Have the writer do something that only the owner of the partitions may do."""
        answer: Future[T] = Future()
        with self._changed:
            self._check_open()
            self._queue.append(_Errand(errand, answer))
            self._changed.notify()
        return answer

    def _check_open(self) -> None:
        if self._failure is not None:
            raise Unavailable(f"the log has stopped: {self._failure}")
        if self._is_closing:
            raise Unavailable("the log is closing")

    def step(self) -> int:
        """Append what waits, sync once, answer everybody. Returns how many were taken."""
        taken = self._take()
        self._in_hand = [item for item in taken if item.answer.set_running_or_notify_cancel()]
        groups: dict[Partition, _Group] = {}
        try:
            for item in self._in_hand:
                if isinstance(item, _Errand):
                    self._do(item)
                else:
                    groups.setdefault(item.partition, _Group()).waiting.append(item)
            self._commit(groups)
            if self._budget.is_tight:
                self._make_room()
        except OSError as error:
            self._fail(error)
        return len(taken)

    def _commit(self, groups: dict[Partition, _Group]) -> None:
        """Stage, write, sync, publish, answer: in this order, for every partition at once."""
        written = [p for p, group in groups.items() if self._write(p, group)]
        if written:
            begin_ns = self._clock.monotonic_ns()
            for partition in written:
                partition.sync()
            SYNC_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
            for partition in written:
                partition.publish()
            with self._published:
                self._published.notify_all()
        for group in groups.values():
            for answer, appended in group.staged:
                if not answer.done():
                    answer.set_result(appended)

    def _write(self, partition: Partition, group: _Group) -> bool:
        """Stage and write one partition's group. False when there is nothing to sync."""
        try:
            if partition.needs_roll:
                partition.roll()
            for waiting in group.waiting:
                try:
                    appended = partition.stage(waiting.append)
                except FrazilError as error:
                    waiting.answer.set_exception(error)
                else:
                    group.staged.append((waiting.answer, appended))
            if not partition.is_staged:
                return False
            partition.write()
            return True
        except OSError as error:
            if not is_full(error):
                raise
        durable = partition.durable_watermark
        if partition.is_staged:
            partition.abort()
        DISK_REFUSED.add(len(group.waiting))
        # A repetition of something durable is still answered; one of this lost group is not.
        group.staged = [(a, r) for a, r in group.staged if r.end_offset <= durable]
        kept = {id(answer) for answer, _ in group.staged}
        for waiting in group.waiting:
            if id(waiting.answer) not in kept and not waiting.answer.done():
                waiting.answer.set_exception(
                    Overloaded("the disk is full; free room on it and send again")
                )
        return False

    def _do(self, errand: _Errand) -> None:
        try:
            errand.answer.set_result(errand.run())
        except OSError as error:
            errand.answer.set_exception(error)
            if not is_full(error):
                raise
        except FrazilError as error:
            errand.answer.set_exception(error)

    def _make_room(self) -> None:
        """Remove what may go. Where that cannot be done now, appends are refused instead."""
        try:
            self._reclaim()
        except OSError as error:
            if not is_full(error):
                raise
        except FrazilError as error:
            logger.error("no room could be made", extra={"reason": str(error)})

    def _take(self) -> list[_Waiting | _Errand]:
        """The next group: as much as waits, up to a bound."""
        with self._changed:
            while not self._queue and not self._is_closing and self._thread is not None:
                self._changed.wait()
            taken: list[_Waiting | _Errand] = []
            size = 0
            while self._queue and size < self._config.group_bytes_max:
                item = self._queue.popleft()
                taken.append(item)
                if isinstance(item, _Waiting):
                    size += len(item.append.payload) + FRAME_OVERHEAD_BYTES
            self._queue_bytes -= size
            QUEUED.set(self._queue_bytes)
            return taken

    def _fail(self, error: BaseException) -> None:
        """Storage failed: tell everybody the truth, then end."""
        with self._changed:
            self._failure = error
            dropped, self._queue = self._queue, deque()
        for item in self._in_hand:
            if not item.answer.done():
                item.answer.set_exception(
                    Unresolved(f"the log stopped before this was safe: {error}")
                )
        for item in dropped:
            if item.answer.set_running_or_notify_cancel():
                item.answer.set_exception(Unavailable(f"the log has stopped: {error}"))
        self._fatal(error)

    def wait_for(self, partition: Partition, offset: int, timeout_s: float) -> bool:
        """Wait until something at or above `offset` can be read. False on time-out."""
        with self._published:
            return self._published.wait_for(
                lambda: partition.view.durable_watermark > offset, timeout_s
            )

    @property
    def is_threaded(self) -> bool:
        return self._thread is not None

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def start(self) -> None:
        assert self._thread is None
        self._thread = threading.Thread(target=self._loop, name="frazil-log-writer", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        try:
            while self._failure is None:
                if self.step() == 0 and self._is_closing:
                    return
        except BaseException as error:  # noqa: BLE001 # top of loop: nobody may wait for a dead writer
            self._fail(error)

    def close(self) -> None:
        """Finish what waits, then stop. Nothing is taken in any more."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        while self._failure is None and self.step():
            pass

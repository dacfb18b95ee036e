"""Writer: the one thread that appends. Group commit: many batches, one fdatasync.

While one group is synced the next one gathers, so groups grow with the load and a single batch
never waits for others. A batch is acknowledged after the sync that covers it, never before. A
failed sync is final: waiting clients get `Unresolved`, nothing is acknowledged afterwards, and the
process ends; the next one reads what is on disk.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from frazil.disk import FRAME_HEADER_BYTES, Budget, is_full
from frazil.errors import FrazilError, Overloaded, Unavailable, Unresolved
from frazil.log.append import Append, AppendResult
from frazil.log.partition import Partition
from frazil.log.readable import ReadablePartition
from frazil.metrics import Counter, Gauge, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.settings import LogConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXIT_CODE = 74
"""Exit code after the disk failed (EX_IOERR)."""

QUEUED = Gauge("frazil.log.queue.bytes", "Bytes waiting for the writer.")
QUEUE_REFUSED = Counter("frazil.log.queue.refusals", "Appends refused because the queue is full.")
DISK_REFUSED = Counter("frazil.log.disk_full.refusals", "Appends refused because the disk is full.")
SYNC_MS = Histogram("frazil.log.sync.ms", "Time one group's fdatasync takes.")


def exit_process(error: BaseException) -> None:
    """End the process at once: nothing may be acknowledged after a failed sync."""
    logger.critical("storage failed, ending the process", extra={"reason": str(error)})
    logging.shutdown()
    os._exit(EXIT_CODE)


class _Pending:
    """One queued batch. Completed once, with its offsets or an error."""

    __slots__ = ("append", "appended", "error", "future", "is_done", "partition")

    def __init__(
        self, partition: Partition, append: Append, future: Future[AppendResult] | None
    ) -> None:
        self.partition = partition
        self.append = append
        self.future = future
        self.appended: AppendResult | None = None
        self.error: BaseException | None = None
        self.is_done = False

    def complete(self) -> None:
        self.is_done = True
        if self.future is not None:
            self.future.set_result(self.result)

    def fail(self, error: BaseException) -> None:
        self.is_done = True
        self.error = error
        if self.future is not None:
            self.future.set_exception(error)

    @property
    def result(self) -> AppendResult:
        assert self.appended is not None
        return self.appended


@dataclass(slots=True)
class _Task:
    run: Callable[[], object]
    future: Future[Any]

    @property
    def is_done(self) -> bool:
        return self.future.done()

    def fail(self, error: BaseException) -> None:
        self.future.set_exception(error)


def _length(item: _Pending | _Task) -> int:
    return item.append.size_bytes + FRAME_HEADER_BYTES if isinstance(item, _Pending) else 0


class Writer:
    """`submit`, `commit` and `run` may be called from any thread.

    The partitions belong to the holder of `_turn`: the writer thread, or a producer in `commit`.
    Without a thread, `step` belongs to the single caller.
    """

    def __init__(
        self,
        config: LogConfig,
        clock: Clock,
        budget: Budget,
        *,
        fatal: Callable[[BaseException], None],
        reclaim: Callable[[], object],
    ) -> None:
        self._config = config
        self._clock = clock
        self._budget = budget
        self._fatal = fatal
        self._reclaim = reclaim
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._queue: deque[_Pending | _Task] = deque()
        self._queue_bytes = 0
        self._in_progress: list[_Pending | _Task] = []
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._published = threading.Condition()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._is_silent = False
        """Whether the holder of the turn wakes readers by itself."""

    def listen(self, on_commit: Callable[[], None]) -> None:
        """Call a function after every group commit. It must neither wait nor fail."""
        with self._changed:
            self._listeners = (*self._listeners, on_commit)

    def unlisten(self, on_commit: Callable[[], None]) -> None:
        """Stop calling a function."""
        with self._changed:
            self._listeners = tuple(each for each in self._listeners if each != on_commit)

    def submit(
        self, partition: Partition, append: Append, *, frees_space: bool = False
    ) -> Future[AppendResult]:
        """Queue a batch. The future resolves once it is durable, or fails if it is not stored.

        With `frees_space` the budget does not apply: the batch lets other data be removed.
        """
        future: Future[AppendResult] = Future()
        self._queue_up(_Pending(partition, append, future), frees_space=frees_space)
        return future

    def _queue_up(self, pending: _Pending, *, frees_space: bool = False) -> None:
        length = pending.append.size_bytes + FRAME_HEADER_BYTES
        with self._changed:
            self._check_open()
            if not frees_space:
                self._budget.admit(self._queue_bytes + length)
            if (
                self._queue_bytes + length > self._config.queue_bytes_max
                or len(self._queue) >= self._config.queue_count_max
            ):
                QUEUE_REFUSED.add()
                raise Overloaded(
                    f"{len(self._queue)} batches of {self._queue_bytes} bytes wait for the disk; "
                    "retry later",
                    retry_after_ms=100,
                )
            self._queue.append(pending)
            self._queue_bytes += length
            if pending.future is not None:
                self._changed.notify()

    def commit(self, partition: Partition, append: Append) -> AppendResult:
        """Append a batch and wait for it.

        If no other thread is writing, the caller runs the step for the whole queue: this saves a
        single producer two thread switches.
        """
        if not self._turn.acquire(blocking=False):
            return self.submit(partition, append).result()
        own = self._commit_in_turn(partition, append)
        if own.error is not None:
            raise own.error
        return own.result

    def commit_if_idle(
        self, partition: Partition, append: Append, *, frees_space: bool = False
    ) -> Future[AppendResult] | None:
        """Run the step for a batch if nothing else is to be written; otherwise return None.
        `frees_space` as in `submit`.

        Readers are not told: call `wake_readers` when the batch is acknowledged.
        """
        if self._queue or not self._turn.acquire(blocking=False):
            return None
        self._is_silent = True
        own = self._commit_in_turn(partition, append, frees_space=frees_space)
        done: Future[AppendResult] = Future()
        if own.error is not None:
            done.set_exception(own.error)
        else:
            done.set_result(own.result)
        return done

    def _commit_in_turn(
        self, partition: Partition, append: Append, *, frees_space: bool = False
    ) -> _Pending:
        """Append a batch while holding the turn, which is passed on afterwards."""
        own = _Pending(partition, append, None)
        try:
            self._queue_up(own, frees_space=frees_space)
            while not own.is_done:
                self._step_guarded()
        finally:
            self._is_silent = False
            self._pass_turn()
        return own

    def wake_readers(self) -> None:
        """Tell those who wait for new records, and the listeners."""
        with self._published:
            self._published.notify_all()
        for on_commit in self._listeners:
            on_commit()

    def run(self, task: Callable[[], T]) -> Future[T]:
        """Run a function on the writer thread, which owns the partitions."""
        future: Future[T] = Future()
        with self._changed:
            self._check_open()
            self._queue.append(_Task(task, future))
            self._changed.notify()
        return future

    def _check_open(self) -> None:
        if self._failure is not None:
            raise Unavailable(f"the log has stopped: {self._failure}")
        if self._is_closing:
            raise Unavailable("the log is closing")

    def step(self) -> int:
        """Append queued batches, sync once, complete them. Returns how many were taken."""
        taken = self._take()
        self._in_progress = [
            item
            for item in taken
            if item.future is None or item.future.set_running_or_notify_cancel()
        ]
        groups: dict[Partition, list[_Pending]] = {}
        try:
            for item in self._in_progress:
                if isinstance(item, _Task):
                    self._run_task(item)
                else:
                    groups.setdefault(item.partition, []).append(item)
            self._commit(groups)
            self._uncount(taken)
            self._budget.check_space_if_due()
            if self._budget.is_tight:
                self._free_space()
        except OSError as error:
            self._fail(error)
        return len(taken)

    def _commit(self, groups: dict[Partition, list[_Pending]]) -> None:
        """Stage, write, sync, publish, complete: in this order, for all partitions together."""
        written = [p for p, group in groups.items() if self._write(p, group)]
        if written:
            begin_ns = self._clock.monotonic_ns()
            for partition in written:
                partition.sync()
            SYNC_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
            for partition in written:
                partition.publish()
        for group in groups.values():
            for pending in group:
                if not pending.is_done:
                    pending.complete()
        if written and not self._is_silent:  # acknowledgements do not wait for readers
            self.wake_readers()

    def _write(self, partition: Partition, group: list[_Pending]) -> bool:
        """Stage and write one partition's group. Returns False if there is nothing to sync."""
        durable = partition.durable_watermark
        try:
            if partition.needs_roll and not partition.is_deleted:
                partition.roll()
            for pending in group:
                try:
                    pending.appended = partition.stage(pending.append)
                except FrazilError as error:
                    pending.fail(error)
            if not partition.is_staged:
                return False
            partition.write()
            return True
        except OSError as error:
            if not is_full(error):
                raise
        if partition.is_staged:
            partition.abort()
        DISK_REFUSED.add(len(group))
        self._budget.note_full()
        for pending in group:
            # A duplicate of a durable batch succeeds; one of a batch in this lost group fails.
            repeats = pending.appended is not None and pending.result.end_offset <= durable
            if not pending.is_done and not repeats:
                pending.fail(Overloaded("the disk is full; free disk space, then retry"))
        return False

    def _run_task(self, task: _Task) -> None:
        try:
            task.future.set_result(task.run())
        except OSError as error:
            task.future.set_exception(error)
            if not is_full(error):
                raise
        except FrazilError as error:
            task.future.set_exception(error)

    def _free_space(self) -> None:
        """Remove released segments. If that is impossible now, appends are refused instead."""
        try:
            self._reclaim()
        except OSError as error:
            if not is_full(error):
                raise
        except FrazilError as error:
            logger.error("cannot free space", extra={"reason": str(error)})

    def _take(self) -> list[_Pending | _Task]:
        """Take the next group from the queue, up to `group_bytes_max`."""
        taken: list[_Pending | _Task] = []
        if not self._queue:
            return taken
        with self._changed:
            size = 0
            while self._queue and size < self._config.group_bytes_max:
                item = self._queue.popleft()
                taken.append(item)
                size += _length(item)
        return taken

    def _uncount(self, taken: list[_Pending | _Task]) -> None:
        """Uncount taken batches. They counted as queued until now, so that the budget is not
        spent twice."""
        with self._changed:
            self._queue_bytes -= sum(map(_length, taken))
            QUEUED.set(self._queue_bytes)

    def _fail(self, error: BaseException) -> None:
        """Storage failed: complete all waiting batches with an error, then end."""
        self._stop(error)
        self._fatal(error)

    def _stop(self, error: BaseException) -> None:
        """Stop writing for good. Batches in progress become `Unresolved`, queued ones
        `Unavailable`."""
        with self._changed:
            self._failure = error
            dropped, self._queue = self._queue, deque()
            self._changed.notify_all()
        for item in self._in_progress:
            if not item.is_done:
                item.fail(Unresolved(f"the log stopped before the batch was durable: {error}"))
        for pending in dropped:
            if pending.future is None or pending.future.set_running_or_notify_cancel():
                pending.fail(Unavailable(f"the log has stopped: {error}"))

    def wait_for(self, offsets: Sequence[tuple[ReadablePartition, int]], timeout_s: float) -> bool:
        """Wait until one of the partitions has an offset at or above its own. Returns False on
        timeout."""

        def is_any_readable() -> bool:
            return any(p.view.last_stable_offset > offset for p, offset in offsets)

        with self._published:
            return self._published.wait_for(is_any_readable, timeout_s)

    @property
    def is_threaded(self) -> bool:
        return self._thread is not None

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    @property
    def failure(self) -> BaseException | None:
        """Why writing stopped; None while it works."""
        return self._failure

    @property
    def queue_count(self) -> int:
        """Batches waiting to be written."""
        return len(self._queue)

    @property
    def queue_bytes(self) -> int:
        return self._queue_bytes

    def start(self) -> None:
        assert self._thread is None
        self._thread = threading.Thread(target=self._loop, name="frazil-log-writer", daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while self._wait_for_work():
            with self._turn:
                self._step_guarded()

    def _wait_for_work(self) -> bool:
        """Return False once there will be no more work."""
        with self._changed:
            while not self._queue and not self._is_closing and self._failure is None:
                self._changed.wait()
            return bool(self._queue) and self._failure is None

    def _step_guarded(self) -> None:
        """Run one step while holding the turn."""
        try:
            if self._failure is None:
                self.step()
        except KeyboardInterrupt as error:
            # Ctrl-C in the middle of a step. The log stops; what was acknowledged is on disk.
            self._stop(error)
            raise
        except BaseException as error:  # noqa: BLE001 # top of loop: no client may wait for a dead writer
            self._fail(error)

    def _pass_turn(self) -> None:
        """Release the turn. The writer thread takes batches queued meanwhile."""
        self._turn.release()
        if self._queue:
            with self._changed:
                self._changed.notify()

    def close(self) -> None:
        """Finish queued batches, then stop. New ones are refused."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._turn:  # a producer may be in the middle of a step
            while self._failure is None and self.step():
                pass

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
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from frazil.disk import FRAME_HEADER_BYTES, Budget, is_full
from frazil.errors import FrazilError, Overloaded, Unavailable, Unresolved
from frazil.log.append import Append, AppendResult
from frazil.log.config import LogConfig
from frazil.log.partition import Partition
from frazil.metrics import Counter, Gauge, Histogram
from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXIT_CODE = 74
"""What a process ends with when the disk fails under it (EX_IOERR)."""

QUEUED = Gauge("frazil.log.queue.bytes", "Bytes waiting for the writer.")
QUEUE_REFUSED = Counter("frazil.log.queue.refusals", "Appends refused because the queue is full.")
DISK_REFUSED = Counter("frazil.log.disk_full.refusals", "Appends refused because the disk is full.")
SYNC_MS = Histogram("frazil.log.sync.ms", "Time one group's fdatasync takes.")


def exit_process(error: BaseException) -> None:
    """End at once: nothing may be acknowledged after a failed sync."""
    logger.critical("storage failed, ending the process", extra={"reason": str(error)})
    logging.shutdown()
    os._exit(EXIT_CODE)


class _Waiting:
    """One batch on its way. Answered once: with its place, or with the reason why it has none."""

    __slots__ = ("answer", "append", "appended", "error", "is_answered", "partition")

    def __init__(
        self, partition: Partition, append: Append, answer: Future[AppendResult] | None
    ) -> None:
        self.partition = partition
        self.append = append
        self.answer = answer
        self.appended: AppendResult | None = None
        self.error: BaseException | None = None
        self.is_answered = False

    def accept(self) -> None:
        self.is_answered = True
        if self.answer is not None:
            self.answer.set_result(self.place)

    def refuse(self, error: BaseException) -> None:
        self.is_answered = True
        self.error = error
        if self.answer is not None:
            self.answer.set_exception(error)

    @property
    def place(self) -> AppendResult:
        assert self.appended is not None
        return self.appended


@dataclass(slots=True)
class _Errand:
    run: Callable[[], object]
    answer: Future[Any]

    @property
    def is_answered(self) -> bool:
        return self.answer.done()

    def refuse(self, error: BaseException) -> None:
        self.answer.set_exception(error)


def _length(item: _Waiting | _Errand) -> int:
    return item.append.size_bytes + FRAME_HEADER_BYTES if isinstance(item, _Waiting) else 0


class Writer:
    """`submit`, `commit` and `run` may be called from any thread.

    The partitions belong to whoever holds `_turn`: the writer thread, or a producer in `commit`.
    Without a thread, `step` belongs to the one caller there is.
    """

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
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._queue: deque[_Waiting | _Errand] = deque()
        self._queue_bytes = 0
        self._in_hand: list[_Waiting | _Errand] = []
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._published = threading.Condition()

    def submit(
        self, partition: Partition, append: Append, *, frees_room: bool = False
    ) -> Future[AppendResult]:
        """Queue a batch. The future answers once it is durable, or says why it is not stored.

        One that lets other data go is not held up by the budget: a full log would stay full.
        """
        answer: Future[AppendResult] = Future()
        self._queue_up(_Waiting(partition, append, answer), frees_room=frees_room)
        return answer

    def _queue_up(self, waiting: _Waiting, *, frees_room: bool = False) -> None:
        length = waiting.append.size_bytes + FRAME_HEADER_BYTES
        with self._changed:
            self._check_open()
            if not frees_room:
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
            self._queue.append(waiting)
            self._queue_bytes += length
            if waiting.answer is not None:
                self._changed.notify()

    def commit(self, partition: Partition, append: Append) -> AppendResult:
        """Append a batch and wait for it.

        Whoever finds nobody writing does the step, for all who wait in front of it: a lone
        producer is spared two changes of threads.
        """
        if not self._turn.acquire(blocking=False):
            return self.submit(partition, append).result()
        own = _Waiting(partition, append, None)
        try:
            self._queue_up(own)
            while not own.is_answered:
                self._step_guarded()
        finally:
            self._pass_turn()
        if own.error is not None:
            raise own.error
        return own.place

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
        self._in_hand = [
            item
            for item in taken
            if item.answer is None or item.answer.set_running_or_notify_cancel()
        ]
        groups: dict[Partition, list[_Waiting]] = {}
        try:
            for item in self._in_hand:
                if isinstance(item, _Errand):
                    self._do(item)
                else:
                    groups.setdefault(item.partition, []).append(item)
            self._commit(groups)
            self._count_out(taken)
            if self._budget.is_tight:
                self._make_room()
        except OSError as error:
            self._fail(error)
        return len(taken)

    def _commit(self, groups: dict[Partition, list[_Waiting]]) -> None:
        """Stage, write, sync, publish, answer: in this order, for every partition at once."""
        written = [p for p, group in groups.items() if self._write(p, group)]
        if written:
            begin_ns = self._clock.monotonic_ns()
            for partition in written:
                partition.sync()
            took_ms = (self._clock.monotonic_ns() - begin_ns) / NS_PER_MS
            for partition in written:
                partition.publish()
            SYNC_MS.record(took_ms)
            with self._published:
                self._published.notify_all()
        for group in groups.values():
            for waiting in group:
                if not waiting.is_answered:
                    waiting.accept()

    def _write(self, partition: Partition, group: list[_Waiting]) -> bool:
        """Stage and write one partition's group. False when there is nothing to sync."""
        durable = partition.durable_watermark
        try:
            if partition.needs_roll:
                partition.roll()
            for waiting in group:
                try:
                    waiting.appended = partition.stage(waiting.append)
                except FrazilError as error:
                    waiting.refuse(error)
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
        for waiting in group:
            # A repetition of something durable is still answered; one of this lost group is not.
            repeats = waiting.appended is not None and waiting.place.end_offset <= durable
            if not waiting.is_answered and not repeats:
                waiting.refuse(Overloaded("the disk is full; free room on it and send again"))
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
        taken: list[_Waiting | _Errand] = []
        if not self._queue:
            return taken
        with self._changed:
            size = 0
            while self._queue and size < self._config.group_bytes_max:
                item = self._queue.popleft()
                taken.append(item)
                size += _length(item)
        return taken

    def _count_out(self, taken: list[_Waiting | _Errand]) -> None:
        """Until here they counted as waiting, so that the budget is not promised twice."""
        with self._changed:
            self._queue_bytes -= sum(map(_length, taken))
            QUEUED.set(self._queue_bytes)

    def _fail(self, error: BaseException) -> None:
        """Storage failed: tell everybody the truth, then end."""
        self._stop(error)
        self._fatal(error)

    def _stop(self, error: BaseException) -> None:
        """Never write again: whoever waits is told what is known of his batch."""
        with self._changed:
            self._failure = error
            dropped, self._queue = self._queue, deque()
            self._changed.notify_all()
        for item in self._in_hand:
            if not item.is_answered:
                item.refuse(Unresolved(f"the log stopped before this was safe: {error}"))
        for waiting in dropped:
            if waiting.answer is None or waiting.answer.set_running_or_notify_cancel():
                waiting.refuse(Unavailable(f"the log has stopped: {error}"))

    def wait_for(self, places: Sequence[tuple[Partition, int]], timeout_s: float) -> bool:
        """Wait until in one of the places something at or above its offset can be read. False on
        time-out."""

        def is_any_there() -> bool:
            return any(p.view.durable_watermark > offset for p, offset in places)

        with self._published:
            return self._published.wait_for(is_any_there, timeout_s)

    @property
    def is_threaded(self) -> bool:
        return self._thread is not None

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is written any more; None while it is."""
        return self._failure

    @property
    def queue_count(self) -> int:
        """Batches that wait to be written."""
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
        """False once there will never be any."""
        with self._changed:
            while not self._queue and not self._is_closing and self._failure is None:
                self._changed.wait()
            return bool(self._queue) and self._failure is None

    def _step_guarded(self) -> None:
        """One step with the turn in hand."""
        try:
            if self._failure is None:
                self.step()
        except KeyboardInterrupt as error:
            # Somebody stops the program in the middle of a step. The log stops with it, and the
            # next start finds on disk what was acknowledged.
            self._stop(error)
            raise
        except BaseException as error:  # noqa: BLE001 # top of loop: nobody may wait for a dead writer
            self._fail(error)

    def _pass_turn(self) -> None:
        """Give the turn back. What has come meanwhile is the writer thread's."""
        self._turn.release()
        if self._queue:
            with self._changed:
                self._changed.notify()

    def close(self) -> None:
        """Finish what waits, then stop. Nothing is taken in any more."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._turn:  # a producer may be in the middle of a step
            while self._failure is None and self.step():
                pass

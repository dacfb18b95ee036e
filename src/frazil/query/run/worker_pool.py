"""Runs queries in worker processes, which have their own memory and can be killed.

WorkerPool   the workers, started on demand and kept while they are in use
Worker       one process, seen from the engine
WorkerRun    a query that runs in one
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from frazil.errors import FrazilError, TooLarge, Unavailable
from frazil.metrics import Counter
from frazil.model import MiB
from frazil.processes import has_ended, kill_process
from frazil.query.run.fork_client import FORK_SERVER, WorkerProcess
from frazil.query.run.protocol import (
    MEMORY_SLACK,
    Failed,
    Finished,
    Gone,
    Message,
    Planned,
    PlanRequest,
    RunRequest,
    Started,
    WorkerHello,
    WorkerReady,
    receive,
    send,
)
from frazil.query.run.references import RowRefs
from frazil.query.run.timers import Timer, Timers
from frazil.settings import QueryConfig

logger = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.05
"""How often the memory of busy workers is checked; they cannot grow by much in between."""
KEPT_BYTES_MAX = 128 * MiB
"""A worker that has grown by more than this is not used again: allocators rarely give memory
back."""
PAGE_BYTES = 4096
EXIT_S_MAX = 0.1
"""The kernel kills the workers of a fork server a moment before it reports that one as ended."""

KILLED = Counter("frazil.query.processes.killed", "Worker processes killed, by reason.")


class WorkerPool:
    """Thread-safe. A worker belongs to the thread that took it until it is given back."""

    def __init__(
        self, schemas: Mapping[str, pa.Schema], config: QueryConfig, timers: Timers
    ) -> None:
        self._hello = WorkerHello({name: s.serialize().to_pybytes() for name, s in schemas.items()})
        self._idle_s = config.apart_idle_ms / 1000
        self._memory_bytes_max = config.workers_memory_bytes_max
        self._timers = timers
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._is_closed = False
        self._is_watching = False
        FORK_SERVER.acquire()

    def take(self) -> Worker:
        """Return an idle worker, or start one."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise Unavailable("the query engine is closed")
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = Worker(FORK_SERVER.fork(), self._hello, self._timers)
                worker.is_early = not FORK_SERVER.is_loaded
            worker.wake()
            if worker.is_usable:
                with self._lock:
                    self._busy.add(worker)
                    self._begin_watch()
                return worker
            worker.close()  # killed while idle: the next query gets another one

    def give_back(self, worker: Worker) -> None:
        """Keep a worker that has finished its query for the next one; end any other."""
        is_outdated = worker.is_early and FORK_SERVER.is_loaded
        is_large = worker.grown_bytes > KEPT_BYTES_MAX
        with self._lock:
            self._busy.discard(worker)
            if worker.is_usable and not (is_outdated or is_large or self._is_closed):
                worker.rest(self._idle_s, lambda: self._dismiss(worker))
                self._idle.append(worker)
                return
        worker.close()

    def _dismiss(self, worker: Worker) -> None:
        """End a worker that was idle for long, unless it is the last one."""
        with self._lock:
            if worker not in self._idle or len(self._idle) == 1:
                return
            self._idle.remove(worker)
        worker.close()

    def _begin_watch(self) -> None:
        """Look at the memory of busy workers from time to time, while there are any."""
        if not self._is_watching:
            self._is_watching = True
            self._timers.later(WATCH_INTERVAL_S, self._watch)

    def _watch(self) -> None:
        """Kill busy workers that use too much memory, alone or together."""
        with self._lock:
            self._is_watching = False
            busy = list(self._busy)
            if busy:
                self._begin_watch()
        sizes = {worker: worker.grown_bytes for worker in busy}
        for worker, size in sizes.items():
            if size > MEMORY_SLACK * worker.memory_bytes_max:
                error = TooLarge(
                    f"the query needs more memory than query.memory_bytes_max "
                    f"({worker.memory_bytes_max} bytes) allows; read fewer rows, join or collect "
                    "less"
                )
                worker.kill(error, reason="memory")
        if sum(sizes.values()) > self._memory_bytes_max:
            error = TooLarge(
                f"all queries together need more memory than query.workers_memory_bytes_max "
                f"({self._memory_bytes_max} bytes), and this one most of it; run it again later, "
                "or read fewer rows"
            )
            max(sizes, key=lambda worker: sizes[worker]).kill(error, reason="memory")

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self._is_closed = True
            workers = [*self._idle, *self._busy]
            self._idle = []
        for worker in workers:
            worker.kill(Unavailable("the query engine is closed"), reason="stopped")
            if worker not in self._busy:
                worker.close()
        FORK_SERVER.release()


class Worker:
    """One process. Owned by the thread that took it; any thread may `cancel` or `kill` it."""

    def __init__(self, forked: WorkerProcess, hello: WorkerHello, timers: Timers) -> None:
        self._timers = timers
        self._channel = forked.channel
        self._process = forked.descriptor
        self._server = forked.server
        self._pid = forked.pid
        self._closing = threading.Lock()
        self._error: FrazilError | None = None
        self._is_ready = False
        self._is_idle = True
        self._timer: Timer | None = None
        self._base_bytes: int | None = None
        self._bytes_max: int | None = None
        self._byte_count = 0
        self.is_early = False
        """Whether it has memory of its own for what later workers share."""
        self.memory_bytes_max = 0
        """The memory limit of the running query."""
        with suppress(OSError):  # a worker that has exited already is noticed in `receive`
            send(forked.channel, hello)

    @property
    def is_usable(self) -> bool:
        """Whether it can take another query."""
        return self._is_idle and self._error is None and not self._has_exited()

    def _has_exited(self) -> bool:
        return self._process < 0 or has_ended(self._process)

    def wake(self) -> None:
        """Cancel the idle timeout."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def rest(self, idle_s: float, work: Callable[[], None]) -> None:
        """Call `work` after `idle_s` seconds, unless it is woken before."""
        self._timer = self._timers.later(idle_s, work)

    def plan(self, request: PlanRequest) -> Planned:
        """Plan a query. Raises the query's error."""
        if not self._is_ready:
            message = self.receive()
            assert isinstance(message, WorkerReady)
            self._is_ready = True
            self._base_bytes = self._private_bytes()
        self.memory_bytes_max = request.memory_bytes_max
        self._is_idle = False
        self.send(request)
        message = self.receive()
        self._is_idle = True
        assert isinstance(message, Planned)
        return message

    def limit_bytes(self, bytes_max: int | None) -> None:
        """Limit the rows of the next query: larger ones are not even received."""
        self._bytes_max = bytes_max
        self._byte_count = 0

    def run(self, rows: RowRefs, files: list[int]) -> Started | Gone:
        """Start the planned query over these rows; `Gone` if they are not there any more."""
        self._is_idle = False
        self.send(RunRequest(rows), files)
        message = self.receive()
        assert isinstance(message, Started | Gone)
        return message

    def send(self, message: Message, files: list[int] | None = None) -> None:
        try:
            send(self._channel, message, files)
        except OSError:
            raise self._exit_error() from None

    def receive(self) -> Message | pa.RecordBatch:
        """Return the next message or batch. An error message is raised, and ends the query."""
        try:
            message, _ = receive(self._channel, self._check_rows)
        except (EOFError, OSError):
            raise self._exit_error() from None
        if isinstance(message, Failed):
            self._is_idle = True
            raise message.error()
        if isinstance(message, Finished):
            self._is_idle = True
        return message

    def _check_rows(self, length: int) -> None:
        """Kill the worker if its next rows exceed the limit of the result."""
        self._byte_count += length
        if self._bytes_max is not None and self._byte_count > self._bytes_max:
            error = TooLarge(
                f"the rows have more than {self._bytes_max} bytes, the limit of this request "
                "(serve.answer_bytes_max); select fewer rows or columns, or read them as Arrow or "
                "CSV, which are streamed"
            )
            self.kill(error, reason="bytes")
            raise error

    def _exit_error(self) -> FrazilError:
        """Return why the process has exited."""
        if self._error is None:
            is_alone = not self._has_lost_server()
            KILLED.add(reason="crash" if is_alone else "server")
            logger.warning("query process ended", extra={"pid": self._pid})
            self._error = (
                TooLarge(
                    "the query is too large or too deeply nested, or needs too much memory at "
                    "once: its worker process ended; make it smaller"
                )
                if is_alone
                else Unavailable("the process that starts query workers has ended; retry")
            )
        return self._error

    def _has_lost_server(self) -> bool:
        """Whether this process ended because its fork server did."""
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(EXIT_S_MAX)
            return True
        return False

    @property
    def grown_bytes(self) -> int:
        """Memory of its own that it has taken since it started."""
        if self._base_bytes is None:
            return 0
        return max(0, self._private_bytes() - self._base_bytes)

    def _private_bytes(self) -> int:
        """Resident memory that is no mapped file; 0 after it has exited, and where the system does
        not show it."""
        try:
            text = Path(f"/proc/{self._pid}/statm").read_text(encoding="ascii")
            resident, shared = text.split()[1:3]
        except (OSError, ValueError):
            return 0
        return (int(resident) - int(shared)) * PAGE_BYTES

    def cancel(self, error: FrazilError) -> None:
        self.kill(error, reason="stopped")

    def kill(self, error: FrazilError, *, reason: str) -> None:
        """Kill the process; its reader gets this error."""
        with self._closing:
            if self._error is None and self._process >= 0:
                self._error = error
                KILLED.add(reason=reason)
                kill_process(self._pid, self._process)

    def close(self) -> None:
        """End the process without waiting: one with much memory takes long to exit."""
        self.wake()
        with self._closing:
            if self._process >= 0:
                kill_process(self._pid, self._process)
                os.close(self._process)
                self._process = -1
        self._channel.close()


class WorkerRun:
    """A query that runs in a worker, which goes back to the pool when the query ends."""

    is_cut = False

    def __init__(self, workers: WorkerPool, worker: Worker, started: Started) -> None:
        self.schema = pa.ipc.read_schema(pa.py_buffer(started.schema))
        self._workers = workers
        self._worker: Worker | None = worker
        self._error: FrazilError | None = None

    def next(self) -> pa.RecordBatch | None:
        worker = self._worker
        if self._error is not None:
            raise self._error
        if worker is None:
            return None
        try:
            message = worker.receive()
        except FrazilError as error:
            self._error = error
            self.close()
            raise
        if isinstance(message, Finished):
            self.close()
            return None
        assert isinstance(message, pa.RecordBatch)
        return message

    def cancel(self, error: FrazilError) -> None:
        self._error = self._error or error
        worker = self._worker
        if worker is not None:
            worker.kill(error, reason="stopped")

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._workers.give_back(worker)

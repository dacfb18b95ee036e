"""Runs queries in worker processes, which have their own memory and can be killed.

WorkerPool   the processes, started on demand and kept while they are in use
Worker       one process, seen from the engine
WorkerRun    a query that runs in one
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from frazil.errors import FrazilError, TooLarge, Unavailable
from frazil.metrics import Counter
from frazil.query.run.event_loop import EngineLoop, Timer
from frazil.query.run.local import EngineQuery
from frazil.query.run.protocol import (
    Failed,
    Finished,
    Message,
    PlanReply,
    PlanRequest,
    RunRequest,
    Started,
    WorkerHello,
    WorkerReady,
    receive,
    send,
)
from frazil.query.run.shared_memory import memory_file
from frazil.query.scan.table_rows import RowsByTable
from frazil.settings import QueryConfig

logger = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.05
"""How often the memory of a busy worker is checked; it cannot grow by much in between."""
REAP_INTERVAL_S = 0.2
MEMORY_SLACK = 2
"""A worker may grow by this many times `memory_bytes_max`: DataFusion counts the memory it holds,
but not the batches it is producing."""
PAGE_BYTES = 4096

KILLED = Counter("frazil.query.processes.killed", "Worker processes killed, by reason.")


class WorkerPool:
    """Thread-safe. A worker belongs to the thread that took it until it is given back."""

    def __init__(
        self, schemas: Mapping[str, pa.Schema], config: QueryConfig, loop: EngineLoop
    ) -> None:
        self._hello = WorkerHello({name: s.serialize().to_pybytes() for name, s in schemas.items()})
        self._idle_s = config.apart_idle_ms / 1000
        self._loop = loop
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._ending: list[Worker] = []
        self._is_closed = False

    def take(self) -> Worker:
        """Return an idle worker, or start one."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise Unavailable("the query engine is closed")
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return Worker.open(self._hello, self._loop)
            worker.wake()
            if worker.is_usable:
                return worker
            self._end(worker)  # killed while idle: the next query gets another one

    def give_back(self, worker: Worker) -> None:
        """Keep a worker that has finished its query for the next one; end any other."""
        worker.rest(self._idle_s, lambda: self._dismiss(worker))
        with self._lock:
            if worker.is_usable and not self._is_closed:
                self._idle.append(worker)
                return
        self._end(worker)

    def _dismiss(self, worker: Worker) -> None:
        with self._lock:
            if worker not in self._idle:
                return
            self._idle.remove(worker)
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        """Kill a worker without waiting: a process with much memory takes long to exit."""
        worker.close()
        with self._lock:
            if not self._is_closed:
                self._ending.append(worker)
                self._loop.later(REAP_INTERVAL_S, self._reap)
                return
        worker.wait()

    def _reap(self) -> None:
        with self._lock:
            self._ending = [worker for worker in self._ending if not worker.has_exited]
            if not self._ending or self._is_closed:
                return
        self._loop.later(REAP_INTERVAL_S, self._reap)

    def close(self) -> None:
        """End all workers and wait until they have exited."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            self._end(worker)
        for worker in self._ending:
            worker.wait()


class Worker:
    """One process. Owned by the thread that took it; any thread may `cancel` or `kill` it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        lifeline: socket.socket,
        loop: EngineLoop,
    ) -> None:
        self._loop = loop
        self._process = process
        self._channel = channel
        self._lifeline = lifeline
        self._error: FrazilError | None = None
        self._is_ready = False
        self._is_idle = True
        self._timer: Timer | None = None
        self._watch: _Watch | None = None

    @classmethod
    def open(cls, hello: WorkerHello, loop: EngineLoop) -> Worker:
        ours, theirs = socket.socketpair()
        lifeline, their_lifeline = socket.socketpair()
        files = [theirs.fileno(), their_lifeline.fileno()]
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "frazil.query.run.worker_main", *map(str, files)],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            ours.close()
            lifeline.close()
            raise Unavailable(f"cannot start a worker process for this query: {error}") from None
        finally:
            theirs.close()
            their_lifeline.close()
        with suppress(OSError):  # a worker that has exited already is noticed in `receive`
            send(ours, hello)
        return cls(process, ours, lifeline, loop)

    @property
    def is_usable(self) -> bool:
        """Whether it can take another query."""
        return self._is_idle and self._error is None and self._process.poll() is None

    def wake(self) -> None:
        """Cancel the idle timeout."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def rest(self, idle_s: float, work: Callable[[], None]) -> None:
        """Call `work` after `idle_s` seconds, unless it is woken before."""
        self._stop_watching()
        self._timer = self._loop.later(idle_s, work)

    def begin(self, memory_bytes_max: int) -> None:
        """Wait until it has started, and limit its memory from here on."""
        if not self._is_ready:
            message = self.receive()
            assert isinstance(message, WorkerReady)
            self._is_ready = True
        self._watch = _Watch(self, memory_bytes_max, self._loop)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def plan(self, query: EngineQuery) -> PlanReply:
        """Plan a query. Raises the query's error."""
        self._is_idle = False
        self.send(PlanRequest(query))
        message = self.receive()
        self._is_idle = True
        assert isinstance(message, PlanReply)
        return message

    def run(
        self,
        query: EngineQuery,
        batches: Mapping[str, Iterable[pa.RecordBatch]],
        rows: RowsByTable,
        leaf_count_max: int,
        bytes_max: int,
    ) -> Started:
        """Start a query over `batches` and the data files of `rows`. `TooLarge` if the batches have
        more than `bytes_max` bytes."""
        scans = {table: list(tier.scans) for table, tier in rows.items() if tier.scans}
        schemas = {
            table: tier.lake_schema.serialize().to_pybytes()
            for table, tier in rows.items()
            if tier.lake_schema is not None
        }
        with memory_file(batches, bytes_max) as (file, extents):
            self._is_idle = False
            self.send(RunRequest(query, extents, scans, schemas, leaf_count_max), file=file)
        message = self.receive()
        assert isinstance(message, Started)
        return message

    def send(self, message: Message, *, file: int | None = None) -> None:
        try:
            send(self._channel, message, file=file)
        except OSError:
            raise self._exit_error() from None

    def receive(self) -> Message | pa.RecordBatch:
        """Return the next message or batch. An error message is raised, and ends the query."""
        try:
            message, _ = receive(self._channel)
        except (EOFError, OSError):
            raise self._exit_error() from None
        if isinstance(message, Failed):
            self._is_idle = True
            raise message.error()
        if isinstance(message, Finished):
            self._is_idle = True
        return message

    def _exit_error(self) -> FrazilError:
        """Return why the process has exited."""
        if self._error is None:
            code = self._process.wait()
            KILLED.add(reason="crash")
            logger.warning("query process ended", extra={"code": code})
            self._error = TooLarge(
                "the query is too large or too deeply nested: its worker process ended with code "
                f"{code}; make it smaller"
            )
        return self._error

    @property
    def private_bytes(self) -> int:
        """Resident memory that is not shared; 0 after it has exited."""
        try:
            text = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii")
            resident, shared = text.split()[1:3]
        except (OSError, ValueError):
            return 0
        return (int(resident) - int(shared)) * PAGE_BYTES

    def cancel(self, error: FrazilError) -> None:
        self.kill(error, reason="stopped")

    def kill(self, error: FrazilError, *, reason: str) -> None:
        """Kill the process; its reader gets this error."""
        if self._error is None:
            self._error = error
            KILLED.add(reason=reason)
            self._process.kill()

    def close(self) -> None:
        self.wake()
        self._stop_watching()
        self._process.kill()
        self._channel.close()
        self._lifeline.close()

    @property
    def has_exited(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        self._process.wait()


class _Watch:
    """Kills a busy worker that uses too much memory. Runs in the loop's thread."""

    def __init__(self, worker: Worker, memory_bytes_max: int, loop: EngineLoop) -> None:
        self._worker = worker
        self._memory_bytes_max = memory_bytes_max
        self._limit = worker.private_bytes + MEMORY_SLACK * memory_bytes_max
        self._loop = loop
        self._is_cancelled = False
        loop.later(WATCH_INTERVAL_S, self._check)

    def _check(self) -> None:
        if self._is_cancelled:
            return
        if self._worker.private_bytes > self._limit:
            error = TooLarge(
                f"the query needs more memory than query.memory_bytes_max "
                f"({self._memory_bytes_max} bytes) allows; read fewer rows, join or collect less"
            )
            self._worker.kill(error, reason="memory")
        else:
            self._loop.later(WATCH_INTERVAL_S, self._check)

    def cancel(self) -> None:
        self._is_cancelled = True


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

"""Running a query apart: in a process that has memory of its own and can be killed.

Workers      the processes, started when one is needed and kept for a while
Worker       one of them, as seen from here
ApartRun     a query that runs in one
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
from frazil.query.config import QueryConfig
from frazil.query.run.event_loop import EngineLoop, Timer
from frazil.query.run.local import LocalQuery
from frazil.query.run.protocol import (
    Failed,
    Finished,
    Hello,
    Message,
    PlanReply,
    PlanRequest,
    RunRequest,
    Started,
    WorkerReady,
    receive,
    send,
)
from frazil.query.run.shared_memory import loaded
from frazil.query.scan.table_rows import TableRows

logger = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.05
"""How often the memory of a busy process is looked at; it cannot grow by much in between."""
REAP_INTERVAL_S = 0.2
MEMORY_SLACK = 2
"""A process may grow by this many times `memory_bytes_max`: the engine counts what it keeps, and
makes new batches beside it."""
PAGE_BYTES = 4096

KILLED = Counter("frazil.query.processes.killed", "Processes apart that were killed, by reason.")


class WorkerPool:
    """The processes. Any thread may take one; it belongs to that thread until it is given back."""

    def __init__(
        self, schemas: Mapping[str, pa.Schema], config: QueryConfig, loop: EngineLoop
    ) -> None:
        self._hello = Hello({name: s.serialize().to_pybytes() for name, s in schemas.items()})
        self._idle_s = config.apart_idle_ms / 1000
        self._loop = loop
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._ending: list[Worker] = []
        self._is_closed = False

    def take(self) -> Worker:
        """One that is idle, or a new one."""
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
            self._end(worker)  # somebody has killed it: the next query is not to blame

    def give_back(self, worker: Worker) -> None:
        """One that has finished waits for the next query; one that has not ends."""
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
        """Nobody waits until it is gone: one with much memory takes its time."""
        worker.close()
        with self._lock:
            if not self._is_closed:
                self._ending.append(worker)
                self._loop.later(REAP_INTERVAL_S, self._reap)
                return
        worker.wait()

    def _reap(self) -> None:
        with self._lock:
            self._ending = [worker for worker in self._ending if not worker.is_gone]
            if not self._ending or self._is_closed:
                return
        self._loop.later(REAP_INTERVAL_S, self._reap)

    def close(self) -> None:
        """End all of them, and wait until they are gone."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            self._end(worker)
        for worker in self._ending:
            worker.wait()


class Worker:
    """A process apart."""

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
        self._is_between = True
        self._timer: Timer | None = None
        self._watch: _Watch | None = None

    @classmethod
    def open(cls, hello: Hello, loop: EngineLoop) -> Worker:
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
            raise Unavailable(f"no process can be started for this query: {error}") from None
        finally:
            theirs.close()
            their_lifeline.close()
        with suppress(OSError):  # one that is gone already is noticed by who waits for it
            send(ours, hello)
        return cls(process, ours, lifeline, loop)

    @property
    def is_usable(self) -> bool:
        """Is it waiting for the next query?"""
        return self._is_between and self._error is None and self._process.poll() is None

    def wake(self) -> None:
        if self._timer is not None:
            self._timer.call_off()
            self._timer = None

    def rest(self, idle_s: float, work: Callable[[], None]) -> None:
        """Have this done when nobody needs it for so long."""
        self._stop_watching()
        self._timer = self._loop.later(idle_s, work)

    def begin(self, memory_bytes_max: int) -> None:
        """Wait until it is there. It is killed if it grows by more than a query may."""
        if not self._is_ready:
            message = self.hear()
            assert isinstance(message, WorkerReady)
            self._is_ready = True
        self._watch = _Watch(self, memory_bytes_max, self._loop)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.call_off()
            self._watch = None

    def plan(self, query: LocalQuery) -> PlanReply:
        """Have a text planned. Raises its error."""
        self._is_between = False
        self.tell(PlanRequest(query.spelled, query.moment_us, query.memory_bytes_max))
        message = self.hear()
        self._is_between = True
        assert isinstance(message, PlanReply)
        return message

    def run(
        self,
        tables: Mapping[str, Iterable[pa.RecordBatch]],
        cold: Mapping[str, TableRows],
        bytes_max: int,
    ) -> Started:
        """Have what was planned last run over these rows, and over files of the lake."""
        scans = {table: list(rows.scans) for table, rows in cold.items() if rows.scans}
        schemas = {
            table: rows.cold_schema.serialize().to_pybytes()
            for table, rows in cold.items()
            if rows.cold_schema is not None
        }
        with loaded(tables, bytes_max) as (file, places):
            self._is_between = False
            self.tell(RunRequest(places, scans, schemas), file=file)
        message = self.hear()
        assert isinstance(message, Started)
        return message

    def tell(self, message: Message, *, file: int | None = None) -> None:
        try:
            send(self._channel, message, file=file)
        except OSError:
            raise self._gone() from None

    def hear(self) -> Message | pa.RecordBatch:
        """The next message or rows. An error that comes is raised; then it is idle again."""
        try:
            message, _ = receive(self._channel)
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(message, Failed):
            self._is_between = True
            raise message.error()
        if isinstance(message, Finished):
            self._is_between = True
        return message

    def _gone(self) -> FrazilError:
        """Why it is not there any more."""
        if self._error is None:
            code = self._process.wait()
            KILLED.add(reason="crash")
            logger.warning("query process ended", extra={"code": code})
            self._error = TooLarge(
                "the query is too large or too deep for the engine, which gave up on it "
                f"(code {code}); make it smaller"
            )
        return self._error

    @property
    def private_bytes(self) -> int:
        """Memory that it does not share; 0 when it is gone."""
        try:
            text = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii")
            resident, shared = text.split()[1:3]
        except (OSError, ValueError):
            return 0
        return (int(resident) - int(shared)) * PAGE_BYTES

    def cancel(self, error: FrazilError) -> None:
        self.kill(error, reason="stopped")

    def kill(self, error: FrazilError, *, reason: str) -> None:
        """End it at once; whoever waits for it gets this error. Any thread may."""
        if self._error is None:
            self._error = error
            KILLED.add(reason=reason)
            self._process.kill()

    def close(self) -> None:
        """End it."""
        self.wake()
        self._stop_watching()
        self._process.kill()
        self._channel.close()
        self._lifeline.close()

    @property
    def is_gone(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        self._process.wait()


class _Watch:
    """Looks at the memory of a busy process, again and again. Lives in the loop's thread."""

    def __init__(self, worker: Worker, memory_bytes_max: int, loop: EngineLoop) -> None:
        self._worker = worker
        self._memory_bytes_max = memory_bytes_max
        self._limit = worker.private_bytes + MEMORY_SLACK * memory_bytes_max
        self._loop = loop
        self._is_off = False
        loop.later(WATCH_INTERVAL_S, self._look)

    def _look(self) -> None:
        if self._is_off:
            return
        if self._worker.private_bytes > self._limit:
            error = TooLarge(
                f"the query needs more memory than query.memory_bytes_max "
                f"({self._memory_bytes_max} bytes) allows; read fewer rows, join or collect less"
            )
            self._worker.kill(error, reason="memory")
        else:
            self._loop.later(WATCH_INTERVAL_S, self._look)

    def call_off(self) -> None:
        self._is_off = True


class WorkerRun:
    """A query in a process apart. The process is given back when it has finished."""

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
            found = worker.hear()
        except FrazilError as error:
            self._error = error
            self.close()
            raise
        if isinstance(found, Finished):
            self.close()
            return None
        assert isinstance(found, pa.RecordBatch)
        return found

    def cancel(self, error: FrazilError) -> None:
        self._error = self._error or error
        worker = self._worker
        if worker is not None:
            worker.kill(error, reason="stopped")

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            self._workers.give_back(worker)

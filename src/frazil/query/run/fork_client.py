"""ForkServer: the process that query workers are forked from, seen from the engine.

It is started with the first engine, and replaced when it has died or hangs.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from frazil.errors import Unavailable
from frazil.metrics import Counter
from frazil.query.run.protocol import FORKED, LOADED, PID

logger = logging.getLogger(__name__)

START_S_MAX = 120.0
"""How long the fork server may take to load. The first start after an update compiles."""
FORK_S_MAX = 2.0
"""How long it may take to fork once it has loaded, and how long it may sleep while it loads. After
that it hangs, and is replaced."""
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # its threads would be started before the fork
    "MIMALLOC_ARENA_RESERVE": "65536",  # KiB; by default 1 GiB of address space, which counts
    "MIMALLOC_ARENA_EAGER_COMMIT": "0",  # else what is reserved counts, for each thread
    "MALLOC_ARENA_MAX": "2",
}

STARTED = Counter("frazil.query.processes.started", "Worker processes started.")


class WorkerProcess(NamedTuple):
    """A process that was forked."""

    channel: socket.socket
    pid: int
    descriptor: int
    """Readable once it has ended."""
    server: subprocess.Popen[bytes]
    """The fork server: it ends with it."""


class ForkServer:
    """One per process, for all its engines. Started with the first engine, ended with the last, and
    started again if it has died. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._is_loaded = False

    def acquire(self) -> None:
        """Start the process for one more engine, without waiting for it."""
        with self._lock:
            self._user_count += 1
            self._start()

    def release(self) -> None:
        """End the process if no other engine uses it."""
        with self._lock:
            self._user_count -= 1
            if self._user_count == 0:
                self._close()

    def _start(self) -> socket.socket:
        is_alive = self._process is not None and self._process.poll() is None
        if self._requests is not None and is_alive:
            return self._requests
        self._close()
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "frazil.query.run.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT},
            )
        except OSError as error:
            ours.close()
            raise Unavailable(f"cannot start a process for queries: {error}") from None
        finally:
            theirs.close()
        self._requests, self._is_loaded = ours, False
        return ours

    @property
    def is_loaded(self) -> bool:
        """Whether workers share all that was loaded. Does not wait."""
        if self._is_loaded or not self._lock.acquire(blocking=False):
            return self._is_loaded
        try:
            self._look()
            return self._is_loaded
        finally:
            self._lock.release()

    def _look(self) -> None:
        """Take the message of a server that has loaded, if there is one."""
        requests = self._requests
        if requests is None or self._is_loaded or not select.select([requests], [], [], 0)[0]:
            return
        with suppress(OSError):  # the next fork finds that it has ended
            self._reply(requests)

    def fork(self) -> WorkerProcess:
        """Start a worker. A fork server that has died or hangs is replaced, once."""
        with self._lock:
            try:
                return self._fork()
            except OSError as error:
                logger.warning(
                    "fork server of query workers replaced", extra={"reason": repr(error)}
                )
                self._close()
            try:
                return self._fork()
            except OSError as error:
                self._close()
                raise Unavailable(f"cannot start a worker process for queries: {error}") from None

    def _fork(self) -> WorkerProcess:
        """Start a worker. `OSError` if the fork server does not answer."""
        ours, theirs = socket.socketpair()
        with ExitStack() as undo, theirs:
            undo.callback(ours.close)
            requests = self._start()
            assert self._process is not None
            self._look()
            requests.settimeout(FORK_S_MAX)
            socket.send_fds(requests, [FORKED], [theirs.fileno()])
            self._await_reply(requests, self._process.pid)
            while (forked := self._reply(requests)) is None:
                pass  # it has loaded meanwhile
            undo.pop_all()
        STARTED.add()
        return WorkerProcess(ours, *forked, self._process)

    def _await_reply(self, requests: socket.socket, pid: int) -> None:
        """Wait for the first reply, which may take long while the server loads. `TimeoutError` if
        it does nothing."""
        for _ in range(int(START_S_MAX / FORK_S_MAX)):
            before = _work_of(pid)
            if select.select([requests], [], [], FORK_S_MAX)[0]:
                return
            after = _work_of(pid)
            if self._is_loaded or (after is not None and after == before):
                break
        raise TimeoutError("the process that starts query workers does not respond")

    def _reply(self, requests: socket.socket) -> tuple[int, int] | None:
        """Return the process that was forked, and its descriptor; None if the server says that it
        has loaded."""
        data, files, _, _ = socket.recv_fds(requests, 1, 1)
        if data == LOADED:
            self._is_loaded = True
            return None
        pid = requests.recv(PID.size) if files else b""
        if len(pid) < PID.size:
            raise ConnectionResetError("the process that starts query workers has ended")
        return PID.unpack(pid)[0], files[0]

    def _close(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._is_loaded = False


FORK_SERVER = ForkServer()


def preload_workers() -> None:
    """Start to load what query workers need, for the rest of this process's life: the first query
    need not wait for it."""
    FORK_SERVER.acquire()


def _work_of(pid: int) -> tuple[str, ...] | None:
    """Return the state of a process and its processor time; None if this system does not show it.
    Equal ones, some seconds apart, mean that it sleeps; a process that reads from a disk is seldom
    seen twice with the same."""
    if not Path("/proc/self/stat").exists():
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ()
    return (fields[0], *fields[11:13])

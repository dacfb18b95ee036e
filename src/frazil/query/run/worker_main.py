"""The worker process: plans and runs one query at a time for the engine.

It is forked from `fork_server` and may be killed at any moment.
"""

from __future__ import annotations

import os
import resource
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.model import NS_PER_MS, MiB, SystemClock
from frazil.query.run.executor import Executor
from frazil.query.run.part_cache import PartCache
from frazil.query.run.protocol import (
    MEMORY_SLACK,
    Failed,
    Finished,
    Gone,
    Planned,
    PlanRequest,
    RunRequest,
    Started,
    WorkerHello,
    WorkerReady,
    failed_of,
    receive,
    send,
    send_rows,
)
from frazil.query.run.row_segment_cache import FileGone

UNMAP_MS = 2000
"""How often removed files are unmapped, also while queries keep coming."""
NICENESS = 5
"""When processors are short, those who acknowledge and publish rows come before queries."""
FRAME_BYTES = 8 * MiB
"""Rows sent at a time, unless a single row is larger."""
STACKS_BYTES = 512 * 2 * MiB
"""DataFusion reads files in up to 512 threads. The limit counts the whole of each stack, of which
almost nothing is in use."""
RESERVE_BYTES = 256 * MiB
"""Memory of threads, plans and batches, above the limit of the query."""


class WorkerMain:
    """Serves one socket, one query at a time."""

    def __init__(self, channel: socket.socket, hello: WorkerHello) -> None:
        self._channel = channel
        schemas = {
            table: pa.ipc.read_schema(pa.py_buffer(ipc)) for table, ipc in hello.schemas.items()
        }
        self._parts = PartCache(schemas)
        self._executor = Executor(schemas)
        self._data_bytes = _data_bytes()
        self._request: PlanRequest | None = None
        self._planned: Planned | None = None
        self._clock = SystemClock()
        self._unmapped_ns = self._clock.monotonic_ns()

    def step(self) -> None:
        """Answer one message. `EOFError` if the engine has closed the socket."""
        while not select.select([self._channel], [], [], UNMAP_MS / 1000)[0]:
            self._unmap_removed()
        message, files = receive(self._channel)
        try:
            if isinstance(message, PlanRequest):
                self._plan(message)
            elif isinstance(message, RunRequest):
                self._run(message, files)
        except FileGone as gone:
            send(self._channel, Gone(gone.path))
        except (FrazilError, AssertionError) as error:
            send(self._channel, failed_of(error))
        except MemoryError:
            send(self._channel, Failed("TooLarge", "the query needs more memory than there is"))
        except Exception as error:  # noqa: BLE001 # top of loop: reported, and the next query runs
            send(self._channel, Failed("AssertionError", f"bug in a query worker: {error!r}"))
        self._unmap_removed()

    def _plan(self, request: PlanRequest) -> None:
        self._limit_memory(request.memory_bytes_max)
        self._request, self._planned = request, None
        self._planned = self._executor.plan(request)
        send(self._channel, self._planned)

    def _run(self, message: RunRequest, files: list[int]) -> None:
        assert self._request is not None and self._planned is not None
        schemas = self._executor.schemas_of(self._planned.sql)
        scans = self._parts.scans(message.rows, files, schemas)
        run = self._executor.start(self._request, self._planned, scans)
        send(self._channel, Started(run.schema.serialize().to_pybytes()))
        while (batch := run.next()) is not None:
            for rows in in_frames(batch):
                send_rows(self._channel, rows)
        send(self._channel, Finished())

    def _unmap_removed(self) -> None:
        """Unmap removed files, if that is due: until then they take memory, and space on disk."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._unmapped_ns >= UNMAP_MS * NS_PER_MS:
            self._parts.drop_missing()
            self._unmapped_ns = now_ns

    def _limit_memory(self, memory_bytes_max: int) -> None:
        """Make allocations fail, which ends this process, far above the limit of the query. The
        engine checks the memory in use, but a single allocation may be larger than all memory."""
        if self._data_bytes is None:
            return
        limit = self._data_bytes + MEMORY_SLACK * memory_bytes_max + RESERVE_BYTES + STACKS_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))


def in_frames(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows in frames of a moderate size: the engine holds one at a time."""
    if batch.nbytes <= FRAME_BYTES or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from in_frames(batch.slice(0, half))
    yield from in_frames(batch.slice(half))


def _data_bytes() -> int | None:
    """Return the size of private, writable mappings of this process; None if this system does not
    show it."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    (line,) = (line for line in text.splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def serve(channel: socket.socket) -> NoReturn:
    """Serve queries until the engine closes the socket."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    try:
        hello, _ = receive(channel)
        assert isinstance(hello, WorkerHello)
        worker = WorkerMain(channel, hello)
        send(channel, WorkerReady())
        while True:
            worker.step()
    except (EOFError, BrokenPipeError, ConnectionError):
        os._exit(0)  # without waiting for DataFusion's threads

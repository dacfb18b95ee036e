"""The worker process: plans and runs one query at a time for its parent.

It keeps no state and may be killed at any moment.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.model import NS_PER_MS, SystemClock
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.plan import check_scans
from frazil.query.plan.planner import Planner, translated_errors
from frazil.query.plan.session import read
from frazil.query.run.local import EngineQuery, session_with
from frazil.query.run.protocol import (
    Finished,
    PlanReply,
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
from frazil.query.run.shared_memory import read_rows
from frazil.query.scan.parquet_scan import check_files_exist
from frazil.query.scan.table_rows import TableRows
from frazil.query.sql.table_names import tables_of


class WorkerMain:
    """Serves one socket, one query at a time."""

    def __init__(self, channel: socket.socket, hello: WorkerHello) -> None:
        self._channel = channel
        self._clock = SystemClock()
        self._schemas = {table: _schema(ipc) for table, ipc in hello.schemas.items()}
        self._planner = Planner(self._schemas, is_full=True)

    def step(self) -> None:
        """Answer one message. `EOFError` if the parent has closed the socket."""
        message, file = receive(self._channel)
        try:
            if isinstance(message, PlanRequest):
                self._plan(message.query)
            elif isinstance(message, RunRequest):
                assert file is not None
                self._run(message, file)
        except (FrazilError, AssertionError) as error:
            send(self._channel, failed_of(error))

    def _plan(self, query: EngineQuery) -> None:
        begin = self._clock.monotonic_ns()
        plan = self._planner.plan(query.sql, query.now_us, is_complete=True)
        assert plan is not None, "a full planner has every function"
        took_ms = (self._clock.monotonic_ns() - begin) // NS_PER_MS
        send(self._channel, PlanReply(plan, took_ms))

    def _run(self, request: RunRequest, file: int) -> None:
        query = request.query
        batches = read_rows(file, request.extents, tables_of(self._schemas, query.sql))
        rows = {
            table: TableRows(
                batches=batches[table],
                scans=request.scans.get(table, ()),
                lake_schema=_schema(request.lake_schemas.get(table)),
            )
            for table in batches
        }
        context = SingleQueryContext(query.now_us)
        with translated_errors(query.sql, self._planner.names, context):
            frame = read(session_with(query, rows, self._schemas, context), query.sql.text)
            stream = frame.execute_stream()
            check_scans(frame, request.leaf_count_max)
            check_files_exist(scan for scans in request.scans.values() for scan in scans)
        send(self._channel, Started(frame.schema().serialize().to_pybytes()))
        while True:
            with translated_errors(query.sql, self._planner.names, context):
                batch = next(stream, None)
            if batch is None:
                break
            send_rows(self._channel, batch.to_pyarrow())
        send(self._channel, Finished())


def _schema(ipc: bytes | None) -> pa.Schema | None:
    return None if ipc is None else pa.ipc.read_schema(pa.py_buffer(ipc))


def _exit_with_parent(lifeline: socket.socket) -> None:
    """Exit when the parent does: it holds the other end and never sends."""
    lifeline.recv(1)
    os._exit(0)


def main(channel_fd: int, lifeline_fd: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lifeline = socket.socket(fileno=lifeline_fd)
    threading.Thread(target=_exit_with_parent, args=(lifeline,), daemon=True).start()
    channel = socket.socket(fileno=channel_fd)
    try:
        hello, _ = receive(channel)
        assert isinstance(hello, WorkerHello)
        worker = WorkerMain(channel, hello)
        send(channel, WorkerReady())
        while True:
            worker.step()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # without waiting for DataFusion's threads


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

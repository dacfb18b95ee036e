"""The program of a process apart: plans and runs one query after the other, for its parent.

It may be killed at any moment and holds nothing that would be missed.
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
from frazil.query.plan.planner import Planner, speaking
from frazil.query.run.local import LocalQuery, frame_of
from frazil.query.run.protocol import (
    Finished,
    Hello,
    PlanReply,
    PlanRequest,
    RunRequest,
    Started,
    WorkerReady,
    failed_of,
    receive,
    send,
    send_rows,
)
from frazil.query.run.shared_memory import unloaded
from frazil.query.scan.parquet_scan import check_there
from frazil.query.scan.table_rows import TableRows
from frazil.query.sql.table_names import tables_of


class WorkerMain:
    """One query at a time, over one socket."""

    def __init__(self, channel: socket.socket, hello: Hello) -> None:
        self._channel = channel
        self._clock = SystemClock()
        self._schemas = {table: _schema(written) for table, written in hello.schemas.items()}
        self._planner = Planner(self._schemas, is_full=True)
        self._query: LocalQuery | None = None

    def step(self) -> None:
        """Answer one message. `EOFError` when the parent has closed the socket."""
        message, file = receive(self._channel)
        try:
            if isinstance(message, PlanRequest):
                self._plan(message)
            elif isinstance(message, RunRequest):
                assert file is not None
                self._run(message, file)
        except FrazilError as error:
            send(self._channel, failed_of(error))

    def _plan(self, ask: PlanRequest) -> None:
        begin = self._clock.monotonic_ns()
        plan = self._planner.plan(ask.spelled, ask.moment_us, is_tried=True)
        assert plan is not None, "a full planner knows every function there is"
        self._query = LocalQuery(
            spelled=ask.spelled, moment_us=ask.moment_us, memory_bytes_max=ask.memory_bytes_max
        )
        took_ms = (self._clock.monotonic_ns() - begin) // NS_PER_MS
        send(self._channel, PlanReply(plan, took_ms))

    def _run(self, carry: RunRequest, file: int) -> None:
        query = self._query
        assert query is not None, "Carry follows Ask"
        schemas = tables_of(self._schemas, query.spelled)
        batches = unloaded(file, carry.places, schemas)
        rows = {
            table: TableRows(
                batches=batches[table],
                scans=carry.scans.get(table, ()),
                cold_schema=_schema(carry.cold_schemas.get(table)),
            )
            for table in batches
        }
        scene = SingleQueryContext(query.moment_us)
        with speaking(query.spelled, self._planner.names, scene):
            frame = frame_of(query, rows, self._schemas, scene)
            stream = frame.execute_stream()
            check_there(scan for scans in carry.scans.values() for scan in scans)
        send(self._channel, Started(frame.schema().serialize().to_pybytes()))
        while True:
            with speaking(query.spelled, self._planner.names, scene):
                found = next(stream, None)
            if found is None:
                break
            send_rows(self._channel, found.to_pyarrow())
        send(self._channel, Finished())


def _schema(written: bytes | None) -> pa.Schema | None:
    return None if written is None else pa.ipc.read_schema(pa.py_buffer(written))


def _die_with(lifeline: socket.socket) -> None:
    """End when the parent has: it holds the other end, and never sends."""
    lifeline.recv(1)
    os._exit(0)


def main(channel_fd: int, lifeline_fd: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lifeline = socket.socket(fileno=lifeline_fd)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    channel = socket.socket(fileno=channel_fd)
    try:
        hello, _ = receive(channel)
        assert isinstance(hello, Hello)
        worker = WorkerMain(channel, hello)
        send(channel, WorkerReady())
        while True:
            worker.step()
    except (EOFError, BrokenPipeError):
        # The engine's threads have nothing to say any more: the interpreter waits for none.
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

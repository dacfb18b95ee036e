"""CREATE, DROP, PAUSE, RESUME, EXECUTE and SHOW of pipes, and what a run of a pipe does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from frazil.definitions import (
    CreatePipe,
    Drop,
    ExecutePipe,
    Pause,
    PipeHistory,
    Resume,
    StatementCall,
    StatementExecutor,
    StoredDefinition,
    done,
    drop_definition,
)
from frazil.disk import Disk
from frazil.errors import FrazilError, TooLarge
from frazil.load.loader import Loader
from frazil.load.pipes.board import PipeBoard, PipeStatus, RunResult
from frazil.load.pipes.schedule import schedule_text
from frazil.load.pipes.scheduler import PipeScheduler
from frazil.load.stages.staged_file import StagedFile
from frazil.model import Clock
from frazil.results import CancelToken

PIPES_MAX = 100
"""Each is a label of metrics."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
SHOW_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("schedule", pa.string(), nullable=False),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("last_run", TIME),
        pa.field("last_outcome", pa.string()),
        pa.field("last_success", TIME),
        pa.field("last_files", pa.int64()),
        pa.field("last_rows", pa.int64()),
        pa.field("next_run", TIME),
        pa.field("failures", pa.int64(), nullable=False),
        pa.field("last_error", pa.string()),
        pa.field("definition", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
    ]
)
RUN_SCHEMA = pa.schema(
    [
        pa.field("pipe", pa.string(), nullable=False),
        pa.field("run_id", pa.int64(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("errors", pa.int64(), nullable=False),
    ]
)


class PipeLoads:
    """Runs pipes by a loader."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def unloaded(self, pipe: CreatePipe) -> str | None:
        """Return a digest of the files that were not loaded; None if there are none."""
        files = self._loader.unloaded(pipe.copy)
        return digest_of(files) if files else None

    def run(self, pipe: CreatePipe, cancel_token: CancelToken) -> RunResult:
        """Load all files that were not loaded."""
        result = self._loader.copy(
            pipe.copy,
            cancel_token,
            text=pipe.copy_text,
            who=f"pipe {pipe.name}",
            waits=True,
        )
        skipped = [report.file for report in result.reports if report.is_skipped]
        purging = f"not deleted: {'; '.join(result.purge_errors)}" if result.purge_errors else ""
        return RunResult(
            outcome="ok",
            files=len(result.reports) - len(skipped),
            rows=result.row_count,
            errors=result.error_count,
            message=purging,
            seen=digest_of(skipped) if skipped else "",
        )


def digest_of(files: Iterable[StagedFile]) -> str:
    """Return a digest of URIs and ETags, whatever their order."""
    digest = hashlib.sha256()
    for key in sorted((file.uri, file.etag) for file in files):
        digest.update("\0".join((*key, "")).encode())
    return digest.hexdigest()


def open_pipes(
    executor: StatementExecutor,
    loader: Loader,
    history: PipeHistory,
    disk: Disk,
    clock: Clock,
    *,
    poll_interval_ms: int,
    is_scheduling: bool,
) -> PipeScheduler:
    """Return the scheduler of all defined pipes, not started, and carry out their statements."""
    stored = executor.definitions.of_kind("pipe")
    pipes = [each.statement for each in stored if isinstance(each.statement, CreatePipe)]
    board = PipeBoard(disk, clock, history, pipes, poll_interval_ms=poll_interval_ms)
    scheduler = PipeScheduler(board, PipeLoads(loader), clock, is_scheduling=is_scheduling)
    _PipeStatements(executor, loader, scheduler).register()
    return scheduler


class _PipeStatements:
    """Handlers of statements about pipes."""

    def __init__(
        self, executor: StatementExecutor, loader: Loader, scheduler: PipeScheduler
    ) -> None:
        self._executor = executor
        self._definitions = executor.definitions
        self._loader = loader
        self._scheduler = scheduler

    def register(self) -> None:
        executor = self._executor
        executor.register(CreatePipe, self._create)
        executor.register_pause("pipe", self._pause)
        executor.register_resume("pipe", self._resume)
        executor.register(ExecutePipe, self._execute)
        executor.register_drop("pipe", self._drop)
        executor.register_show("pipe", self._show)
        executor.register_problem("pipe", self._problem)

    def _create(self, call: StatementCall) -> pa.Table:
        pipe = call.statement
        assert isinstance(pipe, CreatePipe)
        self._definitions.check_new(pipe)
        is_known = self._definitions.find("pipe", pipe.name) is not None
        if not is_known and len(self._definitions.of_kind("pipe")) >= PIPES_MAX:
            raise TooLarge(f"there are {PIPES_MAX} pipes, which is the limit; drop one")
        self._loader.check(pipe.copy)
        self._scheduler.put(pipe, lambda: self._definitions.put(call.parsed))
        runs = "" if self._scheduler.is_scheduling else "; it runs when a node has this folder"
        return done(f"created pipe {pipe.name}{runs}")

    def _drop(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, Drop)
        rows: list[pa.Table] = []
        self._scheduler.drop(
            statement.name, lambda: rows.append(drop_definition(self._definitions, call))
        )
        return rows[0]

    def _pause(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Pause)
        self._scheduler.pause(call.statement.name)
        return done(f"paused pipe {call.statement.name}")

    def _resume(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Resume)
        self._scheduler.resume(call.statement.name)
        return done(f"resumed pipe {call.statement.name}")

    def _execute(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, ExecutePipe)
        run = self._scheduler.execute(call.statement.name, call.cancel_token)
        row = {name: getattr(run, name) for name in RUN_SCHEMA.names}
        return pa.Table.from_pylist([row], RUN_SCHEMA)

    def _show(self, _: StatementCall) -> pa.Table:
        statuses = {status.pipe.name: status for status in self._scheduler.statuses()}
        rows = [
            {
                "kind": "pipe",
                "name": stored.name,
                "definition": stored.text,
                "problem": stored.error or self._problem(stored),
                **self._shown(statuses.get(stored.name)),
            }
            for stored in self._definitions.all("pipe")
        ]
        return pa.Table.from_pylist(rows, SHOW_SCHEMA)

    def _shown(self, status: PipeStatus | None) -> dict[str, object]:
        if status is None:  # its file cannot be read
            return {"state": "failing", "schedule": "", "table_name": "", "failures": 0}
        state = status.state
        return {
            "state": status.word,
            "schedule": schedule_text(status.pipe),
            "table_name": status.pipe.copy.table,
            "last_run": _time(state.started_ms or None),
            "last_outcome": state.outcome,
            "last_success": _time(state.succeeded_ms),
            "last_files": None if state.succeeded_ms is None else state.files,
            "last_rows": None if state.succeeded_ms is None else state.rows,
            "next_run": _time(status.next_ms if self._scheduler.is_scheduling else None),
            "failures": state.failures,
            "last_error": state.message or None if state.is_failing else None,
        }

    def _problem(self, stored: StoredDefinition) -> str | None:
        if not isinstance(stored.statement, CreatePipe):
            return stored.error
        try:
            self._loader.check(stored.statement.copy)
        except FrazilError as error:
            return str(error)
        return None


def _time(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else EPOCH + timedelta(milliseconds=time_ms)
